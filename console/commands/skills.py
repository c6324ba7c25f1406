"""The skill library: `skills list|show|export|import|retire|restore`."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated, Any

import typer

from rlgpt.console.commands import output, piped
from rlgpt.console.commands.failure import Exit, Failure
from rlgpt.console.commands.files import new_file
from rlgpt.console.commands.words import Json, beginning_with, path_from
from rlgpt.console.sanitise import clean_lines
from rlgpt.console.view.numbers import rate
from rlgpt.store import skills as library
from rlgpt.store.errors import BadSkill


def complete_skill(incomplete: str) -> list[str]:
    return sorted(set(beginning_with(incomplete, (skill.name for skill in library.skills()))))


Wanted = Annotated[
    str,
    typer.Argument(metavar="SKILL", help="Name, or 4 or more digits of the hash.", autocompletion=complete_skill),
]
World = Annotated[str | None, typer.Option(help="Only skills of this world.")]


def register(app: typer.Typer) -> None:
    family = typer.Typer(help="Coded actions that earlier sessions accepted.")
    family.command("list")(list_skills)
    family.command("show")(show)
    family.command("export")(export)
    family.command("import")(import_skills)
    family.command("retire")(retire)
    family.command("restore")(restore)
    app.add_typer(family, name="skills")


def list_skills(
    search: Annotated[str, typer.Argument(help="Words in the name, description, task or source.")] = "",
    world: World = None,
    retired: Annotated[bool, typer.Option("--retired", help="Those taken out of use.")] = False,
    json: Json = False,
) -> None:
    """List the skills by name, of each name the best measured first."""
    shown = library.search(search, world, retired=retired)
    if json:
        output.document({"skills": [_tree(skill, source=False) for skill in shown]})
    else:
        rows = [(s.hash[:8], s.name, s.world, rate(s.successes, s.episodes), s.description) for s in shown]
        output.table(("hash", "name", "world", "success in trials", "description"), rows)


def show(skill: Wanted, json: Json = False) -> None:
    """Print one skill with its source."""
    selected = library.find(skill)
    if json:
        output.document(_tree(selected, source=True))
        return
    output.say(f"{selected.name} ({selected.hash[:8]}) in {selected.world}: {selected.description}")
    output.say(f"success {rate(selected.successes, selected.episodes)} in trials of session {selected.session_id}")
    output.say(f"done when {selected.done_when}")
    output.say()
    for line in clean_lines(selected.source):
        output.say(line)


def export(
    file: Annotated[Path, typer.Argument(parser=path_from, help="The file to write; - is standard output.")],
    skill: Annotated[list[str] | None, typer.Option("--skill", help="Only these; all if left out.")] = None,
    world: World = None,
    json: Json = False,
) -> None:
    """Write skills to a file that `rlgpt skills import` reads."""
    chosen = [library.find(word) for word in skill] if skill else library.skills(world)
    for other in (s for s in chosen if world and s.world != world):
        raise Failure(f"skill {other.name} is of world {other.world!r}, not of {world!r}.", Exit.USAGE)
    if not chosen:
        raise Failure(f"there is no skill{f' of world {world!r}' if world else ''} to export.", Exit.NOT_FOUND)
    if piped.is_standard_output(file, json):
        piped.write_to_standard_output(lambda path: path.write_bytes(library.export(chosen)))
        return
    with new_file(file) as partial:
        partial.write_bytes(library.export(chosen))
    _report(json, "exported", chosen)


def import_skills(file: Annotated[Path, typer.Argument(help="A file of skills.")], json: Json = False) -> None:
    """Keep all skills of a file; the action host admits them again wherever they are used."""
    before = {skill.hash for skill in library.skills()}
    try:
        skills = library.import_file(file)
    except OSError as error:
        raise Failure(f"{file} cannot be read: {error.strerror}", Exit.USAGE) from error
    except BadSkill as error:
        raise Failure(f"{file}: {error}", Exit.USAGE) from error
    new = [skill for skill in skills if skill.hash not in before]
    there = [skill for skill in skills if skill.hash in before]
    if json:
        output.document({"imported": [skill.hash for skill in new], "already_there": [skill.hash for skill in there]})
        return
    _report(json, "imported", new)
    if there:
        output.say(f"already there: {', '.join(skill.name for skill in there)}")


def retire(skill: Wanted, json: Json = False) -> None:
    """Take a skill out of use in new sessions."""
    selected = library.find(skill)
    library.retire(selected.hash)
    _report(json, "retired", [selected])


def restore(skill: Wanted, json: Json = False) -> None:
    """Put a retired skill back into use."""
    selected = library.find(skill)
    library.restore(selected.hash)
    _report(json, "restored", [selected])


def _report(json: bool, verb: str, skills: list[library.Skill]) -> None:
    if json:
        output.document({verb: [skill.hash for skill in skills]})
    else:
        output.say(f"{verb} " + (", ".join(skill.name for skill in skills) or "nothing"))


def _tree(skill: library.Skill, *, source: bool) -> dict[str, Any]:
    tree = {"hash": skill.hash, **dataclasses.asdict(skill)}
    if not source:
        del tree["source"]
    return tree
