"""Every world here passes the conformance check, and the check sees what is broken."""

import pytest

from rlgpt.training.worlds import registry
from rlgpt.training.worlds.conformance import check
from tests.worlds.corridor import CorridorEnv, CorridorWorld

WORLDS = ("crafter", "tests.worlds.corridor:make_world", "tests.worlds.corridor:make_two_heads")


@pytest.mark.parametrize("name", WORLDS)
def test_it_passes(name):
    broken = [finding for finding in check(registry.get(name)) if not finding.ok]
    assert not broken


class Leaky(CorridorEnv):
    """Looking at it moves the agent."""

    def frame(self):
        self._position = min(self._position + 1, 3)
        return super().frame()


class Forgetful(CorridorEnv):
    def restore(self, state):
        super().restore(state)
        self._flags = 0


class Eternal(CorridorEnv):
    def step(self, command):
        return super().step(command)._replace(terminated=False)


class Giant(CorridorEnv):
    def observe(self):
        return super().observe() * 9


@pytest.mark.parametrize(
    ("env", "promise"),
    [
        (Leaky, "observers change nothing"),
        (Forgetful, "save and restore are exact"),
        (Eternal, "time limits terminate"),
        (Giant, "features keep their shapes and ranges"),
    ],
)
def test_it_names_the_broken_promise(env, promise):
    class Broken(CorridorWorld):
        def make(self, task, *, features=None, pixels=False):
            made = super().make(task, features=features, pixels=pixels)
            return env(self, made.task, features or self.default_features)

    assert promise in {finding.what for finding in check(Broken()) if not finding.ok}
