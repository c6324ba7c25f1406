"""First file of a host process, run by path: our packages without their `__init__`, then the host itself.

Arguments: pid of the parent.
"""

import sys
from pathlib import Path
from types import ModuleType

here = Path(__file__).resolve().parent
for name, path in (
    ("rlgpt", []),
    ("rlgpt.training", [str(here.parent)]),
    ("rlgpt.training.host", [str(here)]),
):
    package = ModuleType(name)
    package.__path__ = path
    sys.modules[name] = package

from rlgpt.training.host.serve import serve  # noqa: E402

serve(int(sys.argv[1]))
