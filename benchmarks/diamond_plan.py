"""What each idea of the plan for collect_diamond is worth: `python -P benchmarks/diamond_plan.py`.

The last versions of the script book are played as they are, then with one idea taken out at a time: 1,000 held-out
episodes of each seed, successes with Wilson's 95% interval, and the pairs of episodes that only one of two plans won
(+ those that only the plan with less won). No session has these episodes, and nothing was chosen by those of the seeds
9210 and 9211. About 80 seconds a plan on two cores.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Mapping

from rlgpt.store.intervals import wilson
from rlgpt.training.host.api import Action, Host, PlanItem
from rlgpt.training.host.client.open_host import open_host
from rlgpt.training.options.slots import CodedAction
from rlgpt.training.rollouts.evaluation import FollowPlan, evaluate
from rlgpt.training.rollouts.script_bot import script_bot
from rlgpt.training.seeds import episode_seed
from rlgpt.training.worlds.crafter.world import make_world

TASK = "collect_diamond"
LANES = 16
TO_STONE_PICKAXE = ("collect_wood", "place_table", "make_wood_pickaxe", "collect_stone", "make_stone_pickaxe")

SEARCH = {
    'scout(view, "stone", "coal", "iron", "path", dig=True, bridge=True)':
        'explore(view, "stone", "coal", "path", dig=True, bridge=True)',
    'scout(view, "stone", "coal", "iron", "path", dig=True, bridge=True, avoid=ground)':
        'explore(view, "stone", "coal", "path", dig=True, bridge=True, avoid=ground)',
    'scout(view, "stone", "path", "coal", "iron")': 'explore(view, "stone", "path", "coal", "iron")',
}  # fmt: skip
TAKEN_OUT: Mapping[str, Mapping[str, str]] = {
    "explore for scout": SEARCH,
    "iron before all coal": {'if material == "iron" and not': 'if material == "silver" and not'},
    "food before diamond": {" and not near_diamond(view):": ":"},
    "no skeleton hunted": {"fight(view) or hunt(view)": "fight(view)"},
    "as if it never lasts": {"view.health * 16 > view.steps_left + 40": "False"},
    "shelter all night": {"and material and not weary(view)": "and False"},
}
"""An idea -> what the sources say -> what they say without it."""
FIRST_VERSIONS = {"table by the trees": ("place_table",), "first to stone pickaxe": TO_STONE_PICKAXE}


def plan_of(host: Host, taken_out: Mapping[str, str], first: tuple[str, ...]) -> FollowPlan:
    world = make_world()
    env = world.make(TASK)
    view = env.view(True)
    env.close()
    scripts = {script.name: script for script in world.scripts(TASK)}
    order = [script.name for script in script_bot(world, TASK)]
    options, plan, replaced = [], [], set()
    for name in order:
        source = scripts[name].sources[0 if name in first else -1]
        for old, new in taken_out.items():
            replaced |= {old} if old in source else set()
            source = source.replace(old, new)
        said = host.admit("action", source, [[view]])
        host.admit("done_when", scripts[name].done_when, [[view]])
        options.append(CodedAction(name, source, said.tree_hash))
        plan.append(PlanItem(scripts[name].done_when, Action(said.source_hash)))
    assert replaced == set(taken_out), "the script book has changed"
    return FollowPlan(world, plan, {}, options=options, names=order)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=1000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[9210, 9211])
    arguments = parser.parse_args()
    plans: dict[str, tuple[Mapping[str, str], tuple[str, ...]]] = {"last versions": ({}, ())}
    plans |= {name: (taken_out, ()) for name, taken_out in TAKEN_OUT.items()}
    plans |= {name: ({}, first) for name, first in FIRST_VERSIONS.items()}
    world = make_world()
    host = open_host(world, lanes=LANES, mode="locked")
    seeds = [episode_seed(seed, "test", index) for seed in arguments.seeds for index in range(arguments.episodes)]
    as_it_is: list[bool] = []
    for name, (taken_out, first) in plans.items():
        played = evaluate(world, TASK, plan_of(host, taken_out, first), host, seeds, n_envs=LANES)
        won = [episode.success for episode in played.episodes]
        as_it_is = as_it_is or won
        pairs = Counter(zip(as_it_is, won, strict=True))
        low, high = wilson(sum(won), len(won))
        ends = ", ".join(f"{end} {count}" for end, count in played.failures["ends"].items() if end != "success")
        print(
            f"{name:22s} {sum(won)}/{len(won)} {sum(won) / len(won):.3f} [{low:.3f}, {high:.3f}]  "
            f"+{pairs[False, True]} -{pairs[True, False]}  {ends}",
            flush=True,
        )
    host.close()


if __name__ == "__main__":
    main()
