"""What a session's settings may ask of the machine that trains it."""

from __future__ import annotations

import os
import shutil
import sys


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
    """Raises MachineLacks where torch.compile would find no C++ compiler. It looks for no other than this one
    (`torch/_inductor/config.py`, `cpp.cxx`)."""
    compiler = os.environ.get("CXX") or ("clang++" if sys.platform == "darwin" else "g++")
    if shutil.which(compiler) is None:
        raise MachineLacks(
            f"The compiled kernel needs a C++ compiler, and this machine has no {compiler}; "
            "the variable CXX names another."
        )
