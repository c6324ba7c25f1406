"""One session that runs on a cluster: its seat is found or placed, followed into the session's folder here, and placed
again when it is lost.

The folder here is a mirror (`store/mirror.py`), and whoever follows it holds its lock, also while the seat waits for a
node: so for everybody else the session runs. A seat that is lost is placed again from the newest prefix, by the
supervisor's own rule. Who only stops following leaves the seat: it goes on, and is found by its name.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator

from rlgpt.store import catalog, skills
from rlgpt.store.epilogue import append_event, progress_mark
from rlgpt.store.errors import StoreError
from rlgpt.store.events import Ended, Event, TrainerDied, Waiting
from rlgpt.store.folder import SessionFolder
from rlgpt.store.folder_peer import FolderPeer
from rlgpt.store.home import GAMES_ON
from rlgpt.store.lease import Lease, LeaseTaken
from rlgpt.store.mirror import EVERY, Mirror, settle
from rlgpt.store.peers import Diverged, bring
from rlgpt.store.placing import asked_to_end, forget_to_end, place
from rlgpt.store.reach import LOCK
from rlgpt.store.reader import Reader
from rlgpt.store.settings import Settings, stored
from rlgpt.store.spending import spent_today
from rlgpt.training.cluster.connect import NAMESPACE, NoCluster, Ray
from rlgpt.training.cluster.nodes import Nodes
from rlgpt.training.cluster.seat import Ending, Seat
from rlgpt.training.cluster.seat_peer import SeatLost, SeatPeer, SourcePeer
from rlgpt.training.session.replaying import REPLAY
from rlgpt.training.supervisor import RESTARTS, TAKEN

MEMORY = 1_500_000_000
"""Bytes that a session is taken to need."""
TELL = 5.0
"""Seconds between two words about what other sessions have spent."""
ROOM = 15.0
"""Seconds for a node to take it before the session is told to wait for one."""


class Left(Exception):
    """Somebody asked to stop following."""


class EndedNow(Exception):
    """Somebody asked to end what runs there at once; who is the argument."""


class Placed(threading.Thread):
    """Follows the session until it is over. `nodes` is called once the session's lock is held."""

    def __init__(self, folder: SessionFolder, address: str, nodes: Callable[[], Nodes]) -> None:
        super().__init__(name=f"seat of {folder.id}", daemon=True)
        self._folder, self._address, self._reach = folder, address, nodes
        self._leaving = threading.Event()
        self._capped, self._spent_told = False, -TELL
        self._last = 0
        """Number of the last seat that was placed."""
        self._given = 0
        """The last row that it was given."""
        self.code = 1
        """Of its supervisor, once this has ended; 0 as well if it was left."""

    # ---- as a process that runs the session -----------------------------------------------------
    def poll(self) -> int | None:
        return None if self.is_alive() else self.code

    def terminate(self) -> None:
        """Stop following: the seat goes on."""
        self._leaving.set()

    def wait(self, timeout: float | None = None) -> int:
        self.join(timeout)
        return self.code

    # ---- the work -------------------------------------------------------------------------------
    def run(self) -> None:
        try:
            with Lease.acquire(self._folder.path, LOCK), Lease.acquire(self._folder.path) as lease:
                place(self._folder.path, self._address)
                forget_to_end(self._folder.path)
                self.code = self._keep(lease)
        except LeaseTaken as error:
            self._log(str(error))
            self.code = TAKEN
        except Left:
            self.code = 0

    def _keep(self, lease: Lease) -> int:
        try:
            failures, mark = 0, progress_mark(self._folder.path)
            self._capped = self._settings().budget.daily_cost is not None
            nodes = self._reach()
            while True:
                seat: SeatPeer | None = None
                try:
                    seat = self._running_seat(nodes)
                    if seat is None and self._final():
                        return 0  # it came home, and whoever followed it was killed before it could say so
                    seat = seat or self._new_seat(nodes)
                    return self._follow(seat, lease) if seat else 1
                except EndedNow as order:
                    if seat:
                        self._ended(seat)
                    self._say(Ended("stopped", f"ended at once by {order}"))
                    forget_to_end(self._folder.path)
                    return 0
                except (SeatLost, Diverged) as lost:
                    if seat:
                        self._ended(seat)
                    if self._final() or self._ended_there():
                        return 0
                    now = progress_mark(self._folder.path)
                    failures, mark = 1 if now > mark else failures + 1, now
                    again = failures <= RESTARTS
                    self._say(TrainerDied(None, None, [str(lost)], again))
                    if not again:
                        words = f"its seat was lost {failures} times without getting further; at last: {lost}"
                        self._say(Ended("failed", words))
                        return 1
        except (StoreError, sqlite3.Error) as error:  # a seat may live on: nothing is added to the rows
            self._log(str(error))
            return 1

    def _follow(self, seat: SeatPeer, lease: Lease) -> int:
        with contextlib.closing(Mirror(seat, self._folder.path, lease)) as mirror:
            while True:
                self._tell_spent(seat)
                alive = mirror.step()
                if not alive and (ending := seat.ending()) is not None:
                    mirror.step()  # what it wrote between the two looks
                    break
                self._leaving.wait(EVERY)
                self._heed()
        self._bring(seat, ending)
        return ending.code

    def _heed(self) -> None:
        """Raises Left, EndedNow."""
        if self._leaving.is_set():
            raise Left
        if who := asked_to_end(self._folder.path):
            raise EndedNow(who)

    def _tell_spent(self, seat: SeatPeer) -> None:
        """A daily budget counts the sessions of this store, of which a seat knows only its own."""
        if self._capped and time.monotonic() - self._spent_told > TELL:
            self._spent_told = time.monotonic()
            seat.ask("spent_elsewhere", spent_today(but={self._folder.id}))

    def _bring(self, seat: SeatPeer, ending: Ending) -> None:
        """What is besides the rows; then the seat is not needed any more."""
        for line in ending.words:
            self._log(line)
        if ending.skills:
            skills.import_(ending.skills)
        with contextlib.suppress(SeatLost):
            seat.ask("remove")
            seat.end()
        self._final()

    def _final(self) -> bool:
        """Whether its work is done: then it is a session of this machine."""
        with Reader(self._folder) as reader:
            history = reader.history_at()
        done = history.status == "ended" and history.result in ("succeeded", "finished")
        if done:
            settle(self._folder.path)
        return done

    def _ended_there(self) -> bool:
        """Whether the seat that is lost now had ended it, so that nobody wants another one."""
        with Reader(self._folder) as reader:
            return reader.history_at().status == "ended" and reader.last_seq() > self._given

    # ---- placing --------------------------------------------------------------------------------
    def _running_seat(self, nodes: Nodes) -> SeatPeer | None:
        """The seat that runs the session. Others of it, which nobody would ever follow, are ended."""
        peer: SeatPeer | None = None
        for seat in seats_of(self._folder.id, nodes.ray, self._address):
            with contextlib.suppress(SeatLost):
                if peer is None and seat.ask("started"):
                    peer = self._named(seat)
                    continue
            seat.end()
        return peer

    def _new_seat(self, nodes: Nodes) -> SeatPeer | None:
        """A new seat that goes on from what is here; None, and a row that says why, where none can be had."""
        try:
            with contextlib.closing(FolderPeer(self._folder.path)) as here:
                settings = self._settings()
                others = map(_number, _names(self._folder.id, nodes.ray))
                head = here.head()
                self._given = head.seq
                self._last = 1 + max([self._last, head.incarnation, *others])
                seat = self._placed(nodes, settings)
                for source in _sources(settings):
                    with contextlib.closing(FolderPeer(source.path)) as recorded:
                        bring(recorded, SourcePeer(seat, source.id), 0, set())
                bring(here, seat, 0, set())
            seat.ask("start", os.environ.get(GAMES_ON, ""))
        except SeatLost:
            raise
        except StoreError as error:
            self._log(str(error))
            self._say(Ended("stopped", str(error)))
            return None
        return seat

    def _placed(self, nodes: Nodes, settings: Settings, announced: bool = False) -> SeatPeer:
        """Waits for a node. Raises Left, NoCluster."""
        ray, llm, name = nodes.ray, settings.llm.model_dump(mode="json"), f"{self._folder.id}.{self._last}"
        fit = {node.id for node in nodes.fitting(settings.world, llm)}
        actor = ray.remote(Seat).options(
            name=name, namespace=NAMESPACE, lifetime="detached", max_restarts=0, max_task_retries=0, num_cpus=1,
            num_gpus=1 if settings.device == "cuda" else 0, memory=MEMORY,
            label_selector={"ray.io/node-id": f"in({','.join(sorted(fit))})"},
        ).remote(name, self._folder.id)  # fmt: skip
        looked, ready = time.monotonic(), actor.where.remote()
        while not ray.wait([ready], timeout=EVERY)[0]:
            try:
                self._heed()
                late = time.monotonic() - looked > ROOM
                joined = late and {node.id for node in nodes.fitting(settings.world, llm)} - fit
            except (Left, EndedNow, NoCluster):
                ray.kill(actor, no_restart=True)
                raise
            if late and not announced:
                self._say(Waiting("a free node of the cluster"))
                announced = True
            if joined:  # Ray waits for the others only
                ray.kill(actor, no_restart=True)
                self._last += 1  # the name may not be free yet
                return self._placed(nodes, settings, announced)
            looked = time.monotonic() if late else looked
        return self._named(SeatPeer(ray, actor, self._address))

    def _named(self, seat: SeatPeer) -> SeatPeer:
        seat.place = f"{seat.ask('where')} (Ray cluster {self._address})"
        return seat

    def _ended(self, seat: SeatPeer) -> None:
        with contextlib.suppress(Exception):  # what is lost may not even be told to end
            seat.end()

    def _settings(self) -> Settings:
        with Reader(self._folder) as reader:
            return stored(reader.history_at().session["settings"])

    def _say(self, event: Event) -> None:
        """While no seat runs, this process is the session's writer."""
        append_event(self._folder.path, event)

    def _log(self, line: str) -> None:
        with contextlib.suppress(OSError), self._folder.log.open("a") as log:
            log.write(line + "\n")


def seats_of(session_id: str, ray: Ray, address: str) -> Iterator[SeatPeer]:
    """All seats of a session, the newest first."""
    for name in _names(session_id, ray):
        with contextlib.suppress(ValueError):  # it ended since
            yield SeatPeer(ray, ray.get_actor(name, namespace=NAMESPACE), address)


def _names(session_id: str, ray: Ray) -> list[str]:
    every = ray.util.list_named_actors()
    return sorted((name for name in every if name.rpartition(".")[0] == session_id), key=_number, reverse=True)


def _number(name: str) -> int:
    last = name.rpartition(".")[2]
    return int(last) if last.isdecimal() else 0


def _sources(settings: Settings) -> list[SessionFolder]:
    """The sessions whose recorded calls are replayed: each may be a replay itself. Raises NoSession."""
    folders: list[SessionFolder] = []
    while settings.llm.kind.startswith(REPLAY):
        folders.append(catalog.find(settings.llm.kind.removeprefix(REPLAY)))
        with Reader(folders[-1]) as reader:
            settings = stored(reader.history_at().session["settings"])
    return folders
