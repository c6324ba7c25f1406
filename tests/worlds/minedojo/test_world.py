"""Tasks, sights, script book, settings and doctor of Minecraft: no client needed."""

from __future__ import annotations

import ast
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from rlgpt.training.worlds import registry
from rlgpt.training.worlds.minedojo import bridge, doctor, mineclip, scripts, sense
from rlgpt.training.worlds.minedojo.caption import caption
from rlgpt.training.worlds.minedojo.processes import (
    MARK,
    ProcessRecord,
    end,
    marked,
    started_at,
    sweep,
    sweep_folder,
    write_record,
)
from rlgpt.training.worlds.minedojo.settings import BadSetting, Settings, from_environment
from rlgpt.training.worlds.minedojo.tasks import LONG, PAPER, STARTERS, TaskList
from rlgpt.training.worlds.minedojo.world import MineDojoWorld
from rlgpt.training.worlds.optional_parts import side_by_side
from rlgpt.training.worlds.protocol import UnknownTask, World
from tests.store.keeping import until


@pytest.fixture
def world() -> MineDojoWorld:
    return MineDojoWorld(Settings(python="/nowhere"))


def test_it_is_a_world_of_the_registry(world: MineDojoWorld) -> None:
    assert isinstance(world, World)
    assert "minedojo" in registry.names()


def test_the_papers_tasks_are_listed_without_the_client(world: MineDojoWorld) -> None:
    assert list(world.tasks) == [*PAPER, *STARTERS]
    assert len(PAPER) == 11
    assert {t.horizon for t in (p.task for p in PAPER.values())} == {3000, 5000, 10000, 18000}


def test_milk_and_wool_have_the_papers_short_horizon(world: MineDojoWorld) -> None:
    for task in ("harvest_milk_with_empty_bucket_and_cow", "harvest_wool_with_shears_and_sheep"):
        assert world.tasks[task].horizon == 200


def test_a_meta_task_takes_its_arguments_from_its_name(world: MineDojoWorld) -> None:
    task = world.tasks["harvest?target_names=log&target_quantities=8&specified_biome=forest&horizon=700"]
    assert task.milestones == ("8 log",) and task.horizon == 700
    made = world._tasks.client_task(task.id)
    assert made.client_id == "harvest"
    assert made.arguments == {"target_names": "log", "target_quantities": 8, "specified_biome": "forest"}


def test_a_meta_task_may_say_what_one_starts_with(world: MineDojoWorld) -> None:
    task = world.tasks["harvest?target_names=stick&target_quantities=1&start=planks:2,crafting_table"]
    start = {"mainhand": {"name": "planks", "quantity": 2}, "1": {"name": "crafting_table", "quantity": 1}}
    assert task.start == start
    assert world._tasks.client_task(task.id).arguments["initial_inventory"] == start


@pytest.mark.parametrize(
    "task",
    [
        "harvest_log", "harvest?target_names=log", "paper_stick/diamond", "paper_stick/stick",
        "harvest?target_names=log&target_quantities=1&start=planks:many",
    ],
)  # fmt: skip
def test_an_unknown_task_is_one_sentence(world: MineDojoWorld, task: str) -> None:
    with pytest.raises(UnknownTask) as caught:
        world.tasks[task]
    assert str(caught.value.args[0])


def test_sub_tasks_are_tasks_with_the_same_start(world: MineDojoWorld) -> None:
    whole = world.tasks["paper_furnace_nearby"]
    for name in whole.sub_tasks:
        part = world.tasks[name]
        assert part.start == whole.start
        assert part.milestones == whole.milestones[: len(part.milestones)]


def test_no_script_is_refused_by_python_and_each_names_itself(world: MineDojoWorld) -> None:
    for task in world.tasks:
        names = [script.name for script in world.scripts(task)]
        assert len(names) == len(set(names))
        for script in world.scripts(task):
            ast.parse(script.done_when, mode="eval")
            assert set(script.needs) <= set(names)
            for source in script.sources:
                (function,) = ast.parse(source).body
                assert isinstance(function, ast.FunctionDef) and function.name == script.name


def test_what_was_used_up_is_not_fetched_again() -> None:
    recipes = {"planks": {"needs": {"log": 1}}, "stick": {"needs": {"planks": 2}}, "axe": {"needs": {"planks": 3}}}
    done = scripts.predicates(("log", "planks", "stick", "near_table", "axe"), recipes)

    def holds(milestone: str, **bag: int) -> bool:
        start, view = SimpleNamespace(inventory={}), SimpleNamespace(inventory=bag, near_table=False)
        return bool(eval(done[milestone], {"start": start, "view": view}))

    assert not holds("log") and holds("log", log=1) and holds("log", axe=1, stick=4)
    assert not holds("log", planks=4), "two for the stick and three for the axe"
    assert holds("planks", planks=5) and holds("planks", planks=3, stick=4) and not holds("planks", planks=3)
    assert holds("stick", stick=4) and not holds("stick") and done["near_table"] == "view.near_table"
    assert holds("axe", axe=1) and not holds("axe")


def test_a_bed_is_made_and_not_hunted() -> None:
    recipes = {"bed": {"needs": {"wool": 3, "planks": 3}, "near": "crafting_table"},
               "planks": {"needs": {"log": 1}, "near": ""}}  # fmt: skip
    names = [script.name for script in scripts.for_task(PAPER["paper_bed"], recipes)]
    assert names[-2:] == ["place_crafting_table", "craft_bed"] and "hit_sheep" not in names


def test_a_sub_tasks_scripts_are_done_when_those_of_the_whole_task_are(world: MineDojoWorld) -> None:
    whole = {script.name: script for script in world.scripts("paper_furnace_nearby")}
    for name in world.tasks["paper_furnace_nearby"].sub_tasks:
        assert all(script == whole[script.name] for script in world.scripts(name))


def test_the_sheet_speaks_of_what_the_library_offers(world: MineDojoWorld) -> None:
    from rlgpt.training.worlds.minedojo.host_side import LIBRARY, View

    told = world.sheet("paper_wooden_pickaxe")
    assert all(name in told["library_doc"] for name in LIBRARY)
    assert all(f".{name}" in told["view_doc"] for name in View._fields)
    assert json.dumps(told)


# ---- sights ---------------------------------------------------------------------------------------------
def test_a_bearing_points_where_the_thing_is() -> None:
    east = sense.bearing((0.0, 0.0, 0.0, 0.0, 0.0), 10.0, sense.EYE, 0.0)
    assert east == pytest.approx((-90.0, 0.0, 10.0))
    below = sense.bearing((0.0, 0.0, 0.0, 90.0, 20.0), -3.0, sense.EYE - 3.0, 0.0)
    assert below == pytest.approx((0.0, 25.0, math.hypot(3, 3)))


def test_a_ray_keeps_its_nominal_pitch_only_along_z() -> None:
    ray = 4 * len(sense.YAWS) + 6  # pitch -6, yaw 0
    assert sense.ray_direction(0.0, 0.0, ray)[1] == pytest.approx(-math.sin(math.radians(6)))
    assert sense.ray_direction(90.0, 0.0, ray)[1] == pytest.approx(0.0)


def test_sights_keep_the_nearest_of_each_name_first() -> None:
    place = (0.0, 0.0, 0.0, 0.0, 0.0)
    rays = [
        [66, "cow", 6.0, "wood", 9.0, 0.0, 1.0, 9.0],
        [67, "cow", 5.0, "", -1.0, 0.0, 0.0, 0.0],
        [68, "", -1.0, "grass block", 3.0, 0.0, -1.0, 3.0],
    ]
    seen = sense.sights(place, rays)
    assert [(s.name, s.distance, s.is_animal) for s in seen] == [
        ("grass", 3.0, False), ("cow", 5.0, True), ("log", 9.0, False),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("yaw", "facing"), [(0, "south"), (90, "west"), (180, "north"), (-90, "east"), (-40, "south-east")]
)
def test_the_caption_says_where_one_looks_and_what_one_has(yaw: float, facing: str) -> None:
    reply = {
        "place": [1.6, 4.0, -2.2, yaw, 15.0], "life": [20.0, 18.0], "equipment": ["iron_axe"],
        "inventory": [[0, "iron_axe", 1, 250], [3, "oak_log", 2, 0], [4, "oak_log", 64, 0]],
    }  # fmt: skip
    told = caption(reply).split("\n")
    assert told[0] == f"facing {facing} (yaw {yaw}, pitch 15) at 2 4 -2"
    assert told[2] == "inventory: iron axe, 66 oak log"


# ---- settings, doctor, bounds ---------------------------------------------------------------------------
def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLGPT_MINEDOJO_PORTS", "9000,9001")
    monkeypatch.setenv("RLGPT_MINEDOJO_STEP_TIMEOUT", "12.5")
    monkeypatch.setenv("RLGPT_MINEDOJO_PATCH", "0")
    settings = from_environment()
    assert settings.port_list == (9000, 9001) and settings.step_timeout == 12.5 and settings.patch is False


@pytest.mark.parametrize(
    ("name", "value"), [("IMAGE", "large"), ("PORTS", "a,b"), ("GAMES", "many"), ("PATCH", "maybe"), ("REWARD", "x")]
)
def test_a_bad_setting_is_named(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(f"RLGPT_MINEDOJO_{name}", value)
    with pytest.raises(BadSetting, match="RLGPT_MINEDOJO_"):
        from_environment()


def test_a_world_says_how_many_games_it_bears() -> None:
    assert side_by_side(MineDojoWorld(Settings(python="/nowhere", ports="1,2")), 16) == 2
    assert side_by_side(MineDojoWorld(Settings(python="/nowhere", games=3)), 16) == 3
    assert side_by_side(MineDojoWorld(Settings(python="/nowhere")), 1) == 1


def java_that_says(folder: Path, version: str) -> None:
    program = folder / "java"
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    program.chmod(0o755)


@pytest.mark.parametrize(("version", "good"), [("1.8.0_392", True), ("17.0.15", False), ("11.0.2", False)])
def test_doctor_wants_java_8(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, good: bool) -> None:
    java_that_says(tmp_path, version)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/bin")
    found = doctor.java()
    assert found.ok is good and version in found.sentence and bool(found.cure) is not good


def test_doctor_misses_java_display_and_game(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("MINEDOJO_HEADLESS", raising=False)
    for found in (doctor.java(), doctor.display(), doctor.jar(tmp_path)):
        assert not found.ok and found.cure and "\n" not in found.sentence


def test_doctor_finds_a_built_game(tmp_path: Path) -> None:
    jar = tmp_path / doctor.JAR
    jar.parent.mkdir(parents=True)
    jar.write_bytes(b"PK" * 100)
    assert doctor.jar(tmp_path).ok


def test_without_the_client_the_doctor_says_how_to_install_it(own_home: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "rlgpt.training.service"], input='{"ask": "minedojo_needs"}\n',
        capture_output=True, text=True, check=True, env=os.environ | {"RLGPT_HOME": str(own_home / "empty")},
    )  # fmt: skip
    findings = json.loads(done.stdout)["ok"]
    assert findings[0]["item"] == "client" and not findings[0]["ok"]
    assert findings[0]["cure"] == "rlgpt minedojo install"
    assert all({"item", "ok", "sentence", "cure"} <= finding.keys() for finding in findings)


def test_mineclip_is_not_offered_without_its_package(world: MineDojoWorld) -> None:
    assert "not installed" in mineclip.available()
    assert "mineclip" not in world.features
    with pytest.raises(mineclip.MineClipMissing, match="not offered"):
        mineclip.Embedding("milk a cow", ())


# ---- the child's file, processes ------------------------------------------------------------------------
def test_the_bridge_child_is_valid_python_3_9_and_imports_nothing_of_ours() -> None:
    for path in [bridge.CHILD, bridge.CHILD.with_name("game.py"), *bridge.SHIM.rglob("*.py")]:
        tree = ast.parse(path.read_text(), feature_version=(3, 9))
        for node in ast.walk(tree):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not any(name.startswith("rlgpt") for name in names)
            assert not isinstance(node, ast.Match)
    assert "from __future__ import annotations" in bridge.CHILD.read_text()


def test_an_ending_reaches_a_process_that_left_the_group(tmp_path: Path) -> None:
    """The client starts the game in a session of its own."""
    run = f"run-of-this-test-{os.getpid()}"  # not the one of a test that was killed
    code = "import subprocess, sys; subprocess.Popen(['sleep', '600'], start_new_session=True); print('on', flush=True)"
    process = subprocess.Popen(
        [sys.executable, "-c", code], env=os.environ | {MARK: run}, stdout=subprocess.PIPE, start_new_session=True
    )
    assert process.stdout is not None and process.stdout.readline() == b"on\n"
    process.wait()
    until(lambda: len(marked(run)) == 1)  # the kernel shows the environment of a new process a little later
    assert end(run) == 1
    assert marked(run) == []


def test_a_sweep_spares_the_runs_of_a_living_owner() -> None:
    me = os.getpid()
    record = ProcessRecord("some-run", me, started_at(me) or 0.0, me, started_at(me) or 0.0)
    assert sweep([record]) == []
    gone = ProcessRecord("other-run", 2**22, 1.0, 2**22, 1.0)
    assert sweep([gone]) == []


def test_what_a_gone_owner_left_on_the_disk_goes_with_the_sweep(tmp_path: Path) -> None:
    me = os.getpid()
    for run, owner in (("mine", me), ("left", 2**22)):
        (tmp_path / run).mkdir()
        write_record(tmp_path / run, ProcessRecord(run, 2**22, 1.0, owner, started_at(owner) or 1.0))
    assert sweep_folder(tmp_path) == []
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


CLIENT_RECIPES = {
    "planks": {"index": 29, "needs": {"log": 1}, "gives": 4, "near": ""},
    "stick": {"index": 41, "needs": {"planks": 2}, "gives": 4, "near": ""},
    "crafting_table": {"index": 7, "needs": {"planks": 4}, "gives": 1, "near": ""},
    "wooden_pickaxe": {"index": 216, "needs": {"planks": 3, "stick": 2}, "gives": 1, "near": "crafting_table"},
    "furnace": {"index": 120, "needs": {"cobblestone": 8}, "gives": 1, "near": "crafting_table"},
    "stone": {"index": 243, "needs": {"cobblestone": 1}, "gives": 1, "near": "furnace"},
    "hay_block": {"index": 140, "needs": {"wheat": 9}, "gives": 1, "near": "crafting_table"},
    "wheat": {"index": 49, "needs": {"hay_block": 1}, "gives": 9, "near": ""},
}


def test_a_pickaxe_is_made_before_what_needs_it() -> None:
    tasks = TaskList({"recipes": CLIENT_RECIPES})
    stone = tasks["harvest?target_names=stone&target_quantities=1"]
    assert stone.milestones.index("wooden_pickaxe") < stone.milestones.index("cobblestone")
    assert stone.horizon == LONG
    owned = tasks["harvest?target_names=stone&target_quantities=1&start=golden_pickaxe"]
    assert "wooden_pickaxe" not in owned.milestones


def test_a_milestone_is_named_once_where_recipes_go_in_circles() -> None:
    milestones = TaskList({"recipes": CLIENT_RECIPES})["harvest?target_names=wheat&target_quantities=8"].milestones
    assert len(set(milestones)) == len(milestones)


@pytest.mark.parametrize(
    "more",
    ["horizon=abc", "horizon=0", "horizon=1,2", "target_quantities=--5", "target_quantities=0", "start=log:²",
     "initial_inventory=log"],
)  # fmt: skip
def test_a_bad_argument_of_a_meta_task_is_named(world: MineDojoWorld, more: str) -> None:
    quantity = "" if more.startswith("target_quantities") else "&target_quantities=1"
    with pytest.raises(UnknownTask) as caught:
        world.tasks[f"harvest?target_names=log{quantity}&{more}"]
    assert more.partition("=")[0].partition("_")[0] in str(caught.value.args[0])


def test_sights_have_the_names_of_the_clients_tasks() -> None:
    ray = [0, "witherskeleton", 3.0, "", -1.0, 0, 0, 0]
    assert [sighting.name for sighting in sense.sights((0, 0, 0, 0, 0), [ray])] == ["wither_skeleton"]


@pytest.mark.parametrize(
    ("name", "value"),
    [("GAMES", "0"), ("RESTARTS", "-1"), ("IMAGE", "0x0"), ("PORTS", "99999"), ("RESET_TIMEOUT", "nan"),
     ("STEP_TIMEOUT", "-1"), ("LIDAR_RANGE", "inf")],
)  # fmt: skip
def test_a_number_that_makes_no_sense_is_refused(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(f"RLGPT_MINEDOJO_{name}", value)
    with pytest.raises(BadSetting, match=f"RLGPT_MINEDOJO_{name}"):
        from_environment()
