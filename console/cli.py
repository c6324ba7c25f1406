"""The command `rlgpt`. Without a word it opens the console at once; anything else is a command.

All errors of the command line end here: a sentence on standard error (with --json also {"error": ...} on
standard output) and an exit code from `commands/failure.py`.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys

from rlgpt.console import signals

COMPLETION = "_RLGPT_COMPLETE"
"""Set by a shell that asks for completions: it calls the command without a word."""
UNAVAILABLE = 5
"""`Exit.UNAVAILABLE`, without the import."""
OF_THE_MACHINE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EACCES, errno.EPERM, errno.EROFS)
"""EFBIG: `ulimit -f`; EIO: a terminal that was closed."""


def main() -> None:
    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal or pipe that is not UTF-8 gets `?` for what it lacks
    try:
        _name_paths_in_full()
    except FileNotFoundError:
        gone = "the folder that this shell is in was removed, and a path in the environment begins there"
        sys.exit(_refuse(f"{gone}: go to another folder.", UNAVAILABLE, sys.argv[1:]))
    signals.unwind()
    try:
        code = run(sys.argv[1:])
    except signals.ToldToEnd as told:
        signals.die_of(told.number)
    try:
        sys.stdout.flush()
    except OSError as error:  # `>/dev/full`; a reader that has gone away is no failure
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python would try once more
        if not isinstance(error, BrokenPipeError):
            code = code or _refuse(f"standard output: {error.strerror}", UNAVAILABLE, [])
    sys.exit(code)


def _name_paths_in_full() -> None:
    """A worker runs in its session's folder: with `RLGPT_HOME=runs` it would have a home of its own there, with other
    training slots and other skills. Raises FileNotFoundError where the folder of this process is gone."""
    from rlgpt.store.home import VARIABLE, home

    if path := os.environ.get("PYTHONPATH"):
        os.environ["PYTHONPATH"] = os.pathsep.join(map(os.path.abspath, path.split(os.pathsep)))
    if os.environ.get(VARIABLE):
        os.environ[VARIABLE] = str(home())


def _open_closed_streams() -> None:
    """A shell that was told `<&-` leaves a standard stream closed: Python has None for it, and the next file that is
    opened, perhaps a database, would be the child processes' standard input or output."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115 - for as long as we live


def run(words: list[str]) -> int:
    """One command line, without `rlgpt` itself; returns the exit code."""
    from rlgpt.console.commands.failure import Exit, Failure, code_of
    from rlgpt.store import errors

    try:
        if not words and COMPLETION not in os.environ:
            from rlgpt.console.commands.open import open_console

            return open_console()
        from rlgpt.console.commands import tree

        code = tree.run(words)
        return _interrupted(words) if code == Exit.INTERRUPTED else code
    except Failure as error:
        return _refuse(str(error), error.code, words)
    except errors.StoreError as error:
        return _refuse(str(error), code_of(error), words)
    except KeyboardInterrupt:
        return _interrupted(words)
    except BrokenPipeError:
        sys.stderr.close()
        return Exit.OK
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            return _refuse(f"{str(error.filename)[:60]!r}... is too long for the name of a file", Exit.USAGE, words)
        if error.errno not in OF_THE_MACHINE:
            raise
        place = error.filename or "standard output, or a file that was to be written"
        return _refuse(f"{place}: {error.strerror}", Exit.UNAVAILABLE, words)
    except Exception as error:
        if isinstance(error, OverflowError) and "SQLite" in str(error):  # a row, an iteration, a revision
            return _refuse("a number in this command is larger than any that a session holds", Exit.USAGE, words)
        if damage := _damage():
            return _refuse(damage, Exit.UNAVAILABLE, words)
        if "--json" in words:
            _refuse(f"{type(error).__name__}: {error}", Exit.ERROR, words)
        raise


def _interrupted(words: list[str]) -> int:
    from rlgpt.console.commands.failure import Exit

    return _refuse("interrupted", Exit.INTERRUPTED, words) if "--json" in words else Exit.INTERRUPTED


def _damage() -> str:
    """What is wrong with the newest session that was opened and is not sound: values that were flipped in a database
    break whatever reads them, anywhere."""
    from rlgpt.store.database import opened
    from rlgpt.store.soundness import explained

    explanations = (explained(database) for database in reversed(opened) if database.exists())
    return next((str(damage) for damage in explanations if damage), "")


def _refuse(sentence: str, code: int, words: list[str]) -> int:
    if COMPLETION in os.environ:  # a sentence would stand in the middle of the line that is being typed
        return int(code)
    from rlgpt.console.sanitise import clean

    if "--json" in words:
        import json

        with contextlib.suppress(OSError):  # this may be what the sentence is about
            print(json.dumps({"error": sentence, "exit_code": int(code)}), flush=True)
    print(f"rlgpt: {clean(sentence)}", file=sys.stderr, flush=True)
    return int(code)


if __name__ == "__main__":
    main()
