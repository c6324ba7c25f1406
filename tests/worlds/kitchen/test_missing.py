"""Without its extra the kitchen is one sentence that says how to install it."""

import subprocess
import sys

import pytest

CODE = """
import sys
sys.modules["{module}"] = None
from rlgpt.training.worlds import registry
try:
    registry.get("kitchen")
except registry.UnknownWorld as error:
    print(error)
"""


@pytest.mark.parametrize("module", ["mujoco"])
def test_the_sentence_says_what_to_install(module):
    words = [sys.executable, "-P", "-c", CODE.format(module=module)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=100, check=True)
    cure = f"it needs {module}: pip install 'rlgpt[kitchen]'."
    assert done.stdout.strip() == f"The world 'kitchen' cannot be loaded: {cure}"
