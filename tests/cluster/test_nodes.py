"""A cluster on this machine is reached, and its nodes are looked at."""

from __future__ import annotations

import pytest

from rlgpt.training.cluster import connect
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
