"""A session's curves as a TensorBoard event file, written without TensorBoard.

An event file is a sequence of TFRecords (length, masked CRC-32C of it, bytes, masked CRC-32C of them), each an
`Event` protocol buffer: wall_time = 1 (double), step = 2 (varint), file_version = 3 (string), summary = 5;
Summary.value = 1; Value.tag = 1 (string), simple_value = 2 (float). x is env steps of the session.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from rlgpt.store.reader import Reader

METRICS = (
    "return_mean", "length_mean", "kl", "clip_fraction", "entropy", "policy_loss", "value_loss",
    "explained_variance", "rate", "learning_rate",
)  # fmt: skip


class Scalar(NamedTuple):
    at: float
    step: int
    tag: str
    value: float


def scalars(reader: Reader) -> Iterator[Scalar]:
    """PPO metrics over env steps trained so far (superseded updates left out), evaluations where they happened."""
    history = reader.history_at()
    before: dict[int, int] = {}
    total = 0
    for number, run in sorted(history.runs.items()):
        before[number] = total
        total += run.env_steps
    done = 0
    for table, row in _curve_rows(reader):
        if table == "metric":
            hidden = history.runs[row["run"]].hidden
            if any(first < row["seq"] < last for first, last in hidden):
                continue
            done = before[row["run"]] + row["env_steps"]
            yield from _metric(row, done)
        else:
            rate = row["successes"] / row["episodes"] if row["episodes"] else 0.0
            yield Scalar(row["at"], done, f"evaluation/{row['split']}/{row['variant']}", rate)


def write(reader: Reader, folder: Path) -> Path:
    """One `events.out.tfevents...` file in `folder`; returns it."""
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"events.out.tfevents.{int(reader.history_at().started_at)}.rlgpt"
    with target.open("wb") as file:
        file.write(record(_double(1, 0.0) + _bytes(3, b"brain.Event:2")))
        for scalar in scalars(reader):
            file.write(record(event(scalar)))
    return target


def event(scalar: Scalar) -> bytes:
    value = _bytes(1, scalar.tag.encode()) + struct.pack("<Bf", 2 << 3 | 5, scalar.value)
    return _double(1, scalar.at) + _number(2, scalar.step) + _bytes(5, _bytes(1, value))


def record(body: bytes) -> bytes:
    length = struct.pack("<Q", len(body))
    return length + struct.pack("<I", masked(length)) + body + struct.pack("<I", masked(body))


def masked(body: bytes) -> int:
    """CRC-32C, rotated and shifted as TFRecord wants it."""
    crc = crc32c(body)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def crc32c(body: bytes) -> int:
    crc = 0xFFFFFFFF
    for octet in body:
        crc = _TABLE[(crc ^ octet) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def _entry(index: int) -> int:
    for _ in range(8):
        index = index >> 1 ^ (0x82F63B78 if index & 1 else 0)
    return index


_TABLE = [_entry(index) for index in range(256)]


def _metric(row: Mapping[str, Any], step: int) -> Iterator[Scalar]:
    for name in METRICS:
        if row.get(name) is not None:
            yield Scalar(row["at"], step, f"ppo/{name}", float(row[name]))
    if row["episodes"]:
        yield Scalar(row["at"], step, "ppo/success", row["successes"] / row["episodes"])
    decisions = sum(row["option_usage"].values())
    for name, used in row["option_usage"].items():
        yield Scalar(row["at"], step, f"options/{name}", used / decisions if decisions else 0.0)


def _curve_rows(reader: Reader) -> Iterator[tuple[str, dict[str, Any]]]:
    found = [("metric", row) for row in reader.rows("metric")]
    found += [("evaluation", row) for row in reader.rows("evaluation")]
    yield from sorted(found, key=lambda item: item[1]["seq"])


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _double(field: int, value: float) -> bytes:
    return _varint(field << 3 | 1) + struct.pack("<d", value)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value
