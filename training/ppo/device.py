"""Which device a policy learns on, decided once and explained in one sentence."""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch as th

from rlgpt.training.ppo.machine import check_cuda


class Device(NamedTuple):
    name: Literal["cpu", "cuda"]
    explanation: str


def choose_device(choice: str, pixels: bool) -> Device:
    """`choice`: auto | cpu | cuda. Raises MachineLacks for cuda on a machine without it."""
    if choice == "cuda":
        check_cuda()
        return Device("cuda", f"cuda was asked for: {th.cuda.get_device_name(0)}.")
    if choice == "cpu":
        return Device("cpu", "cpu was asked for.")
    if choice != "auto":
        raise ValueError(f"The device is auto, cpu or cuda, not {choice!r}.")
    if not pixels:
        return Device(
            "cpu", "A small symbolic policy: its few rows per tick are faster on the CPU than a trip to a GPU."
        )
    if th.cuda.is_available():
        return Device("cuda", f"A policy on pixels: its convolutions are faster on {th.cuda.get_device_name(0)}.")
    return Device("cpu", "A policy on pixels would be faster on a GPU, but torch sees no CUDA device here.")
