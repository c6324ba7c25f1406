"""`funnel`, `episodes`, `why`, `options`: what the console's panes of these names show."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator, Sequence
from typing import Annotated

import typer

from rlgpt.console.commands import output
from rlgpt.console.commands.failure import Exit, Failure
from rlgpt.console.commands.sessions import looked_at
from rlgpt.console.commands.words import Json, Session
from rlgpt.console.view import episodes as episodes_view
from rlgpt.console.view import funnel as funnel_view
from rlgpt.console.view.moment import Moment
from rlgpt.console.view.text import Entry, plain

WIDEST = 120
At = Annotated[
    int | None,
    typer.Option("--at", min=1, metavar="ROW", help="As it was at this row of the session.", show_default="now"),
]


def register(app: typer.Typer) -> None:
    for command in (funnel, episodes, why, options):
        app.command()(command)


def funnel(session: Session, at: At = None, json: Json = False) -> None:
    """Show how many episodes reach each sub-action, and where most of them are lost."""
    with moment_of(session, at) as moment:
        shown, ended = funnel_view.funnel(moment), _ended(moment)
    if json:
        output.document(funnel_view.tree(shown))
    else:
        say(funnel_view.entries(shown, _width(), ended))


def episodes(
    session: Session,
    failed: Annotated[bool, typer.Option("--failed", help="Only those that failed.")] = False,
    lost: Annotated[str, typer.Option("--lost", metavar="SUB_ACTION", help="Only those lost there.")] = "",
    at: At = None,
    json: Json = False,
) -> None:
    """List the recorded episodes, failing ones first: how they ended, where they were lost, what can be watched."""
    with moment_of(session, at) as moment:
        every = episodes_view.episodes(moment)
        ended = _ended(moment)
        names = {item.name for plan in moment.history.plans.values() for item in plan.items}
    if lost and lost not in (*names, episodes_view.TASK):
        raise Failure(f"no plan of this session has a sub-action {lost!r}.", Exit.NOT_FOUND)
    shown = episodes_view.lost_there([e for e in every if not (failed and e.success)], lost)
    if json:
        output.document({"episodes": [episodes_view.tree(episode) for episode in shown]})
    else:
        say(episodes_view.entries(shown, lost, _width(), len(shown), ended, len(every)))


def why(session: Session, at: At = None, json: Json = False) -> None:
    """Test the newest PPO run for the usual causes of no improvement, each with its number and what may help."""
    from rlgpt.console.view import why as view

    with moment_of(session, at) as moment:
        findings, ended = view.findings(moment), _ended(moment)
    if json:
        output.document({"findings": [view.tree(finding) for finding in findings]})
    else:
        commands = {action: f"`{command}`:" for action, command in view.COMMANDS.items()}
        say(view.entries(findings, commands, _width(), ended))


def options(session: Session, at: At = None, json: Json = False) -> None:
    """Show what each coded action was used for: calls, env steps, how calls ended, what held after them."""
    from rlgpt.console.view import options as view

    with moment_of(session, at) as moment:
        tables, ended = view.tables(moment), _ended(moment)
    if json:
        output.document({"parts": [view.tree(table) for table in tables]})
    else:
        say(view.entries(tables, _width(), ended))


def _ended(moment: Moment) -> bool:
    return moment.history.status == "ended"


@contextlib.contextmanager
def moment_of(session: str, at: int | None) -> Iterator[Moment]:
    """What the console's panes are drawn from, for a session or a bundle, at a row or at the end."""
    from rlgpt.console.feed import Feed  # late: numpy comes with it

    with looked_at(session) as folder:
        feed = Feed(folder.path)
        try:
            feed.open()
            while feed.read_mappings():
                pass
            if feed.notice:
                output.note(feed.notice)
            check_row(folder.id, feed.moment().end_seq, at)
            yield feed.moment(at)
        finally:
            feed.close()


def check_row(ident: str, last: int, at: int | None) -> None:
    """Raises Failure if session `ident`, whose last row is `last`, has no row `at`: --at of the wrong session."""
    if at is not None and at > last:
        raise Failure(f"session {ident} has {last} rows and no row {at}.", Exit.NOT_FOUND)


def say(entries: Sequence[Entry]) -> None:
    for entry in entries:
        for line in entry.lines:
            output.say(plain(line).rstrip())


def _width() -> int:
    return min(shutil.get_terminal_size().columns, WIDEST)
