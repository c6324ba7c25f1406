"""Finds the packages: a folder with an `__init__.py` in one of the mapped folders is `rlgpt.<path>`."""

from pathlib import Path

from setuptools import setup

FOLDERS = ("console", "agents", "training", "store", "prompts")
ROOT = Path(__file__).parent


def packages() -> list[str]:
    inits = (init.parent for folder in FOLDERS for init in (ROOT / folder).rglob("__init__.py"))
    return sorted(".".join(("rlgpt", *folder.relative_to(ROOT).parts)) for folder in inits)


setup(packages=packages(), package_dir={f"rlgpt.{folder}": folder for folder in FOLDERS})
