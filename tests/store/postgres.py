"""A PostgreSQL server of the tests' own: in a temporary folder, on a Unix socket only."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest

ACCOUNT = "postgres"


def programs() -> Path | None:
    """The folder of `initdb`, the newest there is."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb")) or [
        Path(name) for name in (shutil.which("initdb"),) if name
    ]
    return found[-1].parent if found else None


NEEDS_SERVER = [
    pytest.mark.postgres,
    pytest.mark.skipif(programs() is None, reason="PostgreSQL's server is not installed (Debian: postgresql)"),
]
"""Marks of a module whose tests start one."""


class Server:
    def __init__(self, listens: str = "") -> None:
        """`listens`: an address of a network that it is reached from too."""
        self._listens = listens
        self.port = 5432
        self._programs = programs()
        assert self._programs, "PostgreSQL's server is not installed"
        self.folder = Path(tempfile.mkdtemp(prefix="rlgpt-pg-"))
        if os.getuid() == 0:
            shutil.chown(self.folder, ACCOUNT)
        self._run("initdb", "-D", self._data, "-A", "trust", "-U", ACCOUNT, "-E", "UTF8", "--no-sync")
        if listens:
            with socket.socket() as free:
                free.bind((listens, 0))
                self.port = free.getsockname()[1]
            with (self._data / "pg_hba.conf").open("a") as rules:
                rules.write(f"host all all {listens}/24 trust\n")
        self.start()
        self._databases = 0

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    def start(self) -> None:
        options = (
            f"-c listen_addresses='{self._listens}' -p {self.port} -c fsync=off -c max_connections=250 -k {self.folder}"
        )
        self._run("pg_ctl", "-D", self._data, "-o", options, "-l", self.folder / "log", "-w", "-t", "120", "start")

    def stop(self, mode: str = "fast") -> None:
        """`immediate` is what a crash is: nothing is written back."""
        self._run("pg_ctl", "-D", self._data, "-m", mode, "-w", "stop")

    def address(self, database: str = "postgres", user: str = ACCOUNT) -> str:
        return f"postgresql:///{database}?host={self.folder}&port={self.port}&user={user}"

    def new_database(self) -> str:
        """The address of an empty one."""
        self._databases += 1
        name = f"store{self._databases}"
        self.sql(f"CREATE DATABASE {name}")
        return self.address(name)

    def sql(self, statement: str, database: str = "postgres") -> str:
        return self._run("psql", "-h", self.folder, "-p", self.port, "-U", ACCOUNT, "-d", database, "-tAc", statement)

    def remove(self) -> None:
        with contextlib.suppress(subprocess.CalledProcessError):  # a test stopped it
            self.stop("immediate")
        shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self, program: str, *words: object) -> str:
        """As the server's account: it refuses to be root."""
        assert self._programs
        line = [str(self._programs / program), *map(str, words)]
        if os.getuid() == 0:
            line = ["runuser", "-u", ACCOUNT, "--", *line]
        done = subprocess.run(line, check=True, text=True, stdout=subprocess.PIPE, cwd="/", timeout=180)
        return done.stdout.strip()
