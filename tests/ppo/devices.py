"""The devices that a policy can learn on, for tests of both."""

from __future__ import annotations

import pytest
import torch as th

DEVICES = [
    "cpu",
    pytest.param("cuda", marks=pytest.mark.skipif(not th.cuda.is_available(), reason="no CUDA device")),
]
