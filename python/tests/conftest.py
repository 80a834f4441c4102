"""Tests find the package beside them, and each other."""

import os
import pathlib
import sys

_here = pathlib.Path(__file__).parent
for _folder in (_here, _here.parent):
    sys.path.insert(0, str(_folder))
# Processes that tests start find it too.
os.environ["PYTHONPATH"] = os.pathsep.join(
    [str(_here), str(_here.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
)
