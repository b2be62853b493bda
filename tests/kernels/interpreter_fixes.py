"""What must be corrected in the interpreter of Triton 3.6.0 before its numbers mean anything.

It keeps bf16 as uint16, multiplies those as integers in a dot, and truncates where the
GPUs round to nearest even.
"""

import torch
import triton.language as tl
from triton.runtime.interpreter import InterpreterBuilder, TensorHandle


def _torch(handle):
    data = torch.from_numpy(handle.data)
    return data.view(torch.bfloat16) if handle.dtype.scalar == tl.bfloat16 else data


def install():
    plain_cast = InterpreterBuilder.cast_impl

    def create_dot(self, a, b, d, input_precision, max_num_imprecise_acc):
        product = torch.matmul(_torch(a).float(), _torch(b).float())
        return TensorHandle(product.numpy() + d.data, tl.float32)

    def cast(self, src, dst_type, *rounding):
        if src.dtype.scalar == tl.bfloat16:
            src = TensorHandle(_torch(src).float().numpy(), tl.float32)
        if dst_type.scalar == tl.bfloat16:
            rounded = torch.from_numpy(src.data).to(torch.bfloat16)
            return TensorHandle(rounded.view(torch.uint16).numpy(), tl.bfloat16)
        return plain_cast(self, src, dst_type)

    InterpreterBuilder.create_dot = create_dot
    InterpreterBuilder.create_fp_trunc = cast
    InterpreterBuilder.create_fp_ext = cast
    InterpreterBuilder.create_fp_to_fp = cast
