"""The stranger's test: from the first frame of the console, in at most 6 keys and 60 seconds, a person who was never
here finds out what the goal is, which sub-action loses most episodes, what ended those, and whether PPO helps.

    python docs/stranger.py --session ID [--pictures FOLDER]

Opens the real console without a terminal on a copy of the session, in nine looks (three sizes; dark, light, and without
colours), presses the keys that the first tour and the footer name, and looks for the answers on the screen. The answers
are computed from the session's rows. With --pictures it saves what was seen after each key as SVG.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

SIZES = ((80, 24), (120, 40), (200, 60))
THEMES = {"dark": "rlgpt-dark", "light": "rlgpt-light", "no-colour": "rlgpt-dark"}
MOST_KEYS, MOST_SECONDS = 6, 60.0
KEYS = ("enter", "9", "W", "z", "G")
"""The tour is closed, the funnel opened, then the pane that says why PPO does not improve, alone and to its end."""
PATIENCE = 20.0
"""Seconds for a key to be answered."""


def answers(session: Any) -> dict[str, list[str]]:
    """Question -> texts that must stand on the screen, each after some key."""
    from rlgpt.console.commands.insight import moment_of
    from rlgpt.console.view.funnel import funnel
    from rlgpt.console.view.why import findings

    with moment_of(session, None) as m:
        worst = funnel(m).worst
        ppo = next((f for f in findings(m) if f.test == "code_alone"), None)
        if worst is None or not worst.causes or ppo is None or ppo.bad is None:
            raise SystemExit(f"{session} has no answers to look for: it needs a PPO run, and lost episodes with causes")
        cause, number = worst.causes[0]
        return {
            "what the goal is": [str(m.history.session["task_info"]["prompt"])[:40]],
            "where most episodes are lost": [f"Most are lost at {worst.name}"],
            "what ended them there": [f"{cause} {number}"],
            "whether PPO helps": [ppo.title, ppo.shown],
        }


async def look(home: Path, session: str, size: tuple[int, int], name: str, pictures: Path | None) -> dict[str, Any]:
    """{question: [keys pressed, seconds]} of what was found."""
    from rlgpt.console.app import ConsoleApp
    from rlgpt.console.preferences import Preferences

    Preferences(theme=THEMES[name]).save(home)
    wanted = answers(session)
    found: dict[str, Any] = {}
    began = time.monotonic()
    app = ConsoleApp(home, session, animated=False, tour=True)
    async with app.run_test(size=size) as pilot:
        for pressed, key in enumerate((None, *KEYS)):
            if key:
                await pilot.press(key)
            before = ""
            while time.monotonic() - began < MOST_SECONDS:
                await pilot.pause(0.2)
                text = " ".join(_text(app).split())
                for question, texts in wanted.items():
                    if question not in found and all(" ".join(part.split()) in text for part in texts):
                        found[question] = (pressed, round(time.monotonic() - began, 1))
                settled = text == before and ("tour" in str(type(app.screen)).lower() or "opening" not in text)
                if settled and (pressed or "Welcome to rlgpt" in text):
                    break
                before = text
            if pictures:
                stem = f"{size[0]}x{size[1]}-{name}-{pressed}"
                (pictures / f"{stem}.svg").write_text(app.export_screenshot(title="rlgpt"))
            if len(found) == len(wanted):
                break
    return found


def _text(app: Any) -> str:
    """The screen without the borders between panes, so that a sentence that is wrapped is still one."""
    rows = [strip.text for strip in app.screen._compositor.render_strips()]
    return "\n".join(row.replace("│", " ") for row in rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--session", default="last", help="A finished session with PPO, in your store.")
    parser.add_argument("--pictures", type=Path, help="Where to save the screens as SVG.")
    parser.add_argument("--look", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.look:
        size, name = options.look.split(":")
        width, height = map(int, size.split("x"))
        home = Path(os.environ["RLGPT_HOME"])
        print(json.dumps(asyncio.run(look(home, options.session, (width, height), name, options.pictures))))
        return
    from rlgpt.store.bundle import export_bundle, import_bundle
    from rlgpt.store.catalog import find

    if options.pictures:
        options.pictures.mkdir(parents=True, exist_ok=True)
    failed = False
    with tempfile.TemporaryDirectory() as scratch:
        bundle = export_bundle(find(options.session), Path(scratch) / "copy.rlgpt")
        for width, height in SIZES:
            for name in THEMES:
                home = Path(scratch) / f"{width}-{name}"
                home.mkdir()
                os.environ["RLGPT_HOME"] = str(home)
                ident = import_bundle(bundle).id
                words = [sys.executable, __file__, "--session", ident, "--look", f"{width}x{height}:{name}"]
                words += ["--pictures", str(options.pictures.absolute())] if options.pictures else []
                own = {"NO_COLOR": "1"} if name == "no-colour" else {}
                done = subprocess.run(words, env={**os.environ, **own}, capture_output=True, text=True, check=False)
                if done.returncode:
                    raise SystemExit(done.stderr)
                found = json.loads(done.stdout.splitlines()[-1])
                keys = max((pressed for pressed, _ in found.values()), default=0)
                seconds = max((second for _, second in found.values()), default=0.0)
                good = len(found) == 4 and keys <= MOST_KEYS and seconds <= MOST_SECONDS
                failed |= not good
                told = ", ".join(f"{question}: key {pressed}" for question, (pressed, _) in found.items())
                print(f"{'ok  ' if good else 'FAIL'} {width}x{height} {name:<9} {keys} keys, {seconds} s  ({told})")
    sys.exit(failed)


if __name__ == "__main__":
    main()
