"""A cluster on this machine is reached, and its nodes are looked at."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rlgpt.training.cluster import connect, nodes
from rlgpt.training.cluster.nodes import Nodes
from tests.ray_cluster import NEEDS_RAY, Machines

pytestmark = NEEDS_RAY


def test_nodes_that_fit_are_looked_at_once_and_others_again(machines: Machines) -> None:
    machines.add()
    found = Nodes(machines.address)
    assert [one.fault for one in found.look("crafter")] == [""]
    (fit,) = found.fitting("crafter")
    with pytest.raises(
        connect.NoCluster, match=r"no node of the cluster at .* can run this session: .*no world called"
    ):
        found.fitting("nowhere")
    assert found.fitting("crafter") == [fit] and found.cpus("crafter") == 1


class Counting(Nodes):
    asked = 0

    def _ask(self, *words: Any) -> Any:
        self.asked += 1
        return super()._ask(*words)


def test_a_node_that_hangs_is_asked_once_and_waited_for_once(
    machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until no other fits: each game that is opened looks at the nodes again."""
    machines.add()
    working = {node.id for node in Nodes(machines.address).fitting("crafter")}
    hanging = machines.add()
    machines.raylet(hanging).suspend()
    monkeypatch.setattr(nodes, "LOOK", 5.0)
    looked = Counting(machines.address)
    while {one.node.id for one in looked.look("crafter") if one.found} != working:  # some may need more than 5 s
        pass
    assert {node.id for node in looked.fitting("crafter")} == working and looked.asked <= len(working) + 1
    machines.lose(hanging)


def test_keys_are_looked_for_on_the_nodes(machines: Machines, tmp_path: Path) -> None:
    """Before a session is made; never in the environment here, from which none is sent."""
    machines.add(env_vars={"THEIR_KEY": "secret"})
    model = {"kind": "openai", "model": "m", "base_url": "https://models.example/v1"}
    found = Nodes(machines.address)
    found.need_keys(model | {"api_key_env": "THEIR_KEY"})
    found.need_keys({"kind": "rules"})
    line = [sys.executable, "-P", "-m", "rlgpt.console.cli", "run", "collect_wood", "--on", machines.address]
    line += ["--base-url", model["base_url"], "--model", "m", "--key-env", "OUR_KEY", "--detach"]
    environment = os.environ | {"OUR_KEY": "secret", "RLGPT_HOME": str(tmp_path)}
    done = subprocess.run(line, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode and "has the key: keys are never sent" in done.stderr and "set OUR_KEY" in done.stderr
    assert not list(tmp_path.glob("sessions/*"))


def test_a_connected_process_runs_an_actor_on_a_node(machines: Machines) -> None:
    machines.add(resources={"minecraft": 2})
    ray = connect.connect(machines.address)
    assert connect.connect("auto") is ray  # one connection a process
    (node,) = [node for node in connect.nodes(ray) if node.resources.get("minecraft") == 2]

    class Where:
        def node(self) -> str:
            import ray  # Ray is in the actor too

            return str(ray.get_runtime_context().get_node_id())

    actor = ray.remote(Where).options(resources={"minecraft": 1}).remote()
    assert ray.get(actor.node.remote(), timeout=60) == node.id
