"""`train`: one PPO run from a configuration to a checkpoint. What the worker calls."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import msgpack
import numpy as np
import torch as th
from numpy.typing import NDArray

from rlgpt.agents.contracts import RlConfigReply
from rlgpt.training.host.api import Host, PlanItem
from rlgpt.training.options.film import Camera, Film, loaded, saved
from rlgpt.training.options.lane import EpisodeResult, Lane
from rlgpt.training.options.observer import Observer, Signal, Start, obey
from rlgpt.training.options.probe import find_similar, walk_views
from rlgpt.training.options.rewards import RewardStream
from rlgpt.training.options.runner import OptionRunner
from rlgpt.training.options.slots import CodedAction, shares
from rlgpt.training.ppo.branches import Branching
from rlgpt.training.ppo.checkpoints import (
    Checkpoint,
    CheckpointError,
    load_module,
    load_optimizer,
    module_arrays,
    optimizer_arrays,
    pack,
    unpack,
)
from rlgpt.training.ppo.device import choose_device
from rlgpt.training.ppo.imitation import Trajectory, make_imitation
from rlgpt.training.ppo.policy import network_hash
from rlgpt.training.ppo.ppo import OptionPPO, UpdateReport
from rlgpt.training.ppo.priors import activate, try_again
from rlgpt.training.ppo.recovery import NOTHING, Collected, StartState, collect
from rlgpt.training.ppo.saved import lane_fields, restore_lane, space_fields
from rlgpt.training.ppo.setup import ConfigError, build_setup
from rlgpt.training.ppo.update_counts import UpdateCounts
from rlgpt.training.seeds import episode_seed, stream_seed
from rlgpt.training.worlds.optional_parts import expect, side_by_side
from rlgpt.training.worlds.protocol import World

POLL_SECONDS = 0.02
"""Least time between two polls of the observer."""
RECENT = 256
"""States of the last rollout that a checkpoint keeps for the priors of a later run's new slots."""
MOST_MINIBATCHES = 1_000_000
"""Of one update: Observer.clock counts env steps in so many parts."""
FILM_EVERY = 20
"""Updates after which lane 0's next episode is filmed."""
KERNELS = {"eager": "eager, fused Adam", "compiled": "compiled loss, fused Adam"}


def _clock_after_update(env_steps: int) -> int:
    """Observer.clock between an update and the next env step: where a training begins that goes on from a
    checkpoint."""
    return (env_steps + 1) * MOST_MINIBATCHES - 1


@dataclass(frozen=True)
class TrainResult:
    state: Literal["finished", "stopped", "superseded"]
    checkpoint: bytes
    """The boundary checkpoint; also given to the observer."""
    env_steps: int
    """Executed by this run, those before a resume included."""
    decisions: int
    updates: int
    episodes: int
    successes: int
    start: Start


def train(
    world: World,
    task: str,
    config: RlConfigReply,
    options: Sequence[CodedAction],
    host: Host,
    *,
    seed: int,
    device: str = "auto",
    kernel: str = "eager",
    plan: Sequence[PlanItem] = (),
    sources: Mapping[str, str] | None = None,
    views: Sequence[bytes] = (),
    warm: bytes | None = None,
    resume: bytes | None = None,
    env_steps: int | None = None,
    observer: Observer | None = None,
    checkpoint_every: int = 1,
) -> TrainResult:
    """Train until `env_steps` (default: the configuration's) are executed or the observer says otherwise.

    `options` are the accepted coded actions, `plan` what follow_plan runs, `sources` any further source by
    hash (plan items and rewards). `views`: whole views (trials collect some) on which options that behave
    alike are found; without any, those of a random walk.
    `warm`: checkpoint to start from if its observation and network are equal; `resume`: checkpoint of this
    very run, continued bit by bit on the same machine. 0 env steps give the untrained policy with its priors.
    `kernel`: eager | compiled (ppo.py). Raises ConfigError, ActionSpaceError, ObservationError, RewardError
    or MachineLacks: one clear sentence.
    """
    run = Run(
        world, task, config, options, host, seed=seed, device=device, kernel=kernel, plan=plan, sources=sources or {},
        views=views, warm=warm, resume=resume, observer=observer or Observer(),
        env_steps=config.env_steps if env_steps is None else env_steps,
    )  # fmt: skip
    return run.go(checkpoint_every)


class Run:
    """The state of one training; also the runner's listener."""

    def __init__(
        self, world: World, task: str, config: RlConfigReply, options: Sequence[CodedAction], host: Host, *,
        seed: int, device: str, kernel: str, plan: Sequence[PlanItem], sources: Mapping[str, str],
        views: Sequence[bytes], warm: bytes | None, resume: bytes | None, observer: Observer, env_steps: int,
    ) -> None:  # fmt: skip
        th.set_num_threads(1)
        self.observer, self.world, self.seed, self.config = observer, world, seed, config
        self.planned = env_steps
        blob = resume or warm
        origin = unpack(blob) if blob else None
        previous = origin.fields["slots"] if origin else []
        similar = {entry["key"]: entry["similar"] for entry in previous}
        if not resume:
            chosen_options = [option for option in options if option.name in config.options]
            if len(chosen_options) > 1:
                states = views or walk_views(world, task, episode_seed(seed, "train", 0))
                similar = find_similar(host, chosen_options, states)
        setup = build_setup(world, task, config, options, plan, sources, previous, similar)
        self.setup = setup
        chosen = choose_device(device, setup.observation.picture is not None)
        lanes = side_by_side(world, config.hyperparameters.n_envs)
        if resume and origin is not None and world.restorable:  # another machine may have room for more, or for fewer
            lanes = min(lanes, len(origin.fields["lanes"]))
        hyper = config.hyperparameters.model_copy(update={"n_envs": lanes})
        self.ppo = OptionPPO(
            setup.space, setup.observation, hyper, seed=stream_seed(seed, "ppo"), device=chosen.name, kernel=kernel
        )
        self.imitation = make_imitation(
            config.self_imitation.mode, config.self_imitation.weight,
            np.random.default_rng(stream_seed(seed, "self imitation")),
        )  # fmt: skip
        fits = origin is not None and origin.fields["network"] == network_hash(self.ppo.policy)
        if resume and not fits:
            raise CheckpointError("The checkpoint to resume from belongs to another observation or network.")
        if origin is not None and fits:
            load_module(self.ppo.policy, origin.part("policy"))
            load_optimizer(self.ppo.policy, self.ppo.policy.optimizer, origin.part("adam"))
            for group in self.ppo.policy.optimizer.param_groups:
                group["lr"] = hyper.learning_rate
        elif origin is not None:  # nothing of it is used: a restart, which has only the run's row, begins alike
            origin = None
            self.setup = setup = build_setup(world, task, config, options, plan, sources, [], similar)
            self.ppo.space = setup.space
        self.signal: Signal = "go"
        if resume and origin is not None:
            observer.clock = _clock_after_update(origin.fields["counters"][1])
        self.collected = self._collect(host, hyper.n_envs) if config.recovery.share else NOTHING
        host.load(setup.space.programs)
        self.ahead = hyper.n_envs
        """Every lane's next episode is expected."""
        self.lanes = [setup.lane(index) for index in range(hyper.n_envs)]
        with contextlib.ExitStack() as undo:  # games may be under way when something is refused
            for lane in self.lanes:
                undo.callback(lane.env.close)
            if config.branches.decisions:
                self.ppo.branching = Branching(setup, config.branches, hyper.gamma)
            self.runner = OptionRunner(
                world, host, setup.space, self.lanes, self.ppo, self,
                observation=setup.observation, gamma=hyper.gamma, target=setup.target,
            )  # fmt: skip
            self.updates = self.decisions = self.base = 0
            self.updated_at = -1
            """The env steps of the last update."""
            self.env_steps = self.collected.env_steps
            self.episodes = self.successes = self.next_episode = 0
            self.counts = UpdateCounts()
            self.film_from = 0
            """The update from which on the next episode is filmed."""
            self.camera = Camera(world, setup.space) if observer.films else None
            self.recent: tuple[NDArray[Any], NDArray[np.bool_]] | None = None
            self.priors: dict[int, float] = {}
            if resume and origin is not None:
                self._resume(origin)
            else:
                self.runner.start()
                self._open_slots(origin)
                if config.prior_kl:
                    self.ppo.keep_prior()
            self.ppo.actor.refresh()
            self._polled = 0.0
            self.start = Start(self._slot_rows(), fits, chosen.name, chosen.explanation, KERNELS[kernel])
            undo.pop_all()

    # ---- slots -----------------------------------------------------------------------------------
    def _open_slots(self, origin: Checkpoint | None) -> None:
        """Give every slot that the origin did not have its prior; forget imitated decisions of lost slots."""
        space = self.setup.space
        before = {entry["slot"]: entry for entry in origin.fields["slots"]} if origin else {}
        changed = {
            index: slot.name
            for index, slot in enumerate(space.slots)
            if slot is not None and before.get(index, {}).get("key") != slot.key
        }
        rewritten = [index for index, name in changed.items() if before.get(index, {}).get("name") == name]
        new = [index for index in changed if index not in rewritten]
        self.priors = shares(space.slots, new, self.config.option_prior, self.config.plan_prior)
        if origin is not None and "observations" in (recent := origin.part("recent")):
            observations, masks = recent["observations"], recent["masks"] & space.static_mask()
            deciding = self._where_it_decides(masks)
            masks[:, [space.action_nvec[0] + slot for slot in new]] = True
            if deciding.any():
                observations, masks = observations[deciding], masks[deciding]
        else:
            for lane in self.lanes:
                self.runner.look(lane)
            observations = np.stack([lane.observation for lane in self.lanes if lane.observation is not None])
            masks = np.stack([self.runner.allowed(lane) for lane in self.lanes])  # nothing is in trouble yet
        activate(self.ppo.policy, space.action_nvec[0], self.priors, observations, masks)
        try_again(self.ppo.policy, space.action_nvec[0], rewritten, observations, masks)
        if origin is not None and self.imitation is not None:
            self._load_imitation(origin)
            self.imitation.pending.clear()
            lost = [slot for slot in before if slot not in space.active() or slot in changed]
            self.imitation.drop([space.action_nvec[0] + slot for slot in lost])

    def _where_it_decides(self, masks: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """The rows in which the plan does not simply go on: the others tell nothing of the other actions' mass."""
        space = self.setup.space
        if not space.only_in_trouble or space.follow < 0:
            return np.ones(len(masks), bool)
        others = masks[:, : space.first].copy()
        others[:, space.follow] = False
        return np.asarray(others.any(axis=1))

    def _slot_rows(self) -> list[dict[str, Any]]:
        return [
            {
                "slot": index, "name": slot.name, "source_hash": slot.source_hash,
                "arguments": dict(slot.arguments), "prior": self.priors.get(index), "similar": slot.similar,
            }
            for index, slot in enumerate(self.setup.space.slots)
            if slot is not None
        ]  # fmt: skip

    # ---- recovery training -----------------------------------------------------------------------------
    def _collect(self, host: Host, lanes: int) -> Collected:
        host.load(self.setup.space.programs)

        def going() -> bool:
            self.signal = obey(self.observer)
            return self.signal == "go"

        return collect(self.setup, host, lanes, self.seed, self.planned, going)

    def _recovers(self, lane: Lane) -> StartState | None:
        """Where the lane's episode began, if that was not the start of its own seed."""
        return self.collected.of(self.seed, lane.episode, self.config.recovery.share)

    # ---- the runner's listener -----------------------------------------------------------------------
    def on_start(self, lane: Lane) -> bool:
        lane.episode = self.next_episode
        self.next_episode += 1
        lane.seed = episode_seed(self.seed, "train", lane.episode)
        lane.film = None
        start = self._recovers(lane)
        if start is not None:
            lane.seed = start.seed
            lane.rng = np.random.default_rng((lane.seed, 5, lane.episode))
            return True
        lane.rng = np.random.default_rng((lane.seed, 1))
        if self.camera and lane.index == 0 and self.updates >= self.film_from:
            lane.film, self.film_from = Film(self.camera, lane.episode), self.updates + FILM_EVERY
        expect(self.world, [episode_seed(self.seed, "train", lane.episode + self.ahead)])
        return True

    def on_reset(self, lane: Lane) -> None:
        start = self._recovers(lane)
        if start is not None:
            lane.env.restore(start.state)
            lane.start_view, lane.moved = start.view, True

    def on_decision(self, lane: Lane) -> None:
        self.decisions += 1
        self.ppo.record(lane, lambda: self._final(lane))
        slot = self.setup.space.slots[lane.slot] if lane.slot >= 0 else None
        self.counts.add_decision(slot.name if slot is not None else None, lane.steps, lane.end)
        if self.imitation is not None and lane.observation is not None and lane.mask is not None:
            trajectory = self.imitation.pending.setdefault(lane.index, Trajectory())
            trajectory.add(lane.observation, lane.mask, lane.action, lane.reward, lane.discount)

    def _final(self, lane: Lane) -> NDArray[Any]:
        left = max(0.0, (lane.horizon - lane.env.steps) / lane.env.task.horizon)
        return self.setup.observation.read(lane.env, lane.stream, left)

    def on_end(self, lane: Lane, result: EpisodeResult) -> None:
        if isinstance(lane.film, Film):
            self.observer.on_film(result, lane.film.end(result.return_))
        if self._recovers(lane) is None:  # the curves tell of whole episodes
            self.counts.add_reward(result)
            self.counts.add_episode(result)
            self.episodes += 1
            self.successes += result.success
        if self.imitation is not None and result.end == "truncated":  # nobody knows its return
            self.imitation.pending.pop(lane.index, None)
        elif self.imitation is not None:
            self.imitation.finish(lane.index, result.success, result.return_)

    # ---- the loop --------------------------------------------------------------------------------
    def go(self, checkpoint_every: int) -> TrainResult:
        try:
            return self._go(checkpoint_every)
        finally:
            for lane in self.lanes:
                lane.env.close()

    def _go(self, checkpoint_every: int) -> TrainResult:
        env_steps = self.planned
        self.observer.on_start(self.start)
        # The envs that were asked for, also where the world runs fewer side by side: updates stay as far apart.
        rollout = self.config.hyperparameters.n_steps * self.config.hyperparameters.n_envs
        self.base = self.env_steps - self.runner.env_steps
        self.updated_at = self.env_steps if self.updates else -1
        while self.env_steps < env_steps and self.signal == "go":
            began = time.perf_counter()
            before = self.env_steps
            steps = min(rollout, env_steps - self.env_steps)
            if self.ppo.branching is not None:
                self.ppo.branching.begin(stream_seed(self.seed, "branches"), self.updates)
            complete = self.ppo.collect_rollouts(self.runner, steps, self._keep_going)
            if complete and self.ppo.branching is not None:
                complete = self._branch()
            self.env_steps = self.base + self.runner.env_steps
            if not complete:
                break
            self.ppo.prior_kl = self.config.prior_kl * max(0.0, 1 - self.env_steps / env_steps)
            report = self.ppo.train(self._keep_going)
            self.updates += 1
            self.updated_at = self.env_steps
            if self.imitation is not None and self.imitation.update(
                self.ppo.policy, self.updates, self.config.hyperparameters.max_grad_norm
            ):
                self.ppo.actor.refresh()
            self._keep_recent()
            self.observer.on_update(self._metrics(report, before, time.perf_counter() - began))
            if self.updates % checkpoint_every == 0 and self.env_steps < env_steps and self.signal == "go":
                self.observer.on_checkpoint(self.checkpoint(), self.updates, self.env_steps, "rollout")
        blob = self.checkpoint()
        self.observer.on_checkpoint(blob, self.updates, self.env_steps, "boundary")
        state: Literal["finished", "stopped", "superseded"] = "finished"
        if self.signal != "go":
            state = "stopped" if self.signal == "stop" else "superseded"
        return TrainResult(
            state, blob, self.env_steps, self.decisions, self.updates, self.episodes, self.successes, self.start
        )

    def _branch(self) -> bool:
        self.base += self.ppo.measure_branches(self.runner.host, self._keep_going)
        for lane in self.lanes:  # the host's lanes have played something else
            lane.introduce()
        return self.signal == "go"

    def _keep_going(self) -> bool:
        """Ask the observer, at most every POLL_SECONDS; False ends the rollout or the update early."""
        now = time.monotonic()
        env_steps = self.base + self.runner.env_steps
        if env_steps == self.updated_at:
            self.observer.clock = _clock_after_update(env_steps)
        else:
            self.observer.clock = env_steps * MOST_MINIBATCHES + self.ppo.minibatch
        if now - self._polled >= POLL_SECONDS or self.observer.clock >= self.observer.wake:
            self._polled = now
            self.signal = obey(self.observer)
        return self.signal == "go"

    def _keep_recent(self) -> None:
        buffer = self.ppo.buffer
        rows = np.linspace(0, buffer.size - 1, min(RECENT, buffer.size)).astype(np.intp)
        self.recent = (buffer.observations[rows], buffer.masks[rows])

    def _metrics(self, report: UpdateReport, before: int, seconds: float) -> dict[str, Any]:
        return (
            self.counts.take(self.lanes[0].stream.names, self._streams())
            | asdict(report)
            | {
                "update": self.updates,
                "env_steps": self.env_steps,
                "decisions": self.decisions,
                "rate": (self.env_steps - before) / seconds,
                "learning_rate": self.config.hyperparameters.learning_rate,
            }
        )

    def _streams(self) -> list[RewardStream]:
        """Of the unfinished episodes that the curves will tell of."""
        return [lane.stream for lane in self.lanes if self._recovers(lane) is None]

    # ---- checkpoints -----------------------------------------------------------------------------
    def checkpoint(self) -> bytes:
        """Everything needed to continue, to evaluate, and to start another run from. Every lane is at rest."""
        policy = self.ppo.policy
        space = self.setup.space
        fields = {
            "network": network_hash(policy),
            "world": self.setup.world.name,
            "task": self.setup.task.id,
            "config": self.config.model_dump(mode="json"),
            **space_fields(space),
            "counters": [
                self.updates, self.env_steps, self.decisions, self.episodes, self.successes, self.next_episode
            ],
            "paid": dict(self.counts.paid),
            "shown": self.counts.reported,
            "priors": [[slot, share] for slot, share in self.priors.items()],
            "shuffle": self.ppo.shuffle.bit_generator.state,
            "lanes": [lane_fields(lane) for lane in self.lanes],
            "film_from": self.film_from,
        }  # fmt: skip
        parts: dict[str, Mapping[str, NDArray[Any]]] = {
            "policy": module_arrays(policy),
            "adam": optimizer_arrays(policy, policy.optimizer),
            "torch": {"state": th.get_rng_state().numpy()},
        }
        if self.ppo.prior is not None:
            parts["prior"] = module_arrays(self.ppo.prior)
        if self.recent is not None:
            parts["recent"] = {"observations": self.recent[0], "masks": self.recent[1]}
        if self.setup.world.restorable:
            parts["envs"] = {str(lane.index): np.frombuffer(lane.env.save(), np.uint8) for lane in self.lanes}
            parts["starts"] = {
                str(lane.index): np.frombuffer(lane.start_view, np.uint8)
                for lane in self.lanes
                if lane.start_view is not None
            }
            if isinstance(film := self.lanes[0].film, Film):
                parts["film"] = {"moments": np.frombuffer(msgpack.packb(saved(film.moments)), np.uint8)}
        if self.imitation is not None:
            imitation_fields, arrays = self.imitation.save()
            fields["imitation"] = {"kept": imitation_fields, "shuffle": self.imitation.shuffle.bit_generator.state}
            parts["imitation"] = arrays
            for index, trajectory in self.imitation.pending.items():
                parts[f"pending{index}"] = trajectory.save()
        return pack(fields, parts)

    def _load_imitation(self, saved: Checkpoint) -> None:
        if self.imitation is not None and "imitation" in saved.fields:
            mode = saved.fields["config"]["self_imitation"]["mode"]
            if mode == self.config.self_imitation.mode:
                self.imitation.restore(saved.fields["imitation"]["kept"], saved.part("imitation"))

    def _resume(self, saved: Checkpoint) -> None:
        fields = saved.fields
        if RlConfigReply.model_validate(fields["config"]) != self.config:
            raise ConfigError("The checkpoint to resume from was made with another configuration.")
        counters = fields["counters"]
        self.updates, self.env_steps, self.decisions, self.episodes, self.successes, self.next_episode = counters
        self.counts.paid = Counter(fields["paid"])
        self.counts.reported = dict(fields["shown"])
        self.priors = dict(fields["priors"])
        self.ppo.shuffle.bit_generator.state = fields["shuffle"]
        th.set_rng_state(th.from_numpy(np.array(saved.part("torch")["state"])))
        if self.config.prior_kl:
            self.ppo.keep_prior()
            assert self.ppo.prior is not None
            load_module(self.ppo.prior, saved.part("prior"))
        recent = saved.part("recent")
        if recent:
            self.recent = (recent["observations"], recent["masks"])
        self.film_from = fields.get("film_from", self.updates)
        restorable = self.setup.world.restorable
        if self.imitation is not None:
            self._load_imitation(saved)
            self.imitation.shuffle.bit_generator.state = fields["imitation"]["shuffle"]
            if restorable:
                pending = {lane.index: Trajectory.load(saved.part(f"pending{lane.index}")) for lane in self.lanes}
                self.imitation.pending = pending
        envs, starts = saved.part("envs"), saved.part("starts")
        if not restorable or not envs:  # the world may have learnt to save its envs since
            self.runner.start()
            self.counts.reported = dict(self.counts.paid)  # the episodes that were under way are lost
            return
        for lane, entry in zip(self.lanes, fields["lanes"], strict=False):  # the envs that have no room are given up
            lane.env.reset(entry["seed"])
            lane.env.restore(envs[str(lane.index)].tobytes())
            view = starts.get(str(lane.index))
            restore_lane(lane, entry, None if view is None else view.tobytes())
        if len(self.lanes) < len(fields["lanes"]):
            self.counts.reported = dict(self.counts.with_open(self._streams()))
        if self.camera and "moments" in (filmed := saved.part("film")):
            film = self.lanes[0].film = Film(self.camera, self.lanes[0].episode)
            film.moments = loaded(msgpack.unpackb(filmed["moments"].tobytes()))
