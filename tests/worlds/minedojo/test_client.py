"""The real MineDojo 0.1 client, installed by the project's own command, against the double of the game."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from rlgpt.store import processes
from rlgpt.training.worlds.minedojo import catalogue, host_side, settings, tasks
from rlgpt.training.worlds.minedojo.bridge import CHILD, SHIM, Bridge
from rlgpt.training.worlds.minedojo.env import MineDojoEnv
from rlgpt.training.worlds.minedojo.host_side import NOOP, NVEC, View
from rlgpt.training.worlds.minedojo.items import CRAFT_ITEMS
from rlgpt.training.worlds.minedojo.processes import is_alive, marked
from rlgpt.training.worlds.minedojo.sense import lidar
from rlgpt.training.worlds.minedojo.settings import Settings
from rlgpt.training.worlds.minedojo.tasks import PAPER
from rlgpt.training.worlds.minedojo.world import MineDojoWorld
from tests.worlds.minedojo.conftest import DOUBLE, Double, Played

MILK = "harvest_milk_with_empty_bucket_and_cow"
LOG = "harvest_1_log_forest"


def look(env: MineDojoEnv) -> View:
    return host_side.decoder().view(env.view(True))


def put(env: MineDojoEnv, *commands: host_side.Command) -> View:
    for command in commands:
        env.step(command)
    return look(env)


# ---- spaces, masks, shapes ------------------------------------------------------------------------------
def test_our_craft_list_is_the_clients(client_python: Path) -> None:
    asked = catalogue.refresh(Settings(python=str(client_python)))
    assert [asked["recipes"][name]["index"] for name in CRAFT_ITEMS] == list(range(244))
    assert len(asked["tasks"]) == 1572


def test_actions_and_observations_have_the_clients_shapes(
    client_python: Path, start_double: Callable[..., Double]
) -> None:
    bridge = Bridge(Settings(python=str(client_python)))
    try:
        made = bridge.ask("make", 60, task=LOG, rays=lidar(50.0), image=[160, 256], pixels=True,
                          port=start_double().port)  # fmt: skip
        assert made == {"nvec": list(NVEC), "rgb": [3, 160, 256]}
        reply = bridge.ask("reset", 60, seed=0)
        assert len(reply["rgb"]) == 160 * 256 * 3
        assert len(reply["voxels"]) == 27
        assert [len(mask) * 8 for mask in reply["masks"]] == [40, 40, 40, 248]
        assert all(0 <= ray[0] < 120 for ray in reply["rays"])
    finally:
        bridge.end()


AGAINST_THE_CLIENT = """
import importlib.util, json, sys
import numpy
spec = importlib.util.spec_from_file_location("child", sys.argv[1])
child = importlib.util.module_from_spec(spec); spec.loader.exec_module(child)
made = child.Child(None, None, sys.argv[2], 0, sys.argv[4], ""); made.numpy = numpy; made._hello(True, "")
game = child.GAME.Game(made.client, numpy, json.loads(sys.argv[3]))
reply = game.reset(0)
for command in ([1, 0, 0, 12, 13, 0, 0, 0], [0, 0, 0, 12, 12, 4, 29, 0], [0, 0, 0, 12, 14, 0, 0, 0]) * 6:
    raw = game.sim.prev_info
    sensors = [sensor for sensor in game.sim._sim_spec.observables if sensor.to_string() != "rgb"]
    theirs = {sensor.to_string(): type(sensor).from_hero(sensor, raw) for sensor in sensors}
    for name in ("rays", "voxels", "equipment", "inventory", "life_stats", "location_stats"):
        space = game.env.observation_space[name]
        for key, value in theirs[name].items():
            assert numpy.shape(value) == space[key].shape, (name, key)
    seen = theirs["rays"]
    met = [i for i in range(120) if seen["entity_name"][i] != "null" or seen["block_name"][i] != "air"]
    assert [ray[0] for ray in reply["rays"]] == met
    for ray, entity, near, block, far, *cell in reply["rays"]:
        assert entity == ("" if seen["entity_name"][ray] == "null" else seen["entity_name"][ray])
        assert (block or "air") == seen["block_name"][ray]
        if block:
            assert numpy.float32(far) == seen["block_distance"][ray]
        assert not entity or numpy.float32(near) == seen["entity_distance"][ray]
        assert cell == [seen["traced_block_" + axis][ray] for axis in "xyz"]
    assert reply["voxels"] == theirs["voxels"]["block_name"].reshape(-1).tolist()
    assert reply["equipment"] == [name.replace(" ", "_") for name in theirs["equipment"]["name"].tolist()]
    masks = type(game.stepper).observation(game.stepper, dict(game.observation))["masks"]
    for told, name in zip(reply["masks"], ("equip", "place", "destroy", "craft_smelt")):
        space = game.env.observation_space["masks"][name]
        assert masks[name].shape == space.shape
        assert told == numpy.packbits(masks[name]).tobytes(), name
    reply = game.step(command)
assert {"log", "planks"} <= {name for _, name, _, _ in reply["inventory"]}
assert any(ray[1] for ray in reply["rays"]), "no animal was met"
print("the same")
"""


def test_what_the_bridge_tells_is_what_the_clients_own_sensors_and_masks_say(
    client_python: Path, start_double: Callable[..., Double]
) -> None:
    """The child reads rays, voxels and equipment from the game's answer and remembers masks; the client's own
    definitions must come to the same, in the shapes of its spaces."""
    options = {
        "task": "harvest", "rays": lidar(50.0), "image": [160, 256], "port": start_double().port,
        "arguments": {"target_names": "diamond", "target_quantities": 1, "specified_biome": "plains",
                      "initial_inventory": {"mainhand": {"name": "log", "quantity": 10}}},
    }  # fmt: skip
    done = subprocess.run(
        [str(client_python), "-W", "ignore", "-c", AGAINST_THE_CLIENT, str(CHILD), str(SHIM), json.dumps(options),
         processes.__file__],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.stdout.endswith("the same\n"), done.stderr


def test_paper_tasks_start_with_plan4mcs_inventory(double_world: Callable[..., Played]) -> None:
    played = double_world(doubles=1)
    for task in ("paper_milk", "paper_bed"):
        env = played.world.make(task)
        env.reset(0)
        held = PAPER[task].task.start.get("mainhand", {}).get("name", "air")
        assert look(env).holding == held
        env.close()


@pytest.mark.parametrize(
    "task",
    ["harvest_8_stone_swampland_with_furnace_and_fuel", "techtree_from_stone_to_iron_sword", "survival_sword_food",
     "combat_zombie_plains_iron_armors_iron_sword_shield"],
)  # fmt: skip
def test_a_programmatic_task_starts_with_its_own_inventory(double_world: Callable[..., Played], task: str) -> None:
    world = double_world().world
    env = world.make(task)
    env.reset(0)
    worn = {"head", "chest", "legs", "feet", "offhand"}
    start = {slot: entry["name"] for slot, entry in world.tasks[task].start.items() if slot not in worn}
    assert start and {name.replace(" ", "_") for name in start.values()} == set(look(env).inventory)
    env.close()


def test_every_programmatic_task_has_a_sheet(client_python: Path) -> None:
    catalogue.refresh(Settings(python=str(client_python)))
    world = MineDojoWorld(Settings(python=str(client_python)))
    assert len(world.tasks) == 1572 + len(PAPER)
    for task in world.tasks:
        told = world.sheet(task)
        assert told["milestones"][-1]["name"] == world.tasks[task].milestones[-1]


# ---- playing --------------------------------------------------------------------------------------------
def test_a_command_turns_and_walks_as_the_camera_bins_say(milk: MineDojoEnv) -> None:
    milk.reset(1)
    before = look(milk)
    after = put(milk, host_side.turn(30), host_side.turn(-45), host_side.turn(0, tilt=15))
    assert (after.yaw - before.yaw + 180) % 360 - 180 == pytest.approx(-15, abs=0.1)
    assert after.pitch == pytest.approx(15, abs=0.1)


def test_crafting_goes_from_logs_to_a_table_that_stands_nearby(double_world: Callable[..., Played]) -> None:
    env = double_world().world.make("paper_furnace_nearby")
    env.reset(0)
    view = put(env, *[host_side.craft("planks")] * 3)
    assert view.inventory["planks"] == 12
    view = put(env, host_side.craft("crafting_table"), host_side.craft("stick"), host_side.turn(0, tilt=45))
    view = put(env, host_side.place(view, "crafting_table"))
    assert view.near_table
    assert {"planks", "stick", "crafting_table", "near_table"} <= env.milestones()
    view = put(env, host_side.craft("wooden_pickaxe"))
    view = put(env, host_side.equip(view, "wooden_pickaxe"))
    assert view.holding == "wooden_pickaxe"
    env.close()


def test_a_slot_that_the_mask_forbids_never_reaches_the_client(milk: MineDojoEnv) -> None:
    milk.reset(1)
    empty_slot = (*NOOP[:5], 5, 0, 20)
    result = milk.step(empty_slot)
    assert not result.truncated
    assert "slot 20" in look(milk).refused
    milk.step((*NOOP[:5], 4, CRAFT_ITEMS.index("furnace"), 0))
    assert "lacks ingredients" in look(milk).refused
    milk.step(NOOP)
    assert look(milk).refused == ""


def test_a_fast_reset_gives_the_start_back_and_clears_the_animals(milk: MineDojoEnv) -> None:
    for seed in range(4):
        milk.reset(seed)
        view = look(milk)
        assert view.inventory == {"bucket": 1} and view.health == 20 and milk.steps == 0
        assert milk.milestones() == frozenset()


def test_the_time_limit_ends_the_episode_as_terminal(milk: MineDojoEnv) -> None:
    milk.reset(1)
    results = [milk.step(NOOP) for _ in range(200)]
    assert [r.terminated for r in results] == [False] * 199 + [True]
    assert not any(r.truncated for r in results)
    assert not milk.succeeded()


def test_death_ends_the_episode(double_world: Callable[..., Played]) -> None:
    env = double_world(reset_timeout=60).world.make("combat?target_names=zombie&target_quantities=1&initial_mobs=zombie"
                                  "&initial_mob_spawn_range_low=0,1,0&initial_mob_spawn_range_high=1,1,1&start_health=3"
                                  "&horizon=400")  # fmt: skip
    env.reset(2)
    for _ in range(400):
        result = env.step(NOOP)
        if result.terminated:
            break
    assert env.steps < 400 and not env.succeeded()
    assert look(env).health <= 0
    env.close()


def test_success_pays_the_tasks_reward_once_and_is_the_last_milestone(double_world: Callable[..., Played]) -> None:
    env = double_world().world.make("paper_furnace_nearby/planks")
    env.reset(0)
    result = env.step(host_side.craft("planks"))
    assert result.terminated and result.reward == 1.0 and env.succeeded()
    assert env.milestones() == {"planks"}
    env.close()


def test_the_frame_is_a_small_jpeg_with_compass_vitals_and_inventory(milk: MineDojoEnv) -> None:
    milk.reset(1)
    frame = milk.frame()
    assert len(frame) < 20_000
    with Image.open(io.BytesIO(frame)) as image:
        assert image.format == "JPEG" and image.size == (192, 120)
        told = image.info["comment"].decode().split("\n")
    assert told[0].startswith("facing ") and told[1:] == ["health 20, food 20, holding bucket", "inventory: bucket"]


def test_pixels_are_the_games_frame_the_right_way_up(double_world: Callable[..., Played]) -> None:
    env = double_world().world.make(MILK, pixels=True)
    env.reset(0)
    image = env.pixels()
    assert image.shape == (160, 256, 3)
    assert tuple(image[0, 0]) == (120, 167, 255)  # the double paints its sky so
    assert tuple(image[-1, 0]) == (88, 140, 60)
    env.close()


def test_observations_stay_within_the_features_bounds(milk: MineDojoEnv, double_world: Callable[..., Played]) -> None:
    world = double_world().world
    env = world.make(MILK, features=list(world.features))
    env.reset(3)
    low = np.concatenate([np.full(f.size, f.low) for f in world.features.values()])
    high = np.concatenate([np.full(f.size, f.high) for f in world.features.values()])
    rng = np.random.default_rng(0)
    for _ in range(60):
        env.step(world.native_action([int(rng.integers(12)), int(rng.integers(3))]))
        seen = env.observe()
        assert seen.shape == low.shape and np.all(seen >= low) and np.all(seen <= high)
    env.close()


def test_the_patched_client_says_what_the_unpatched_one_says(double_world: Callable[..., Played]) -> None:
    told = []
    for patch in (True, False):
        env = double_world(patch=patch).world.make(MILK)
        env.reset(5)
        steps = [env.step(host_side.move("forward", turn=15)) for _ in range(20)]
        told.append((steps, json.loads(env.view(True)), env.observe().tolist()))
        env.close()
    assert told[0] == told[1]


# ---- launching and ending -------------------------------------------------------------------------------
def test_launch_plays_and_close_leaves_no_process(launching_world: Callable[..., Played]) -> None:
    played = launching_world()
    env = played.world.make(MILK)
    env.reset(0)
    assert not env.step(NOOP).truncated
    record = played.events[0].detail
    env.close()
    assert is_alive(record["pid"], record["started"])  # parked for the next environment
    played.world.close()
    assert not is_alive(record["pid"], record["started"])
    assert marked(record["run"]) == []


def test_games_are_launched_one_at_a_time(launching_world: Callable[..., Played], tmp_path: Path) -> None:
    begun = f"mkdir {tmp_path}/launching || touch {tmp_path}/overlap; sleep 1; rmdir {tmp_path}/launching"
    played = launching_world(script=f'{begun}; exec {sys.executable} {DOUBLE} "$@"')
    envs = [played.world.make(MILK) for _ in range(2)]
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(lambda env: env.reset(0), envs))
    assert not (tmp_path / "overlap").exists()
    assert [env.step(NOOP).truncated for env in envs] == [False, False]
    folders = {event.detail["run"] for event in played.events if event.kind == "process"}
    assert len(folders) == 2 and folders <= {path.name for path in (settings.folder() / "runs").iterdir()}
    for env in envs:
        env.close()


def test_a_closed_environment_leaves_its_game_to_the_next_of_the_same_task(
    double_world: Callable[..., Played],
) -> None:
    played = double_world()
    for task in (MILK, MILK, LOG):
        env = played.world.make(task)
        env.reset(0)
        env.close()
    assert played.kinds() == ["process", "process"]  # the second milk took the first one's; log needed the room


def test_two_worlds_in_parallel_are_separate_games(double_world: Callable[..., Played]) -> None:
    played = double_world(doubles=2)
    one, two = (played.world.make(MILK) for _ in range(2))
    one.reset(0)
    two.reset(0)
    start = look(two)
    put(one, *[host_side.move("forward")] * 5)
    assert (look(two).x, look(two).z) == (start.x, start.z)
    one.close()
    two.close()


def test_a_step_begun_ahead_is_the_same_step_and_a_game_left_in_one_is_not_used_again(
    double_world: Callable[..., Played],
) -> None:
    played = double_world(doubles=2, options=("--seed", "3"))
    ahead, plain = (played.world.make(MILK) for _ in range(2))
    command = host_side.move("forward", turn=15)
    for env in (ahead, plain):
        env.reset(0)
    for _ in range(5):
        ahead.begin_step(command)
        assert ahead.step(command) == plain.step(command)
    assert ahead.view(True) == plain.view(True)
    ahead.begin_step(command)
    ahead.close()
    plain.close()
    env = played.world.make(MILK)
    env.reset(0)
    assert env.steps == 0 and not env.step(command).truncated
    env.close()


def test_a_reset_begun_ahead_is_the_same_reset(double_world: Callable[..., Played]) -> None:
    played = double_world(doubles=2, options=("--seed", "3"), remake_every=3)
    ahead, plain = (played.world.make(MILK) for _ in range(2))
    for seed in range(4):
        before = ahead.steps
        ahead.begin_reset(seed)
        assert ahead.steps == before
        for env in (ahead, plain):
            env.reset(seed)
        assert ahead.view(True) == plain.view(True) and ahead.steps == 0
        assert ahead.step(host_side.NOOP) == plain.step(host_side.NOOP)
    assert played.kinds().count("remake") == 2
    ahead.begin_reset(9)
    ahead.close()
    plain.close()


def test_a_game_that_dies_in_a_reset_begun_ahead_is_started_again(launching_world: Callable[..., Played]) -> None:
    played = launching_world("--die-after", "8")
    env = played.world.make(MILK)
    env.reset(0)
    env.begin_reset(1)
    env.reset(1)
    assert played.kinds() == ["process", "fault", "restart", "process"]
    assert not env.step(host_side.NOOP).truncated
    env.close()


def test_the_world_is_generated_anew_every_n_episodes(double_world: Callable[..., Played]) -> None:
    played = double_world(remake_every=2)
    env = played.world.make(MILK)
    for seed in range(3):
        env.reset(seed)
    assert played.kinds() == ["process", "remake", "process"]
    env.close()


def test_a_parked_games_episodes_count_towards_a_new_world(double_world: Callable[..., Played]) -> None:
    played = double_world(remake_every=2)
    for seed in range(3):
        env = played.world.make(MILK)
        env.reset(seed)
        env.close()
    assert played.kinds() == ["process", "remake", "process"]


def test_to_live_at_the_horizon_is_to_survive(
    double_world: Callable[..., Played], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "TECH", 5)
    env = double_world().world.make("survival")
    env.reset(0)
    results = [(env.step(host_side.NOOP).terminated, env.succeeded()) for _ in range(5)]
    assert results == [(False, False)] * 4 + [(True, True)] and env.milestones() == {"success"}
    env.close()


def test_the_benchmark_of_the_bridge_runs_to_its_end(client_python: Path) -> None:
    benchmark = DOUBLE.parents[3] / "benchmarks" / "minedojo.py"
    environment = {**os.environ, "RLGPT_MINEDOJO_PYTHON": str(client_python)}
    command = [sys.executable, "-P", str(benchmark), "--steps", "3", "--rounds", "1", "--json"]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert set(json.loads(ran.stdout)["steps_per_second"]) == {"bridge", "client", "unpatched", "lean"}
