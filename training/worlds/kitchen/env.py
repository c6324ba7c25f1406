"""One running kitchen on one task: the `protocol.Env` over MuJoCo."""

from __future__ import annotations

import copy
import math
import struct
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import mujoco
import numpy as np
from numpy.typing import NDArray

from rlgpt.training.worlds.kitchen import frame, names
from rlgpt.training.worlds.kitchen.arm import Servo
from rlgpt.training.worlds.kitchen.features import SIZE, columns, write_features
from rlgpt.training.worlds.kitchen.model import (
    ARM,
    BASE,
    FINGERS,
    HOME,
    SUBSTEPS,
    compile_model,
    hand_site,
    handle_sites,
    link_bodies,
)  # fmt: skip
from rlgpt.training.worlds.kitchen.names import AJAR, DONE, GRASPED, MILESTONES, OBJECTS, REACHED, THRESHOLD
from rlgpt.training.worlds.kitchen.tasks import CHAIN, objects_of
from rlgpt.training.worlds.protocol import NativeAction, StepResult, Task

_PHYSICS = mujoco.mjtState.mjSTATE_INTEGRATION
_HEADER = struct.Struct(f"<8sHHIb?{2 * len(OBJECTS)}B3dd2dd{6 * len(OBJECTS)}d")
_MAGIC = b"kitchen2"
"""First bytes of a saved state. After them: env steps, the last env step with novelty, milestone bits, fingers,
interrupt, levels, aim, roll, place of the robot, start distance of the kettle, errors and felt offsets of the reported
handles, and MuJoCo's own state."""
ARM_NOISE, BASE_NOISE, KETTLE_NOISE = 0.1, 0.03, 0.03
"""Half-widths of the uniform noise at the start of an episode: rad of each arm joint, m of the robot and of the kettle
along x and y. Stock starts every episode in the same state."""
LEASH, MAX_ROLL = names.LEASH / 1000, names.MAX_ROLL / 1000
NEAR_HANDLE = 0.05
"""m between the point of the grip and a handle, below which the handle counts as reached, and as grasped while the hand
holds something."""
GRIP_AHEAD = 0.03
"""m from the hand's site to the middle of the finger pads."""
AJAR_SHARE = 0.2
"""Progress from which an object counts as ajar."""
OPEN_GAP = 0.04
"""m that each finger moves between closed and open."""
HELD_GAP, HELD_RATE = 0.006, 1.25
"""Closing fingers hold something when they are further apart than this (m) and the gap shrinks by less than this share
of itself per second. With nothing between them it shrinks by 5 (kp / damping of their actuators)."""
_JOINTS = [np.array(each.joints) for each in OBJECTS]
_KETTLE = names.INDEX["kettle"]
"""The only object whose start differs between episodes, and so its distance to the goal."""
_GOAL_JOINTS = [each.goal for each in OBJECTS]


class KitchenEnv:
    """See `protocol.Env`. `pool` has the threads that simulate between `begin_step` and `step`; with None `step`
    simulates."""

    def __init__(self, task: Task, features: Sequence[str], pool: ThreadPoolExecutor | None = None) -> None:
        self.task = task
        self.steps = 0
        self._goal_objects = [names.INDEX[name] for name in objects_of(task)]
        self._goal_bits = sum(1 << 4 * index + DONE for index in self._goal_objects)
        self._model = copy.copy(compile_model())
        self._data = mujoco.MjData(self._model)
        self._servo = Servo(self._model, self._data)
        self._site, self._sites, self._links = hand_site(), handle_sites(), link_bodies()
        self._pool = pool
        self._simulation: Future[None] | None = None
        self._pending_command: NativeAction | None = None
        self._columns = columns(features)
        self._state = np.empty(mujoco.mj_stateSize(self._model, _PHYSICS))
        self._mask = np.ones(sum(names.HEADS), np.bool_)
        self.reset(0)

    # ---- episodes -----------------------------------------------------------------------------------
    def reset(self, seed: int) -> None:
        """Start an episode. On one seed exact and blind tasks start in the same state, because the errors of the
        reported handles are drawn last."""
        self._wait_for_simulation()
        random = np.random.default_rng(seed)
        mujoco.mj_resetData(self._model, self._data)
        self._model.body_pos[BASE, :2] = random.uniform(-BASE_NOISE, BASE_NOISE, 2)
        self._data.qpos[:] = HOME
        self._data.qpos[ARM] += random.uniform(-ARM_NOISE, ARM_NOISE, 7)
        self._data.qpos[23:25] += random.uniform(-KETTLE_NOISE, KETTLE_NOISE, 2)
        self._handle_errors = random.normal(0.0, 1.0, (len(OBJECTS), 3)) * float(self.task.start.get("blind", 0.0))
        self._felt_offsets = np.zeros((len(OBJECTS), 3))
        self.steps, self._last_novelty_step, self._milestone_bits = 0, 0, 0
        self._fingers, self._holding, self._interrupt = 1, False, False
        self._levels = np.zeros(2 * len(OBJECTS), np.uint8)
        self._data.ctrl[FINGERS] = OPEN_GAP
        self._update_kinematics()
        self._start_distances = np.array(self._distances_to_goals()) - THRESHOLD
        self._aim = self._data.site_xpos[self._site].copy()
        self._roll = 0.0
        self._measure()
        self._record_progress()

    def step(self, command: NativeAction) -> StepResult:
        if self._pending_command is None:
            self._set_controls(command)
            self._simulate()
        self._wait_for_simulation()
        bits_before = self._milestone_bits
        self.steps += 1
        was_holding = self._holding
        self._measure()
        self._interrupt = was_holding and not self._holding and self._fingers < 0
        novelty = self.novelty()
        self._record_progress()
        if self.novelty() != novelty:
            self._last_novelty_step = self.steps
        reward = float((self._milestone_bits & ~bits_before & self._goal_bits).bit_count())
        return StepResult(reward, self.succeeded() or self.steps >= self.task.horizon, False)

    def begin_step(self, command: NativeAction) -> None:
        """Let the simulation begin in another thread (`mj_step` releases the interpreter lock)."""
        if self._pool is None:
            return
        self._set_controls(command)
        self._pending_command = command
        self._simulation = self._pool.submit(self._simulate)

    def _wait_for_simulation(self) -> None:
        if self._simulation is not None:
            self._simulation.result()
        self._simulation = self._pending_command = None

    def _set_controls(self, command: NativeAction) -> None:
        """Move the aim and set the controls of the next env step."""
        dx, dy, dz, roll, fingers = command
        hand = self._data.site_xpos[self._site]
        lag = self._aim + np.array((dx, dy, dz)) / 1000 - hand
        length = float(np.linalg.norm(lag))
        self._aim = hand + lag * min(1.0, LEASH / length if length else 1.0)
        self._roll = max(-MAX_ROLL, min(MAX_ROLL, self._roll + roll / 1000))
        self._fingers = fingers or self._fingers
        self._data.ctrl[ARM] = self._servo.joint_targets(self._aim, self._roll)
        self._data.ctrl[FINGERS] = OPEN_GAP if self._fingers > 0 else 0.0

    def _simulate(self) -> None:
        mujoco.mj_step(self._model, self._data, SUBSTEPS)
        self._update_kinematics()

    def _update_kinematics(self) -> None:
        """Compute what is read besides the state itself (places, Jacobians, bias forces) from the state, so that a
        restored env reads the same values: `mj_step` leaves them as before its last substep. `mj_forward` would do it
        too, but changes `qacc_warmstart`, which belongs to the state."""
        mujoco.mj_fwdPosition(self._model, self._data)
        mujoco.mj_fwdVelocity(self._model, self._data)

    # ---- measurements -------------------------------------------------------------------------------
    def _measure(self) -> None:
        """Compute what follows from the state and the errors of the reported handles alone."""
        data = self._data
        self._hand = data.site_xpos[self._site]
        grip = self._grip = self._hand + GRIP_AHEAD * data.site_xmat[self._site, 2::3]
        handles = data.site_xpos[self._sites]
        self._reported_handles = handles + self._handle_errors
        offsets = handles - grip
        self._handle_distances = np.sqrt(np.einsum("ij,ij->i", offsets, offsets))
        """m from the grip to the true place of each handle."""
        self._finger_gap = float(data.qpos[FINGERS].sum())
        closing = -float(data.qvel[FINGERS].sum())
        self._holding = self._fingers < 0 and self._finger_gap > HELD_GAP and closing < HELD_RATE * self._finger_gap
        distances = np.array(self._distances_to_goals()) - THRESHOLD
        self._progress = np.clip(1.0 - distances / self._start_distances, 0.0, 1.0)

    def _distances_to_goals(self) -> list[float]:
        """Euclidean distance between the joints of each object and its goal, as stock computes it."""
        joints = self._data.qpos
        return [math.dist(joints[each].tolist(), goal) for each, goal in zip(_JOINTS, _GOAL_JOINTS, strict=True)]

    def _record_progress(self) -> None:
        """Update the milestones and the levels of novelty, which never fall in an episode."""
        progress = self._progress.tolist()
        for index, distance in enumerate(self._handle_distances.tolist()):
            stages = (progress[index] >= AJAR_SHARE) << AJAR | (progress[index] >= 1.0) << DONE
            if distance < NEAR_HANDLE:
                stages |= 1 << REACHED | self._holding << GRASPED
                if self._holding:
                    self._felt_offsets[index] = self._reported_handles[index] - self._grip
            self._milestone_bits |= stages << 4 * index
        count = len(OBJECTS)
        np.maximum(self._levels[:count], (10 * self._progress).astype(np.uint8), out=self._levels[:count])
        closeness = np.clip(20 - 20 * self._handle_distances, 0, 20).astype(np.uint8)
        np.maximum(self._levels[count:], closeness, out=self._levels[count:])

    def succeeded(self) -> bool:
        """Whether each object of the task has been at its goal in this episode; stock counts the same way."""
        return self._milestone_bits & self._goal_bits == self._goal_bits

    def milestones(self) -> frozenset[str]:
        milestones = frozenset(name for bit, name in enumerate(MILESTONES) if self._milestone_bits >> bit & 1)
        return milestones | {CHAIN} if len(self._goal_objects) > 1 and self.succeeded() else milestones

    def interrupt(self) -> bool:
        """Whether an object has slipped out of the closed fingers in the last env step."""
        return self._interrupt

    def waiting(self) -> bool:
        return False

    def progress_key(self) -> int:
        """Hash of the hand's cell of 2 cm, the fingers, and the progress of each object in hundredths."""
        cells = np.floor(self._hand * 50).astype(int).tolist()
        return hash((*cells, self._fingers, *(100 * self._progress).astype(int).tolist()))

    def novelty(self) -> int:
        """Number of milestones, of tenths of progress, and of steps of 5 cm by which the hand came closer to a
        handle."""
        return self._milestone_bits.bit_count() + int(self._levels.sum())

    def distance(self, target: str) -> float | None:
        """To `<object>_handle`: cm from the hand to the reported place of the handle. To `<object>`: the part of the
        way to its goal that is left, in hundredths. The policy observes both, so a reward gives it no further
        information."""
        name = target.removesuffix("_handle")
        index = names.INDEX[name]
        if name == target:
            return 100.0 * (1.0 - float(self._progress[index]))
        return 100.0 * math.dist(self._reported_handles[index].tolist(), self._hand.tolist())

    # ---- observations -------------------------------------------------------------------------------
    def observe(self) -> NDArray[np.float32]:
        """A fresh array."""
        row = np.empty(SIZE)
        undone = (index for index in self._goal_objects if not self._milestone_bits >> 4 * index + DONE & 1)
        target = next(undone, self._goal_objects[-1])
        write_features(
            row, self._data, self._told(self._hand), self._told(self._aim), self._roll, self._finger_gap, self._fingers,
            self._holding, self._progress, self._told(self._reported_handles), self._felt_offsets, target,
            1.0 - self.steps / self.task.horizon, self.steps - self._last_novelty_step, self._milestone_bits,
        )  # fmt: skip
        np.clip(row, -1.0, 1.0, out=row)
        return row.astype(np.float32) if self._columns is None else row[self._columns].astype(np.float32)

    def pixels(self) -> NDArray[np.uint8]:
        raise ValueError("The kitchen draws no pixels; it has no OpenGL context.")

    def action_masks(self) -> NDArray[np.bool_]:
        return self._mask

    def view(self, whole: bool) -> bytes:
        """Always the same, whole or not, because there is no map memory."""
        return names.VIEW.pack(
            self.steps, max(0, self.task.horizon - self.steps),
            *_millimetres(self._told(self._hand)), *_millimetres(self._told(self._aim)), round(1000 * self._roll),
            max(0, min(names.MAX_GAP, round(1000 * self._finger_gap))), self._fingers, self._holding,
            self._milestone_bits, *np.floor(1000 * self._progress).astype(int).tolist(),
            *_millimetres(self._told(self._reported_handles)),
        )  # fmt: skip

    def _told(self, places: NDArray[np.float64]) -> NDArray[np.float64]:
        """`places`, (3,) or (n, 3) in metres, in the frame in which this task tells them: the kitchen's, or along x
        and y the robot's."""
        if not self.task.start.get("robot_frame"):
            return places
        x, y, _ = self._model.body_pos[BASE]
        told: NDArray[np.float64] = places - np.array((x, y, 0.0))
        return told

    def frame(self) -> bytes:
        links = self._data.xpos[self._links]
        return frame.pack(
            self.steps, max(0, self.task.horizon - self.steps), self._goal_objects, self._milestone_bits, self._fingers,
            self._holding, max(0, round(1000 * self._finger_gap)), _millimetres(links), _millimetres(self._hand),
            _millimetres(self._data.site_xpos[self._sites]), _millimetres(self._reported_handles),
            np.floor(100 * self._progress).astype(int).tolist(),
        )  # fmt: skip

    # ---- saving -------------------------------------------------------------------------------------
    def save(self) -> bytes:
        self._wait_for_simulation()
        mujoco.mj_getState(self._model, self._data, self._state, _PHYSICS)
        header = _HEADER.pack(
            _MAGIC, self.steps, self._last_novelty_step, self._milestone_bits, self._fingers, self._interrupt,
            *self._levels.tolist(), *self._aim.tolist(), self._roll, *self._model.body_pos[BASE, :2].tolist(),
            self._start_distances[_KETTLE], *self._handle_errors.ravel().tolist(), *self._felt_offsets.ravel().tolist(),
        )  # fmt: skip
        return header + self._state.tobytes()

    def restore(self, state: bytes) -> None:
        """Restore the kitchen. The horizon and the goals stay those of this env's own task."""
        self._wait_for_simulation()
        if len(state) != _HEADER.size + self._state.nbytes or state[:8] != _MAGIC:
            raise ValueError("These bytes are not a saved kitchen.")
        _, self.steps, self._last_novelty_step, self._milestone_bits, *values = _HEADER.unpack_from(state)
        self._fingers, self._interrupt, *values = values
        count = 2 * len(OBJECTS)
        self._levels = np.array(values[:count], np.uint8)
        self._aim, self._roll = np.array(values[count : count + 3]), values[count + 3]
        self._model.body_pos[BASE, :2] = values[count + 4 : count + 6]
        self._start_distances[_KETTLE] = values[count + 6]
        self._handle_errors, self._felt_offsets = np.array(values[count + 7 :]).reshape(2, len(OBJECTS), 3)
        self._state[:] = np.frombuffer(state, offset=_HEADER.size)
        mujoco.mj_resetData(self._model, self._data)
        mujoco.mj_setState(self._model, self._data, self._state, _PHYSICS)
        self._update_kinematics()
        self._measure()

    def close(self) -> None:
        self._wait_for_simulation()


def _millimetres(metres: NDArray[np.float64]) -> list[int]:
    return np.rint(1000 * metres).astype(int).ravel().tolist()
