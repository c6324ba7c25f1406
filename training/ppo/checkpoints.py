"""Checkpoints as bytes: safetensors with a JSON header. Nothing in them is ever unpickled."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch as th
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays

FORMAT = 1
_HEADER = "rlgpt"


class CheckpointError(ValueError):
    """The bytes are no checkpoint of ours; the sentence is the argument."""


@dataclass(frozen=True)
class Checkpoint:
    fields: dict[str, Any]
    """Plain data."""
    arrays: dict[str, NDArray[Any]]

    def part(self, name: str) -> dict[str, NDArray[Any]]:
        """The arrays below `name/`, without that prefix."""
        prefix = f"{name}/"
        return {key.removeprefix(prefix): a for key, a in self.arrays.items() if key.startswith(prefix)}


def pack(fields: Mapping[str, Any], parts: Mapping[str, Mapping[str, NDArray[Any]]]) -> bytes:
    """Fields are plain data without NaN; arrays of `parts[name]` are found again under `part(name)`."""
    header = json.dumps({"format": FORMAT} | dict(fields), allow_nan=False, separators=(",", ":"), default=_plain)
    arrays = {
        f"{part}/{name}": np.ascontiguousarray(array) for part, named in parts.items() for name, array in named.items()
    }
    arrays[_HEADER] = np.frombuffer(header.encode(), np.uint8)
    return save_arrays(arrays)


def _plain(value: object) -> Any:
    """A whole number of numpy's as Python's: a world may count with either."""
    if isinstance(value, np.integer):
        return int(value)
    raise TypeError(f"{type(value).__name__} is no plain data")


def unpack(blob: bytes) -> Checkpoint:
    try:
        arrays = load_arrays(blob)
        fields = json.loads(arrays.pop(_HEADER).tobytes())
    except (SafetensorError, KeyError, ValueError) as error:
        raise CheckpointError(f"This is not a checkpoint of rlgpt ({error}).") from error
    if fields.get("format") != FORMAT:
        raise CheckpointError(f"This checkpoint has format {fields.get('format')}, this version reads {FORMAT}.")
    return Checkpoint(fields, arrays)


def module_arrays(module: th.nn.Module) -> dict[str, NDArray[Any]]:
    return {name: tensor.detach().cpu().numpy() for name, tensor in module.state_dict().items()}


def load_module(module: th.nn.Module, arrays: Mapping[str, NDArray[Any]]) -> None:
    module.load_state_dict({name: th.from_numpy(np.array(array)) for name, array in arrays.items()})


def optimizer_arrays(module: th.nn.Module, optimizer: th.optim.Optimizer) -> dict[str, NDArray[Any]]:
    """Adam's moments and step counts by parameter name."""
    return {
        f"{name}/{key}": value.detach().cpu().numpy()
        for name, parameter in module.named_parameters()
        for key, value in optimizer.state.get(parameter, {}).items()
    }


def load_optimizer(module: th.nn.Module, optimizer: th.optim.Optimizer, arrays: Mapping[str, NDArray[Any]]) -> None:
    for name, parameter in module.named_parameters():
        state = {}
        for key in ("step", "exp_avg", "exp_avg_sq"):
            if f"{name}/{key}" in arrays:
                state[key] = th.from_numpy(np.array(arrays[f"{name}/{key}"])).to(parameter.device)
        if state:
            optimizer.state[parameter] = state
