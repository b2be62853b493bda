"""Lets the binding take torch tensors in the host's memory for tensors on the current simulated GPU.

So the problems of tests/gpu run there as they are (AOTRITON_TEST_DEVICE=cpu).
"""

import contextlib

from aotriton import attention, tensors

from tests.simulator.simulated_gpu import HIP

_pinned = {}  # address: storage, which stays alive so that no other gets its address


def pin(_name, tensor):
    """Kernels may address the storage of `tensor`, and no byte beside it, until `release`."""
    storage = tensor.untyped_storage()
    if storage.nbytes() and storage.data_ptr() not in _pinned:
        assert HIP.hipHostRegister(storage.data_ptr(), storage.nbytes(), 0) == 0
        _pinned[storage.data_ptr()] = storage


def release():
    """Ends what `pin` began."""
    while _pinned:
        assert HIP.hipHostUnregister(_pinned.popitem()[0]) == 0


tensors._check_device = pin
for module in (tensors, attention):
    module.stream_handle = lambda stream, device: 0
    module.on_device = lambda device, handle: contextlib.nullcontext()
