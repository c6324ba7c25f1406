"""First file of a host process, run by path: our packages without their `__init__`, then the host itself.

Arguments: pid of the parent. No pathlib here: importing it takes a third of the time a host has to start.
"""

import sys
from types import ModuleType

sandbox = __file__.rpartition("/")[0]
host = sandbox.rpartition("/")[0]
training = host.rpartition("/")[0]
for name, path in (
    ("rlgpt", []),
    ("rlgpt.training", [training]),
    ("rlgpt.training.host", [host]),
    ("rlgpt.training.host.sandbox", [sandbox]),
):
    package = ModuleType(name)
    package.__path__ = path
    sys.modules[name] = package

from rlgpt.training.host.sandbox.serve import serve  # noqa: E402

serve(int(sys.argv[1]))
