"""Without its extra, or with other versions of it, the kitchen is one sentence that says how to install it."""

import subprocess
import sys

import pytest

CODE = """
import sys
{before}
from rlgpt.training.session.refusals import refusal_of
from rlgpt.training.worlds import registry
try:
    registry.get("kitchen")
except registry.UnknownWorld as error:
    told, code = refusal_of(error)
    assert code == 5, "the machine lacks something"
    print(told)
"""
CURE = "pip install 'rlgpt[kitchen]'."


def sentence(before):
    words = [sys.executable, "-P", "-c", CODE.format(before=before)]
    return subprocess.run(words, capture_output=True, text=True, timeout=500, check=True).stdout.strip()


def test_without_mujoco_the_sentence_says_what_to_install():
    told = sentence("sys.modules['mujoco'] = None")
    assert told == f"The world 'kitchen' cannot be loaded: it needs mujoco: {CURE}"


def test_without_the_models_it_says_so_before_any_env_is_made():
    pytest.importorskip("mujoco", reason=f"The kitchen is not installed: {CURE}")
    hide = "import importlib.util as u; find = u.find_spec\n"
    hide += "u.find_spec = lambda name: None if 'robotics' in name else find(name)"
    told = sentence(hide)
    assert told == f"The world 'kitchen' cannot be loaded: it needs gymnasium_robotics: {CURE}"


def test_without_its_files_the_package_of_the_models_is_told_to_be_installed_again():
    pytest.importorskip("mujoco", reason=f"The kitchen is not installed: {CURE}")
    pytest.importorskip("gymnasium_robotics", reason=f"The kitchen is not installed: {CURE}")
    empty = "import importlib.util as u, types; find = u.find_spec\n"
    empty += "gone = types.SimpleNamespace(submodule_search_locations=['/nowhere'], origin='/nowhere/__init__.py')\n"
    empty += "u.find_spec = lambda name: gone if 'robotics' in name else find(name)"
    told = sentence(empty)
    assert told.startswith("The world 'kitchen' cannot be loaded: it cannot read /nowhere/")
    assert told.endswith(": pip install --force-reinstall --no-deps gymnasium-robotics==1.4.2.")


@pytest.mark.parametrize(
    ("before", "finds"),
    [
        ("import mujoco; mujoco.__version__ = '3.17.0'", "mujoco 3.5.0 to 3.10.0 and finds 3.17.0"),
        ("import mujoco; mujoco.__version__ = '3.4.0'", "mujoco 3.5.0 to 3.10.0 and finds 3.4.0"),
        ("import importlib.metadata as m; m.version = lambda n: '1.5.0'", "gymnasium-robotics 1.4.2 and finds 1.5.0"),
    ],
)
def test_other_versions_are_refused(before, finds):
    pytest.importorskip("mujoco", reason=f"The kitchen is not installed: {CURE}")
    pytest.importorskip("gymnasium_robotics", reason=f"The kitchen is not installed: {CURE}")
    assert sentence(before) == f"The world 'kitchen' cannot be loaded: it needs {finds}: {CURE}"
