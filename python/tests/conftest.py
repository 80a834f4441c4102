"""Tests find the package beside them, and each other; and they can be shared out between several runs of pytest."""

import os
import pathlib
import sys

_here = pathlib.Path(__file__).parent
for _folder in (_here, _here.parent, _here.parent / "bench"):
    sys.path.insert(0, str(_folder))
# Processes that tests start find it too.
os.environ["PYTHONPATH"] = os.pathsep.join(
    [str(_here), str(_here.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
)


def pytest_addoption(parser):
    parser.addoption("--share", help="I/N: one of N runs, which together run each test once")


def pytest_collection_modifyitems(config, items):
    share = config.getoption("--share")
    if share:
        index, count = map(int, share.split("/"))
        others = [item for number, item in enumerate(items) if number % count != index - 1]
        items[:] = items[index - 1 :: count]
        config.hook.pytest_deselected(items=others)
