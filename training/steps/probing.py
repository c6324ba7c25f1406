"""Runs what the fast agent tries while it writes a sub-action's code (agents/probes.py).

A probe is a small trial: the same host, the same way to where the plan needs the sub-action, the same limits and the
same words for what was lost. Its episodes have `train` seeds, so the trials that decide have others. It depends on the
source and on the code that acts when the question's turn has come, which are rows, and on nothing else.
"""

from __future__ import annotations

import json
from dataclasses import replace

from rlgpt.agents.context import Context
from rlgpt.agents.probes import Probe
from rlgpt.store import failures
from rlgpt.store.history import History, Item
from rlgpt.store.row_types import tell_refusal
from rlgpt.training.host.api import Action
from rlgpt.training.options.slots import noop_of
from rlgpt.training.rollouts import trials
from rlgpt.training.rollouts.evidence import Describer
from rlgpt.training.rollouts.trial_result import TrialResult
from rlgpt.training.seeds import episode_seed
from rlgpt.training.session.runtime import SessionRuntime
from rlgpt.training.steps.admission import admit, wrong_name
from rlgpt.training.steps.leads import lead_to, refused_predicate
from rlgpt.training.steps.observer import StepObserver
from rlgpt.training.worlds.optional_parts import is_slow

EPISODES = 3
MOST_TOLD = 6_000
"""Characters of what a model is told of a probe."""
WAIT = 'def wait(view):\n    while True:\n        view = yield {noop!r}\n'


def with_probes(runtime: SessionRuntime, context: Context) -> Context:
    """The context of a question about code, with what the model may try. Nothing where an episode takes minutes."""
    return context if is_slow(runtime.world) else replace(context, prober=_Prober(runtime, context.history))


class _Prober:
    """Asked by the thread of a call; plays in the loop's."""

    def __init__(self, runtime: SessionRuntime, history: History) -> None:
        """`history`: as it was when the question was put."""
        self._runtime, self._history = runtime, history

    def try_action(self, item: Item, source: str) -> Probe:
        return self._runtime.in_the_loop(lambda: self._try(item, source))

    def look(self, item: Item, seed: int, step: int) -> Probe:
        return self._runtime.in_the_loop(lambda: self._look(item, seed, step))

    def _try(self, item: Item, source: str) -> Probe:
        admission = admit(self._runtime, "action", source)
        if not admission.admitted:
            sentence = tell_refusal(admission.rule, admission.line, admission.message)
            return Probe(f"refused, {sentence}"[:MOST_TOLD])
        if admission.name != item.name:
            return Probe(f"refused: {wrong_name(item.name, admission.name)}")
        result = self._play(item, source, range(EPISODES), item.max_steps)
        return result if isinstance(result, Probe) else Probe(self._tried(result)[:MOST_TOLD], result.env_steps)

    def _look(self, item: Item, seed: int, step: int) -> Probe:
        result = self._play(item, self._waiting(), [seed], max(1, step))
        if isinstance(result, Probe):
            return result
        return Probe(self._seen(result, step)[:MOST_TOLD], result.env_steps)

    def _waiting(self) -> str:
        """Source that does nothing. Code of a world such as the Kitchen yields commands and no names."""
        world = self._runtime.world
        noop = noop_of(world)
        by_name = WAIT.format(noop=world.primitives[noop].name)
        if admit(self._runtime, "action", by_name).admitted:
            return by_name
        return WAIT.format(noop=world.native_action([noop, *[0] * (len(world.action_nvec) - 1)]))

    def _play(self, item: Item, source: str, indices: range | list[int], max_steps: int) -> TrialResult | Probe:
        """Episodes with this source as the item's code, or why there are none."""
        runtime = self._runtime
        lead = lead_to(runtime, self._history, item)
        if lead.waits_for:
            return Probe(f"nothing to try yet: {', '.join(lead.waits_for)} before it is left to RL and not learnt")
        if why := refused_predicate(runtime, item):
            return Probe(why)
        admission = admit(runtime, "action", source)
        if not admission.admitted:
            return Probe(f"the world cannot be looked at: {admission.message}")
        name = admission.source_hash
        sources = {a.source_hash: a.source for a in lead.actions} | {name: source}
        uninterruptible = {a.source_hash for a in lead.actions if a.uninterruptible}
        result = trials.try_item(
            runtime.world,
            runtime.task,
            prefix=lead.prefix,
            action=Action(name, tuple((argument, values[0]) for argument, values in admission.arguments.items())),
            done_when=item.done_when,
            sources=sources,
            host=runtime.host,
            seeds=[self._seed(index) for index in indices],
            max_steps=max_steps,
            uninterruptible=frozenset(uninterruptible | ({name} if admission.uninterruptible else set())),
            incumbent=lead.incumbent,
            observer=StepObserver(runtime, films=False),
            step_ms=runtime.settings.loop.step_ms,
            name=item.name,
            trigger=item.trigger,
        )
        if runtime.host.deaths:
            with runtime.writer.transaction() as tx:
                runtime.write_deaths(tx)
        return result

    def _seed(self, index: int) -> int:
        """The seed of an episode, which the model knows by its index."""
        return episode_seed(self._runtime.seed, "train", index)

    def _tried(self, result: TrialResult) -> str:
        numbers = {self._seed(index): index for index in range(EPISODES)}
        parts = [f"done in {result.successes} of {result.episodes} episodes that needed it, {result.prefixes} begun"]
        for trial in result.trials:
            why = f": {trial['message']}" if trial["message"] else ""
            parts.append(f"seed {numbers[trial['seed']]}: {trial['end']} after {trial['env_steps']} env steps{why}")
        if result.outcome == "failed" and not any(result.error in part for part in parts):
            parts.append(result.error)
        if lost := result.evidence["lost"]:
            parts.append(failures.told({**lost[0], "seed": numbers[lost[0]["seed"]]}))
        elif good := result.evidence["good"]:
            parts.append(f"yields of one: {', '.join(good['yields'])}")
        return "\n".join(parts)

    def _seen(self, result: TrialResult, step: int) -> str:
        (episode,) = result.trials
        if not result.views:
            why = f": {episode['message']}" if episode["message"] else ""
            return f"the steps before it did not get there in this episode ({episode['end']}{why})"
        describe, lost = Describer(self._runtime.world), result.evidence["lost"]
        if not step or not lost:
            already = ", where done_when holds already" if episode["start_true"] else ""
            (view, *_) = result.views
            return _picture(f"where it begins{already}", describe.moment(view), describe.picture(view))
        (failure,) = lost
        end = dict(failure["timeline"][-1])
        moment = {key: value for key, value in end.items() if key not in ("step", "doing")}
        heading = f"{episode['env_steps']} env steps after it begins, without acting ({episode['end']})"
        return _picture(heading, moment, failure["after"]["picture"])


def _picture(heading: str, moment: dict[str, object], picture: str) -> str:
    return "\n".join(part for part in (heading, json.dumps(moment, ensure_ascii=False, default=str), picture) if part)
