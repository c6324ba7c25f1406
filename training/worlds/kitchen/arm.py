"""The servo: joint targets that bring the site `end_effector` to a place and orientation, by damped least squares.

Wampler 1986, "Manipulator inverse kinematic solutions based on vector formulations and damped least-squares methods".
Stock's action is a joint velocity whose zero lets the arm sink; here a command of zeros holds the hand where it is.
"""

from __future__ import annotations

import math

import mujoco
import numpy as np
from numpy.typing import NDArray

from rlgpt.training.worlds.kitchen.model import ARM, hand_site

DAMPING = 0.05
"""Of the least-squares solution: larger values move the joints less where the arm is nearly singular."""
POSTURE = np.array([-0.5, -0.8, 1.5, -2.0, 0.0, 1.2, 1.6])
POSTURE_SHARE = 0.1
"""Share of the way to this posture each env step, in the one joint motion that does not move the hand. Stock's own
start has the second joint at its limit, from which the lower handles cannot be reached."""
GAIN = 2.0
"""The actuators cover about half of a joint's error in an env step (damping / kp = 0.115 s), so twice the error is
asked for: measured, the hand then follows 12 mm a step with 1 mm and 40 mm along y with 5 mm of lag."""
_STIFFNESS = np.array([870.0] * 4 + [120.0] * 3)
"""kp of the position actuators (franka_assets/actuator.xml)."""
_FORWARD = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
"""Orientation of the hand at roll 0: it points along y, the fingers open along x."""
_DAMPED = DAMPING**2 * np.eye(6)
_LIMIT_MARGIN = 0.02
"""rad that a joint stays away from its limits."""


class Servo:
    """Computes joint targets for one model and its state. The kinematics of the state must be up to date with
    `qpos`."""

    def __init__(self, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        self._model, self._data = model, data
        self._site = hand_site()
        self._jacobian = np.zeros((6, model.nv))
        self._error = np.zeros(6)
        margins = np.array([[_LIMIT_MARGIN], [-_LIMIT_MARGIN]])
        self._lowest_joints, self._highest_joints = model.jnt_range[ARM].T + margins

    def joint_targets(self, aim: NDArray[np.float64], roll: float) -> NDArray[np.float64]:
        """(7,) controls for the next env step; `aim` in metres, `roll` in radians about the hand's own axis."""
        data, error = self._data, self._error
        joints = data.qpos[ARM]
        cosine, sine = math.cos(roll), math.sin(roll)
        orientation = _FORWARD @ np.array([[cosine, -sine, 0.0], [sine, cosine, 0.0], [0.0, 0.0, 1.0]])
        turn = orientation @ data.site_xmat[self._site].reshape(3, 3).T
        error[:3] = aim - data.site_xpos[self._site]
        error[3:] = turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0], turn[1, 0] - turn[0, 1]
        error[3:] *= 0.5  # sine of the angle times the axis: the rotation vector for the small angles that occur
        mujoco.mj_jacSite(self._model, data, self._jacobian[:3], self._jacobian[3:], self._site)
        jacobian = self._jacobian[:, ARM]
        move = self._within_limits(joints, jacobian, error, POSTURE_SHARE * (POSTURE - joints))
        # The bias force divided by the stiffness is the error that a position actuator needs to carry the arm.
        targets: NDArray[np.float64] = joints + GAIN * move + data.qfrc_bias[ARM] / _STIFFNESS
        return targets

    def _within_limits(
        self, joints: NDArray[np.float64], jacobian: NDArray[np.float64], error: NDArray[np.float64],
        home: NDArray[np.float64],
    ) -> NDArray[np.float64]:  # fmt: skip
        """(7,) joint motion in rad. Joints that would pass their limits stop there, and the others compensate."""
        move = home + jacobian.T @ np.linalg.solve(jacobian @ jacobian.T + _DAMPED, error - jacobian @ home)
        beyond = np.zeros(7, np.bool_)
        for _ in range(2):
            cut = np.clip(joints + move, self._lowest_joints, self._highest_joints) - joints
            beyond |= np.abs(cut - move) > 1e-9
            if not beyond.any():
                break
            part = jacobian * ~beyond
            target = np.where(beyond, cut, home)
            move = target + part.T @ np.linalg.solve(part @ part.T + _DAMPED, error - jacobian @ target)
        return move
