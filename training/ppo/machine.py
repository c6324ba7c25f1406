"""What a session's settings may ask of the machine that trains it."""

from __future__ import annotations

import os
import shutil

COMPILERS = ("g++", "clang++", "c++")


class MachineLacks(RuntimeError):
    """The settings ask for what this machine does not have; the sentence is the argument. On another machine the
    session can go on."""


def check_device_and_kernel(device: str, kernel: str) -> None:
    """Raises MachineLacks where no policy can be trained with this device and kernel. Imports torch for cuda alone."""
    if device == "cuda":
        from rlgpt.training.ppo.device import choose_device

        choose_device(device, pixels=False)
    if kernel == "compiled":
        check_compiler()


def check_compiler() -> None:
    """Raises MachineLacks where torch.compile would find no C++ compiler."""
    if not os.environ.get("CXX") and not any(map(shutil.which, COMPILERS)):
        raise MachineLacks("The compiled kernel needs a C++ compiler (g++ or clang++), and this machine has none.")
