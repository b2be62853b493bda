"""Workspaces that only some backends need: D and DQ_ACC of attn_bwd_params."""

from pyaotriton.views import T2, T4, DType


class _Lazy:
    """A view that is there, or one that torch allocates when a backend asks for it."""

    def __init__(self, eager=None, like=None, device_index=None):
        self._eager, self._like, self._device_index = eager, like, device_index

    def acquire(self):
        """(view, owner of its memory)."""
        if self._like is None:
            return self._eager, None
        import torch

        tensor = torch.empty(self._like.sizes, dtype=torch.float32, device=torch.device("cuda", self._device_index))
        return type(self._like)(tensor.data_ptr(), tensor.shape, tensor.stride(), DType.kFloat32), tensor


class LT2(_Lazy):
    pass


class LT4(_Lazy):
    pass


def delta(like, device_index):
    """A float32 workspace of the sizes of the T2 `like`, on a device, once it is needed."""
    return LT2(like=like, device_index=device_index)


def dq_acc(like, device_index):
    """The same of rank 4. No backend of this library needs one."""
    return LT4(like=like, device_index=device_index)


def eager_delta(view):
    """The T2 `view` as a workspace."""
    return LT2(eager=view)


def eager_null_dq_acc(view):
    """The T4 `view` as a workspace."""
    return LT4(eager=view)


NO_DELTA, NO_DQ_ACC = LT2(eager=T2()), LT4(eager=T4())
