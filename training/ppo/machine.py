"""What a session's settings may ask of the machine that trains it."""

from __future__ import annotations

import os
import shutil

COMPILERS = ("g++", "clang++", "c++")


class MachineLacks(RuntimeError):
    """The settings ask for what this machine does not have; the sentence is the argument. On another machine the
    session can go on."""


def check_device_and_kernel(device: str, kernel: str) -> None:
    """Raises MachineLacks where no policy can be trained with this device and kernel."""
    if device == "cuda":
        check_cuda()
    if kernel == "compiled":
        check_compiler()


def check_cuda() -> None:
    """Raises MachineLacks."""
    import torch as th  # late: it takes seconds

    if not th.cuda.is_available():
        raise MachineLacks("--device cuda was asked for, but torch sees no CUDA device on this machine.")


def check_compiler() -> None:
    """Raises MachineLacks where torch.compile would find no C++ compiler."""
    if not os.environ.get("CXX") and not any(map(shutil.which, COMPILERS)):
        raise MachineLacks("The compiled kernel needs a C++ compiler (g++ or clang++), and this machine has none.")
