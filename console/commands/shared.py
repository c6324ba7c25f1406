"""Looking after a store in PostgreSQL that a team shares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from rlgpt.console.commands import output
from rlgpt.console.commands.words import Json
from rlgpt.console.view.numbers import count, many
from rlgpt.console.view.numbers import size as octets
from rlgpt.store import address, catalog
from rlgpt.store.errors import BadValue
from rlgpt.store.stores import open_store

if TYPE_CHECKING:
    from types import ModuleType

Address = Annotated[str, typer.Argument(metavar="[STORE]", help="postgresql://HOST/DATABASE; RLGPT_STORE if left out.")]


def init(store: Address = "", json: Json = False) -> None:
    """Make an empty shared store in a database that you own."""
    place = _shared(store)
    _admin().init(place)
    _say(place, "the store is made; give your team the roles rlgpt_reader, rlgpt_operator and rlgpt_worker", json)


def upgrade(store: Address = "", json: Json = False) -> None:
    """Bring a shared store to the version of this rlgpt."""
    place = _shared(store)
    _say(place, str(_admin().upgrade(place)), json)


def size(where: str, json: bool) -> None:
    place = _shared(where)
    sizes, total = _admin().sizes(place), _admin().total(place)
    if json:
        output.document({"sessions": [size._asdict() for size in sizes], "total": total})
        return
    output.table(("id", "rows", "files"), [(s.session_id, count(s.rows), octets(s.files)) for s in sizes])
    output.say(f"{many(len(sizes), 'session')}, {octets(total)} on the disk of its server")


def check(where: str, sessions: Sequence[str] | None) -> tuple[list[str], list[str]]:
    """(sessions, problems)."""
    place = _shared(where)
    names = _names(place)
    ids = [_one(place, one, names) for one in sessions] if sessions else list(names)
    return ids, [problem for ident in ids for problem in _admin().check(place, ident)]


def chosen(where: str, session: str) -> str:
    place = _shared(where)
    return _one(place, session, _names(place))


def delete(where: str, ident: str) -> None:
    _admin().delete(_shared(where), ident)


def _names(place: str) -> dict[str, str]:
    store = open_store(place)
    try:
        return dict(store.sessions())
    finally:
        store.close()


def _one(place: str, session: str, names: dict[str, str]) -> str:
    return catalog.chosen(session, list(names), lambda: names, f" in {place.partition('?')[0]}")


def _shared(place: str) -> str:
    place = address.checked(place) if place else address.named()
    if not address.is_shared(place):
        raise BadValue(f"{place or 'this'} is no shared store: name one as postgresql://HOST/DATABASE")
    return place


def _admin() -> ModuleType:
    """Late: it needs an extra. Raises MissingExtra."""
    from rlgpt.store.shared import admin

    return admin


def _say(place: str, sentence: str, json: bool) -> None:
    if json:
        output.document({"store": place.partition("?")[0], "said": sentence})
    else:
        output.say(sentence)
