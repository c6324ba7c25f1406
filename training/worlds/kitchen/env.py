"""One running kitchen on one task."""

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
    compiled,
    hand_site,
    handle_sites,
    link_bodies,
)  # fmt: skip
from rlgpt.training.worlds.kitchen.names import AJAR, DONE, GRASPED, MILESTONES, OBJECTS, REACHED, THRESHOLD
from rlgpt.training.worlds.kitchen.tasks import CHAIN, objects
from rlgpt.training.worlds.protocol import NativeAction, StepResult, Task

_PHYSICS = mujoco.mjtState.mjSTATE_INTEGRATION
_OWN = struct.Struct(f"<8sHHIb?{2 * len(OBJECTS)}B3dd2dd{6 * len(OBJECTS)}d")
_MAGIC = b"kitchen2"
"""Begins a saved state; then env steps, the one with the last news, milestones, fingers, interrupt, levels, aim, roll,
place of the robot, way of the kettle, errors of the told handles, what of them was felt, and MuJoCo's own state."""
ARM_NOISE, BASE_NOISE, KETTLE_NOISE = 0.1, 0.03, 0.03
"""Half-widths of the uniform noise of a start: rad of each arm joint, m of the robot and of the kettle, along x and y.
Stock begins every episode alike."""
LEASH, MOST_ROLL = names.LEASH / 1000, names.MOST_ROLL / 1000
NEAR_HANDLE = 0.05
"""m between the point of the grip and a handle within which it counts as reached, and as grasped once held."""
GRIP_AHEAD = 0.03
"""m from the hand's site to the middle of the finger pads."""
AJAR_SHARE = 0.2
OPEN_GAP = 0.04
"""m that each finger moves."""
HELD_GAP, HELD_RATE = 0.006, 1.25
"""Fingers that were told to close hold something when they are further apart than this (m) and the gap does not close
at this rate (1/s). With nothing between them it closes at 5 (kp / damping of their actuators)."""
_JOINTS = [np.array(each.joints) for each in OBJECTS]
_KETTLE = names.INDEX["kettle"]
"""The only object whose start differs, and with it its way to the goal."""
_GOALS = [each.goal for each in OBJECTS]


class KitchenEnv:
    """See `protocol.Env`. `pool`: threads that simulate between `begin_step` and `step`; None: `step` does it all."""

    def __init__(self, task: Task, features: Sequence[str], pool: ThreadPoolExecutor | None = None) -> None:
        self.task = task
        self.steps = 0
        self._goals = [names.INDEX[name] for name in objects(task)]
        self._goal_bits = sum(1 << 4 * index + DONE for index in self._goals)
        self._model = copy.copy(compiled())
        self._data = mujoco.MjData(self._model)
        self._servo = Servo(self._model, self._data)
        self._site, self._sites, self._links = hand_site(), handle_sites(), link_bodies()
        self._pool = pool
        self._computing: Future[None] | None = None
        self._begun: NativeAction | None = None
        self._columns = columns(features)
        self._state = np.empty(mujoco.mj_stateSize(self._model, _PHYSICS))
        self._mask = np.ones(sum(names.HEADS), np.bool_)
        self.reset(0)

    # ---- episodes -----------------------------------------------------------------------------------
    def reset(self, seed: int) -> None:
        """Exact and blind tasks start alike on one seed: the errors of the told handles are drawn last."""
        self._await()
        draw = np.random.default_rng(seed)
        mujoco.mj_resetData(self._model, self._data)
        self._model.body_pos[BASE, :2] = draw.uniform(-BASE_NOISE, BASE_NOISE, 2)
        self._data.qpos[:] = HOME
        self._data.qpos[ARM] += draw.uniform(-ARM_NOISE, ARM_NOISE, 7)
        self._data.qpos[23:25] += draw.uniform(-KETTLE_NOISE, KETTLE_NOISE, 2)
        self._errors = draw.normal(0.0, 1.0, (len(OBJECTS), 3)) * float(self.task.start.get("blind", 0.0))
        self._felt = np.zeros((len(OBJECTS), 3))
        self.steps, self._news, self._reached = 0, 0, 0
        self._fingers, self._holding, self._interrupt = 1, False, False
        self._levels = np.zeros(2 * len(OBJECTS), np.uint8)
        self._data.ctrl[FINGERS] = OPEN_GAP
        self._derive()
        self._ways = np.array(self._rests()) - THRESHOLD
        self._aim = self._data.site_xpos[self._site].copy()
        self._roll = 0.0
        self._look()
        self._notice()

    def step(self, command: NativeAction) -> StepResult:
        if self._begun is None:
            self._act(command)
            self._simulate()
        self._await()
        before = self._reached
        self.steps += 1
        held = self._holding
        self._look()
        self._interrupt = held and not self._holding and self._fingers < 0
        known = self.novelty()
        self._notice()
        if self.novelty() != known:
            self._news = self.steps
        reward = float((self._reached & ~before & self._goal_bits).bit_count())
        return StepResult(reward, self.succeeded() or self.steps >= self.task.horizon, False)

    def begin_step(self, command: NativeAction) -> None:
        """Let the simulation begin in another thread (`mj_step` releases the interpreter lock)."""
        if self._pool is None:
            return
        self._act(command)
        self._begun = command
        self._computing = self._pool.submit(self._simulate)

    def _await(self) -> None:
        if self._computing is not None:
            self._computing.result()
        self._computing = self._begun = None

    def _act(self, command: NativeAction) -> None:
        """Move the aim and set the controls of the next env step."""
        dx, dy, dz, roll, fingers = command
        hand = self._data.site_xpos[self._site]
        lag = self._aim + np.array((dx, dy, dz)) / 1000 - hand
        length = float(np.linalg.norm(lag))
        self._aim = hand + lag * min(1.0, LEASH / length if length else 1.0)
        self._roll = max(-MOST_ROLL, min(MOST_ROLL, self._roll + roll / 1000))
        self._fingers = fingers or self._fingers
        self._data.ctrl[ARM] = self._servo.joint_targets(self._aim, self._roll)
        self._data.ctrl[FINGERS] = OPEN_GAP if self._fingers > 0 else 0.0

    def _simulate(self) -> None:
        mujoco.mj_step(self._model, self._data, SUBSTEPS)
        self._derive()

    def _derive(self) -> None:
        """What is read besides the state itself (places, Jacobians, bias forces) is made a function of the state, so
        that a restored env reads the same; `mj_step` leaves it as it was before its last substep. Not `mj_forward`: it
        would change `qacc_warmstart`, which belongs to the state."""
        mujoco.mj_fwdPosition(self._model, self._data)
        mujoco.mj_fwdVelocity(self._model, self._data)

    # ---- what has come about ------------------------------------------------------------------------
    def _look(self) -> None:
        """What is worked out from the state and the told errors alone."""
        data = self._data
        self._hand = data.site_xpos[self._site]
        grip = self._grip = self._hand + GRIP_AHEAD * data.site_xmat[self._site, 2::3]
        far = data.site_xpos[self._sites]
        self._told = far + self._errors
        far -= grip
        self._far = np.sqrt(np.einsum("ij,ij->i", far, far))
        """m from the grip to each handle as it is."""
        self._gap = float(data.qpos[FINGERS].sum())
        closing = -float(data.qvel[FINGERS].sum())
        self._holding = self._fingers < 0 and self._gap > HELD_GAP and closing < HELD_RATE * self._gap
        self._progress = np.clip(1.0 - (np.array(self._rests()) - THRESHOLD) / self._ways, 0.0, 1.0)

    def _rests(self) -> list[float]:
        """Stock's distance of each object to its goal."""
        joints = self._data.qpos
        return [math.dist(joints[each].tolist(), goal) for each, goal in zip(_JOINTS, _GOALS, strict=True)]

    def _notice(self) -> None:
        """Milestones and levels, which never fall in an episode."""
        progress = self._progress.tolist()
        for index, far in enumerate(self._far.tolist()):
            stages = (progress[index] >= AJAR_SHARE) << AJAR | (progress[index] >= 1.0) << DONE
            if far < NEAR_HANDLE:
                stages |= 1 << REACHED | self._holding << GRASPED
                if self._holding:
                    self._felt[index] = self._told[index] - self._grip
            self._reached |= stages << 4 * index
        count = len(OBJECTS)
        np.maximum(self._levels[:count], (10 * self._progress).astype(np.uint8), out=self._levels[:count])
        closeness = np.clip(20 - 20 * self._far, 0, 20).astype(np.uint8)
        np.maximum(self._levels[count:], closeness, out=self._levels[count:])

    def succeeded(self) -> bool:
        """Each object of the task has been at its goal in this episode, as stock counts."""
        return self._reached & self._goal_bits == self._goal_bits

    def milestones(self) -> frozenset[str]:
        reached = frozenset(name for bit, name in enumerate(MILESTONES) if self._reached >> bit & 1)
        return reached | {CHAIN} if len(self._goals) > 1 and self.succeeded() else reached

    def interrupt(self) -> bool:
        """Whether what was held has slipped out of closed fingers."""
        return self._interrupt

    def waiting(self) -> bool:
        return False

    def progress_key(self) -> int:
        """Of the hand in cells of 2 cm, the fingers, and the progress of each object in hundredths."""
        cells = np.floor(self._hand * 50).astype(int).tolist()
        return hash((*cells, self._fingers, *(100 * self._progress).astype(int).tolist()))

    def novelty(self) -> int:
        """Milestones, tenths of progress, and 5 cm that the hand came closer to a handle than before."""
        return self._reached.bit_count() + int(self._levels.sum())

    def distance(self, target: str) -> float | None:
        """To `<object>_handle`: cm from the hand to where the handle is said to be. To `<object>`: what is left of the
        way to its goal, in hundredths. Both are what the policy sees, so that a reward tells it no more."""
        name = target.removesuffix("_handle")
        index = names.INDEX[name]
        if name == target:
            return 100.0 * (1.0 - float(self._progress[index]))
        return 100.0 * math.dist(self._told[index].tolist(), self._hand.tolist())

    # ---- what is shown ------------------------------------------------------------------------------
    def observe(self) -> NDArray[np.float32]:
        """A fresh array."""
        row = np.empty(SIZE)
        target = next((index for index in self._goals if not self._reached >> 4 * index + DONE & 1), self._goals[-1])
        write_features(
            row, self._data, self._hand, self._aim, self._roll, self._gap, self._fingers, self._holding,
            self._progress, self._told, self._felt, target, 1.0 - self.steps / self.task.horizon,
            self.steps - self._news, self._reached,
        )  # fmt: skip
        np.clip(row, -1.0, 1.0, out=row)
        return row.astype(np.float32) if self._columns is None else row[self._columns].astype(np.float32)

    def pixels(self) -> NDArray[np.uint8]:
        raise ValueError("The kitchen draws no pixels; it has no OpenGL context.")

    def action_masks(self) -> NDArray[np.bool_]:
        return self._mask

    def view(self, whole: bool) -> bytes:
        """Whole or not, it is the same: there is no map to remember."""
        return names.VIEW.pack(
            self.steps, max(0, self.task.horizon - self.steps),
            *_millimetres(self._hand), *_millimetres(self._aim), round(1000 * self._roll),
            max(0, min(names.MOST_WIDTH, round(1000 * self._gap))), self._fingers, self._holding, self._reached,
            *np.floor(1000 * self._progress).astype(int).tolist(), *_millimetres(self._told),
        )  # fmt: skip

    def frame(self) -> bytes:
        links = self._data.xpos[self._links]
        return frame.pack(
            self.steps, max(0, self.task.horizon - self.steps), self._goals, self._reached, self._fingers,
            self._holding, max(0, round(1000 * self._gap)), _millimetres(links), _millimetres(self._hand),
            _millimetres(self._data.site_xpos[self._sites]), _millimetres(self._told),
            np.floor(100 * self._progress).astype(int).tolist(),
        )  # fmt: skip

    # ---- saving -------------------------------------------------------------------------------------
    def save(self) -> bytes:
        self._await()
        mujoco.mj_getState(self._model, self._data, self._state, _PHYSICS)
        own = _OWN.pack(
            _MAGIC, self.steps, self._news, self._reached, self._fingers, self._interrupt, *self._levels.tolist(),
            *self._aim.tolist(), self._roll, *self._model.body_pos[BASE, :2].tolist(), self._ways[_KETTLE],
            *self._errors.ravel().tolist(), *self._felt.ravel().tolist(),
        )  # fmt: skip
        return own + self._state.tobytes()

    def restore(self, state: bytes) -> None:
        """Continues under this env's own task: its horizon and goals hold."""
        self._await()
        if len(state) != _OWN.size + self._state.nbytes or state[:8] != _MAGIC:
            raise ValueError("These bytes are not a saved kitchen.")
        _, self.steps, self._news, self._reached, self._fingers, self._interrupt, *rest = _OWN.unpack_from(state)
        count = 2 * len(OBJECTS)
        self._levels = np.array(rest[:count], np.uint8)
        self._aim, self._roll = np.array(rest[count : count + 3]), rest[count + 3]
        self._model.body_pos[BASE, :2] = rest[count + 4 : count + 6]
        self._ways[_KETTLE] = rest[count + 6]
        self._errors, self._felt = np.array(rest[count + 7 :]).reshape(2, len(OBJECTS), 3)
        self._state[:] = np.frombuffer(state, offset=_OWN.size)
        mujoco.mj_resetData(self._model, self._data)
        mujoco.mj_setState(self._model, self._data, self._state, _PHYSICS)
        self._derive()
        self._look()

    def close(self) -> None:
        self._await()


def _millimetres(metres: NDArray[np.float64]) -> list[int]:
    return np.rint(1000 * metres).astype(int).ravel().tolist()
