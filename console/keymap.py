"""Every key of the console: one table that drives dispatch, the footer, help, the command palette and the user's
own keymap (`keymap.toml` in the home folder: `"session.pause" = "f9,P"`).

A user's keys replace those of the table by id. Nothing else in the console names a key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from rlgpt.store.home import read_toml

FILE = "keymap.toml"
NO_KEYS: Mapping[str, str] = MappingProxyType({})
"""Of a user without a keymap."""


@dataclass(frozen=True)
class Key:
    id: str
    """scope.verb; stable, named in a user's keymap."""
    keys: str
    """Textual key names, the first is shown."""
    action: str
    """What is called: `action_<name>` of the widget, screen or app that has the scope, or after `app.` the app's."""
    label: str
    """Footer, two words at most."""
    help: str
    hint: int = 0
    """Place in the footer, from 1; 0: not there."""
    shown: str = ""
    """How the keys are written, if not as their names."""
    priority: bool = False
    """Before the focused widget: a text area would take the key itself."""

    @property
    def scope(self) -> str:
        return self.id.split(".")[0]


KEYS: tuple[Key, ...] = (
    # everywhere
    Key(
        "app.help", "question_mark,f1", "help", "help", "All keys and actions here; searchable, Enter runs one", 90, "?"
    ),
    Key("app.palette", "ctrl+p,colon", "command_palette", "palette", "Command palette: every action by name", 91, ":"),
    Key("app.inbox", "I,f3", "inbox", "inbox", "The sessions that wait for you, from anywhere"),
    Key("app.theme", "f2", "next_theme", "theme", "The next theme"),
    Key("app.screenshot", "f5", "save_screenshot", "screenshot", "Save the screen as an SVG picture"),
    Key("app.yank", "y", "yank", "copy", "Copy the focused thing to the clipboard (OSC 52, also over SSH)"),
    Key("app.back", "escape", "back", "back", "One step back: undo the zoom, else the filter, else close this"),
    Key(
        "app.quit",
        "q,ctrl+q",
        "leave",
        "leave",
        "Back to the list, or out of the console; no session stops by that",
        80,
    ),
    # any list
    Key("list.down", "j,down", "cursor_down", "down", "Next entry", shown="j/↓"),
    Key("list.up", "k,up", "cursor_up", "up", "Previous entry", shown="k/↑"),
    Key("list.page_down", "pagedown,ctrl+d", "page(1)", "page down", "A page down"),
    Key("list.page_up", "pageup,ctrl+u", "page(-1)", "page up", "A page up"),
    Key("list.home", "home,g", "edge(False)", "top", "First entry"),
    Key("list.end", "end,G", "edge(True)", "bottom", "Last entry"),
    Key("list.choose", "enter", "choose", "open", "Open or unfold the entry", 1, "⏎"),
    # sessions
    Key("sessions.new", "n", "new", "new", "Start a new session", 2),
    Key("sessions.open", "a", "attach", "attach", "Open the session; it shows live what its worker writes", 3),
    Key("sessions.replay", "r", "replay", "replay", "Replay the session from its beginning", 4),
    Key("sessions.fork", "f", "fork", "fork", "New session from this one's last complete phase", 5),
    Key("sessions.compare", "c", "compare", "compare", "Compare the marked sessions (space marks)", 6),
    Key("sessions.mark", "space", "mark", "mark", "Mark or unmark for comparing", 7),
    Key("sessions.tag", "t", "tag", "tag", "Set the session's tags"),
    Key("sessions.sort", "s", "sort", "sort", "Sort by the next column", 8),
    Key("sessions.reverse", "S", "reverse", "reverse", "Reverse the order"),
    Key("sessions.tree", "T", "tree", "tree", "Forks below the session they go on from, or the sorted list again", 13),
    Key("sessions.leaderboard", "L", "leaderboard", "leaderboard", "The best sessions of this task, seeds grouped", 14),
    Key("sessions.resume", "R", "resume", "resume", "Start a worker again for a dead or stopped session", 9),
    Key("sessions.export", "e", "export", "export", "Write the session as one bundle file"),
    Key("sessions.delete", "d,delete", "delete", "delete", "Delete the session, after a question"),
    Key("sessions.filter", "slash", "filter", "filter", "Show only entries with these words", 10, "/"),
    Key("sessions.skills", "K", "skills", "skills", "The skill library", 11),
    Key("sessions.doctor", "D", "doctor", "doctor", "What works on this machine, and how to mend what does not", 12),
    # the session screen
    Key("session.detach", "q", "detach", "detach", "Leave; the session goes on without the console", 80),
    Key("session.approve", "A", "command('approve')", "approve", "Make the waiting plan the active one", 2),
    Key(
        "session.reject",
        "X",
        "command('reject')",
        "reject",
        "Reject the waiting plan, with a reason for the slow agent",
        3,
    ),
    Key("session.verdict", "v", "command('verdict')", "verdict", "Give a verdict as the critic", 4),
    Key("session.override", "o", "command('override')", "override", "Edit the plan: modes, goals, order, pins", 5),
    Key("session.edit_code", "e", "command('edit_code')", "edit code", "Edit the shown coded action", 0),
    Key("session.advise", "a", "command('advise')", "advise", "Write advice to an agent", 0),
    Key("session.pause", "p", "command('pause')", "pause", "Pause the session at the next step, or let it go on", 6),
    Key(
        "session.stop_training",
        "T",
        "command('stop_training')",
        "end PPO",
        "End this PPO run early and keep what it learnt",
        7,
    ),
    Key(
        "session.cancel_call",
        "i",
        "command('cancel_call')",
        "end call",
        "End the call to the model that is under way: it is asked once more, then done without",
        8,
    ),
    Key("session.stop", "Q", "command('stop')", "stop", "Stop the session, after a question", 0),
    Key("session.resume", "R", "command('resume')", "resume", "Start a worker again for this session", 1),
    Key("session.budget", "b", "command('budget')", "budget", "Change a budget"),
    Key(
        "session.fork", "f", "command('fork')", "fork", "New session from the last complete phase before the cursor", 13
    ),
    Key("session.report", "h", "report", "report", "Write the session, as it is at the cursor, as one HTML page"),
    Key(
        "session.filter", "slash", "filter", "filter", "Show only entries with these words in the focused pane", 14, "/"
    ),
    Key("session.zoom", "z", "zoom", "zoom", "The focused pane alone, or all again", 12),
    Key("session.next_pane", "tab", "next_pane", "next pane", "Focus the next pane"),
    Key("session.previous_pane", "shift+tab", "previous_pane", "previous pane", "Focus the previous pane"),
    Key(
        "session.wider",
        "greater_than_sign,alt+right",
        "resize(1, 0)",
        "wider",
        "Make the column of the focused pane wider",
        shown=">",
    ),
    Key(
        "session.narrower",
        "less_than_sign,alt+left",
        "resize(-1, 0)",
        "narrower",
        "Make the column of the focused pane narrower",
        shown="<",
    ),
    Key("session.taller", "plus,alt+down", "resize(0, 1)", "taller", "Make the focused pane taller", shown="+"),
    Key("session.lower", "minus,alt+up", "resize(0, -1)", "lower", "Make the focused pane lower", shown="-"),
    Key("session.reset_layout", "0", "reset_layout", "reset layout", "All panes back to where they were"),
    *(
        Key(f"session.pane{n}", str(n), f"pane('{name}')", name, f"Show and focus the {words} pane")
        for n, name, words in (
            (1, "plan", "plan"),
            (2, "code", "code"),
            (3, "curves", "curves"),
            (4, "verdicts", "verdicts"),
            (5, "world", "world"),
            (6, "log", "log"),
            (7, "calls", "LLM calls"),
            (8, "system", "system"),
            (9, "funnel", "funnel"),
        )
    ),
    Key("session.episodes", "E", "pane('episodes')", "episodes", "Show and focus the episodes pane"),
    Key("session.why", "W", "pane('why')", "why", "Show and focus the pane of tests why PPO does not improve"),
    Key("session.options", "U", "pane('options')", "options", "Show and focus the table of coded actions in use"),
    # the timeline (session screen)
    Key("time.play", "space", "play", "play", "Play from the cursor, or stop", 8),
    Key("time.live", "l", "live", "live", "To the right end: live", 9),
    Key("time.back", "left_square_bracket", "seek(-1)", "back", "One row back", 10, "["),
    Key("time.forward", "right_square_bracket", "seek(1)", "forward", "One row on", 11, "]"),
    Key("time.back_far", "left_curly_bracket", "leap(-1)", "back 5%", "5% of the timeline back", shown="{"),
    Key("time.forward_far", "right_curly_bracket", "leap(1)", "on 5%", "5% of the timeline on", shown="}"),
    Key("time.start", "H", "start", "start", "To the beginning"),
    Key("time.faster", "full_stop", "speed(1)", "faster", "Play faster, up to 1000x", shown="."),
    Key("time.slower", "comma", "speed(-1)", "slower", "Play slower, down to 0.25x", shown=","),
    Key("time.next", "n", "jump('', True)", "next mark", "To the next mark of any kind"),
    Key("time.previous", "N", "jump('', False)", "last mark", "To the previous mark of any kind"),
    Key("time.next_plan", "P", "jump('plan', True)", "next plan", "To the next plan"),
    Key("time.next_code", "C", "jump('code', True)", "next code", "To the next code version"),
    Key("time.next_verdict", "V", "jump('verdict', True)", "next verdict", "To the next verdict"),
    Key("time.next_override", "O", "jump('override', True)", "next override", "To the next override or other command"),
    # panes
    Key("revisions.show", "d", "revisions", "revisions", "The plan's revisions with what each changed, or the plan"),
    Key("plan.jump", "t", "jump_here", "to this time", "Move the timeline's cursor to where this happened"),
    Key("code.next_version", "right", "version(1)", "next version", "The next version of this coded action", shown="→"),
    Key("code.previous_version", "left", "version(-1)", "previous version", "The previous version", shown="←"),
    Key("code.next_action", "J", "sub_action(1)", "next action", "The next coded action"),
    Key("code.previous_action", "K", "sub_action(-1)", "previous action", "The previous coded action"),
    Key(
        "code.compare", "c", "against", "compare with", "Compare with the version before, with the first, or with none"
    ),
    Key("code.newest", "w", "newest", "newest", "Follow the newest version"),
    Key("curves.next", "right", "chart(1)", "next chart", "The next chart, or the crosshair to the right", shown="→"),
    Key(
        "curves.previous",
        "left",
        "chart(-1)",
        "previous chart",
        "The previous chart, or the crosshair to the left",
        shown="←",
    ),
    Key("curves.grid", "enter", "expand", "one chart", "The selected chart alone, or all again", 1, "⏎"),
    Key("curves.smooth", "s", "smooth", "smoothing", "Smoothing: off, 0.6, 0.9, 0.97"),
    Key("curves.log", "L", "log", "log scale", "Logarithmic y-axis"),
    Key("curves.window", "w", "window", "window", "Window of env steps shown"),
    Key("curves.crosshair", "x", "crosshair", "crosshair", "Crosshair: read values with the arrow keys"),
    Key("curves.zoom_in", "i", "zoom(0.5)", "zoom in", "Half the env steps, around the crosshair or at the end", 0),
    Key("curves.zoom_out", "u", "zoom(2.0)", "zoom out", "Twice the env steps, up to all"),
    Key("curves.series", "c", "series", "series", "Which series of the selected chart are drawn; one alone", 2),
    Key("curves.overlay", "m", "overlay", "overlay", "Draw another session or iteration over the curves", 3),
    Key("curves.page_down", "down,j,pagedown", "charts(1)", "more charts", "The charts below", shown="j/↓"),
    Key("curves.page_up", "up,k,pageup", "charts(-1)", "charts above", "The charts above", shown="k/↑"),
    Key("world.next", "right", "step(1)", "next frame", "The next stored frame", shown="→"),
    Key("world.previous", "left", "step(-1)", "previous frame", "The previous stored frame", shown="←"),
    Key("world.next_episode", "down,j", "episode(1)", "next episode", "The next stored episode", shown="j/↓"),
    Key(
        "world.previous_episode", "up,k", "episode(-1)", "previous episode", "The previous stored episode", shown="k/↑"
    ),
    Key("world.newest", "w", "newest", "newest", "Follow the newest frame"),
    Key("world.play", "enter", "play_episode", "play episode", "Play the episode's frames", 1, "⏎"),
    Key("log.level", "s", "level", "level", "Least level shown: debug, info, warning, error"),
    # the override editor
    Key("override.mode", "m,space", "mode", "mode", "Switch a step to RL, a guard to option, and back to code", 3),
    Key("override.edit", "enter,e", "edit", "edit", "Edit goal, predicate, reason, steps", 2, "⏎"),
    Key("override.add", "a,insert", "add", "add", "Add a sub-action below", 7),
    Key("override.remove", "d,delete", "remove", "remove", "Remove the sub-action", 8),
    Key("override.up", "K,shift+up", "move(-1)", "move up", "Move the sub-action up", 9),
    Key("override.down", "J,shift+down", "move(1)", "move down", "Move the sub-action down", 10),
    Key("override.pin", "p", "pin", "pin", "Pin: the model may not change it", 5),
    Key("override.executor", "x", "executor", "executor", "Executor: sequence or policy", 11),
    Key("override.undo", "u,ctrl+z", "undo", "undo", "Undo the last edit", 6),
    Key("override.redo", "U,ctrl+y", "redo", "redo", "Redo"),
    Key("override.apply", "A,ctrl+s", "apply('now')", "apply now", "Send; a PPO run ends at the next decision", 1),
    Key("override.apply_next", "N", "apply('next')", "apply next", "Send; active from the next iteration", 12),
    Key("override.rebase", "R", "rebase", "take over", "Put the edits on top of the newest revision", 2),
    # compare, skills, doctor
    Key("compare.base", "b", "base", "base", "The session the others are compared with", 4),
    Key("compare.chart", "right", "chart(1)", "next chart", "The next chart", 2, "→"),
    Key("compare.chart_back", "left", "chart(-1)", "previous chart", "The previous chart", 3, "←"),
    Key("leaderboard.next", "right", "other_task(1)", "next task", "The next task that has sessions", 2, "→"),
    Key("leaderboard.previous", "left", "other_task(-1)", "previous task", "The task before", 3, "←"),
    Key("series.toggle", "space", "mark", "show/hide", "Draw this series, or not"),
    Key("series.usual", "a", "usual", "usual", "Draw the largest series"),
    Key("series.done", "escape", "done", "done", "Draw the marked series"),
    Key("overlay.close", "escape", "close", "close", "Leave the overlay as it is"),
    Key("tour.close", "escape,enter,space,q", "close", "close", "Close the tour; another key does its work too"),
    Key("inbox.close", "escape,I,f3", "close", "close", "Close the inbox"),
    Key("skills.test", "t", "test", "test", "Try the skill in its world", 2),
    Key("skills.retire", "r", "retire", "retire", "Retire the skill, or take it back", 3),
    Key("skills.export", "e", "export", "export", "Write the skill to a file", 4),
    Key("skills.import", "i", "import_file", "import", "Read skills from a file", 5),
    Key("skills.filter", "slash", "filter", "filter", "Show only skills with these words", 6, "/"),
    Key("doctor.again", "r", "again", "again", "Check again", 2),
    # a new session, and dialogs
    Key("new.leave", "escape", "app.back", "leave", "Back without a new session"),
    Key("new.start", "ctrl+s", "start", "start", "Start the session"),
    Key("new.other_side", "f6", "other_side", "list / form", "From the tasks to the form, or back"),
    Key("confirm.yes", "y", "answer(True)", "yes", "Do what is asked about"),
    Key("confirm.no", "n,escape", "answer(False)", "no", "Do nothing"),
    Key("form.leave", "escape", "leave", "leave", "Leave the dialog; what was typed is dropped after a question"),
    Key("form.send", "ctrl+s", "send", "send", "Send what the dialog holds"),
    # Textual's own binding of Tab answers once the key has bubbled up from the field, and what follows in one burst
    # (from a script, over a slow connection) goes to the field that is left. With priority the focus moves first.
    Key("fields.next", "tab", "app.focus_next", "next field", "The next field", priority=True),
    Key("fields.previous", "shift+tab", "app.focus_previous", "field before", "The field before", priority=True),
    Key("editor.leave", "escape", "leave", "leave", "Leave the editor, after a question", priority=True),
    Key("editor.own_editor", "f4", "own_editor", "your editor", "The text in $VISUAL or $EDITOR", priority=True),
    Key("editor.check", "f7", "check", "check", "Ask the action host whether this may run", priority=True),
    Key("editor.send", "ctrl+s", "send('now')", "send now", "Send; a PPO run ends at the next decision"),
    Key("editor.send_next", "ctrl+t", "send('next')", "send next", "Send; active from the next iteration"),
    Key("filter.clear", "escape", "clear_filter", "clear", "Show all entries again"),
    Key("help.close", "escape,f1", "close", "close", "Close the help"),
    Key("help.down", "down", "move(1)", "down", "Next entry", priority=True),
    Key("help.up", "up", "move(-1)", "up", "Previous entry", priority=True),
)


def of(scope: str) -> list[Key]:
    return [key for key in KEYS if key.scope == scope]


def bindings(*scopes: str) -> list[Any]:
    """The table's keys of these scopes as Textual bindings."""
    from textual.binding import Binding

    return [
        Binding(
            key.keys, key.action, key.label, show=bool(key.hint), tooltip=key.help, id=key.id, priority=key.priority
        )
        for scope in scopes
        for key in of(scope)
    ]


def argument(key: Key, action: str) -> str:
    """The one text that a key hands to an action; "" for the key of another action."""
    return key.action[len(action) + 2 : -2] if key.action.startswith(f"{action}('") else ""


def written(key: Key, overrides: Mapping[str, str] | None = None) -> str:
    """The key as a person reads it."""
    own = (overrides or {}).get(key.id)
    if own is None and key.shown:
        return key.shown
    first = (own or key.keys).split(",")[0].strip()
    names = {
        "escape": "esc",
        "enter": "⏎",
        "slash": "/",
        "colon": ":",
        "question_mark": "?",
        "full_stop": ".",
        "comma": ",",
        "delete": "del",
    }
    return names.get(
        first, first.replace("ctrl+", "^").replace("shift+", "⇧").replace("pagedown", "pgdn").replace("pageup", "pgup")
    )


def pane_key(name: str, overrides: Mapping[str, str]) -> str:
    """The key that shows a pane of the session screen."""
    return written(next(key for key in of("session") if argument(key, "pane") == name), overrides)


def has_key(ident: str, pressed: str, overrides: Mapping[str, str]) -> bool:
    """Whether this is a key of the action."""
    key = next(key for key in KEYS if key.id == ident)
    return pressed in (word.strip() for word in overrides.get(ident, key.keys).split(","))


def spelt(ident: str, overrides: Mapping[str, str]) -> str:
    """The first key of an action in words: `ctrl+s`, `esc`."""
    key = next(key for key in KEYS if key.id == ident)
    return overrides.get(ident, key.keys).split(",")[0].strip().replace("escape", "esc")


def short(ident: str, overrides: Mapping[str, str]) -> str:
    """The first key of an action as the footer writes it: `^s`, `esc`."""
    return written(next(key for key in KEYS if key.id == ident), overrides)


def user_keys(home: Path) -> tuple[dict[str, str], list[str]]:
    """(id -> keys of the user's keymap, sentences about what in it is wrong)."""
    path = home / FILE
    if not path.is_file():
        return {}, []
    try:
        parsed = read_toml(path)
    except (OSError, ValueError) as error:
        return {}, [f"{FILE} cannot be read: {error}"]
    ids = {key.id for key in KEYS}
    wrong = [f"{FILE}: there is no action {name!r}" for name in parsed if name not in ids]
    wrong += [
        f"{FILE}: the keys of {name} must be a text"
        for name, keys in parsed.items()
        if name in ids and not isinstance(keys, str)
    ]
    own = {name: keys for name, keys in parsed.items() if name in ids and isinstance(keys, str)}
    return own, wrong + [f"{FILE}: {sentence}" for sentence in conflicts(own)]


_PANES = ("plan", "code", "curves", "world", "log")
TOGETHER = (
    ("sessions", "list", "app"),
    ("revisions", "plan", "session", "time", "list", "app"),
    *((pane, "session", "time", "list", "app") for pane in _PANES),
    *((scope, "list", "app") for scope in ("override", "compare", "leaderboard", "skills", "doctor")),
    *((scope, "list", "app") for scope in ("inbox", "series", "overlay")),
    ("new", "fields", "list", "app"),
    ("form", "fields", "app"),
    *((scope, "app") for scope in ("confirm", "editor", "filter", "tour")),
    ("help", "list", "app"),
)
"""Scopes whose keys are there at the same time, the innermost first: it answers where two have a key."""


def conflicts(own: Mapping[str, str]) -> list[str]:
    """A sentence for each key that a user's keymap gives to two actions of one place, where the table does not."""
    sentences: dict[str, None] = {}
    for scopes in TOGETHER:
        usual, chosen = _owners(scopes, {}), _owners(scopes, own)
        for pressed, names in chosen.items():
            if len(names) > 1 and names != usual.get(pressed) and any(name in own for name in names):
                sentences[f"{pressed} is the key of {' and of '.join(names)}: only one of them answers"] = None
    return list(sentences)


def _owners(scopes: tuple[str, ...], own: Mapping[str, str]) -> dict[str, list[str]]:
    """Key -> ids of the actions that have it in these scopes."""
    owners: dict[str, list[str]] = {}
    for key in (key for scope in scopes for key in of(scope)):
        for pressed in own.get(key.id, key.keys).split(","):
            if pressed.strip():
                owners.setdefault(pressed.strip(), []).append(key.id)
    return owners
