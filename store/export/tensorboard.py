"""TensorBoard event files, written by hand: a TFRecord of Event messages needs no TensorFlow.

Format: every record is its length (8 bytes), a masked CRC-32C of that, the message, a masked CRC-32C of that.
Event: 1 wall_time double, 2 step int64, 3 file_version string, 5 summary {1 value {1 tag, 2 simple_value}}.
Steps are env steps. One folder a training run, and `evaluation` with success by iteration.
"""

from __future__ import annotations

import os
import shutil
import struct
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from rlgpt.store.folder import Place
from rlgpt.store.reader import Reader

COLUMNS = (
    "return_mean", "length_mean", "kl", "clip_fraction", "entropy", "policy_loss", "value_loss",
    "explained_variance", "rate", "learning_rate", "episodes", "successes", "dead_loops",
)  # fmt: skip
MAPPINGS = ("option_usage", "rewards", "milestones")


def export_tensorboard(place: Place, target: Path) -> Path:
    """Write the folder `target`, whole or not at all; rows that a resume superseded are left out."""
    partial = target.with_name(f".{target.name}.{os.getpid()}")
    partial.mkdir(mode=0o700)
    try:
        with Reader(place) as reader:
            history = reader.history_at()
            for number, run in history.runs.items():
                hidden = run.hidden
                rows = [
                    row
                    for row in reader.rows("metric", {"run": number})
                    if not any(after < row["seq"] < before for after, before in hidden)
                ]
                events = [(row["at"], row["env_steps"], _scalars(row)) for row in rows]
                _write(partial / f"run-{number}", history.started_at, events)
            marks = [
                (
                    row["at"],
                    row["iteration"],
                    {f"{row['split']}/{row['variant']}/success": row["successes"] / row["episodes"]},
                )
                for row in reader.rows("evaluation")
                if row["episodes"]
            ]
            _write(partial / "evaluation", history.started_at, marks)
        partial.rename(target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return target


def _success(row: Mapping[str, Any]) -> dict[str, float]:
    return {f"{row['split']}/{row['variant']}/success": row["successes"] / row["episodes"]}


def _scalars(row: Mapping[str, Any]) -> dict[str, float]:
    found = {name: row[name] for name in COLUMNS if name in row}
    if row["episodes"]:
        found["success_rate"] = row["successes"] / row["episodes"]
    for name in MAPPINGS:
        inside = row.get(name)
        if isinstance(inside, dict):
            found |= {f"{name}/{key}": value for key, value in inside.items()}
    return {name: float(v) for name, v in found.items() if isinstance(v, (int, float))}


def _write(folder: Path, at: float, events: Iterable[tuple[float, int, Mapping[str, float]]]) -> None:
    folder.mkdir(mode=0o700)
    descriptor = os.open(
        folder / f"events.out.tfevents.{int(at)}.rlgpt", os.O_CREAT | os.O_WRONLY | os.O_EXCL | os.O_CLOEXEC, 0o600
    )
    with os.fdopen(descriptor, "wb") as file:
        file.write(record(_double(1, at) + _bytes(3, b"brain.Event:2")))
        for when, step, values in events:
            summary = b"".join(_bytes(1, _bytes(1, tag.encode()) + _float(2, v)) for tag, v in values.items())
            file.write(record(_double(1, when) + _key(2, 0) + _varint(step) + _bytes(5, summary)))


def record(message: bytes) -> bytes:
    """One TFRecord."""
    length = struct.pack("<Q", len(message))
    return length + struct.pack("<I", _masked(length)) + message + struct.pack("<I", _masked(message))


def crc32c(body: bytes) -> int:
    """Castagnoli's checksum (RFC 3720, B.4)."""
    table, crc = _table(), 0xFFFFFFFF
    for byte in body:
        crc = table[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


@cache
def _table() -> tuple[int, ...]:
    table = []
    for number in range(256):
        for _ in range(8):
            number = number >> 1 ^ (0x82F63B78 if number & 1 else 0)
        table.append(number)
    return tuple(table)


def _masked(body: bytes) -> int:
    crc = crc32c(body)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def _key(field: int, wire: int) -> bytes:
    return _varint(field << 3 | wire)


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def _double(field: int, value: float) -> bytes:
    return _key(field, 1) + struct.pack("<d", value)


def _float(field: int, value: float) -> bytes:
    return _key(field, 5) + struct.pack("<f", value)


def _bytes(field: int, body: bytes) -> bytes:
    return _key(field, 2) + _varint(len(body)) + body
