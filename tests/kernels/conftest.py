"""Kernels run in Triton's interpreter: this must be chosen before they are imported."""

import os

os.environ["TRITON_INTERPRET"] = "1"

import torch

torch.set_num_threads(1)  # many tiny tensors: threads only wait for each other
