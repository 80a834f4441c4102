"""The package beside others that bring libraries of their own, whichever is imported first."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest

from servers import Servers

PROGRAM = pathlib.Path(__file__).parent / "one_step.py"

ORDERS = [
    ("torch", "rubato.torch"),
    ("rubato", "torch"),
    ("rubato.client", "numpy", "rubato.torch"),
    ("grpc", "rubato.torch"),
    ("rubato.torch", "grpc"),
    ("google.protobuf", "torch", "rubato"),
    ("rubato", "torch", "google.protobuf"),
    ("torch.utils.tensorboard", "rubato.torch"),
    ("rubato.torch", "torch.utils.tensorboard"),
]
# What has to be installed for a module.
NEEDS = {"torch.utils.tensorboard": "tensorboard"}


def is_installed(module):
    try:
        return importlib.util.find_spec(NEEDS.get(module, module)) is not None
    except ModuleNotFoundError:  # The package that it is in.
        return False


@pytest.mark.parametrize("modules", ORDERS, ids="-".join)
def test_import_orders(modules):
    missing = [module for module in modules if not is_installed(module)]
    if missing:
        pytest.skip(f"{NEEDS.get(missing[0], missing[0])} is not installed")
    job = Servers(1)
    try:
        done = subprocess.run(
            [sys.executable, str(PROGRAM), *modules],
            env={**os.environ, "RUBATO_COORDINATOR": job.address},
            capture_output=True,
            text=True,
            timeout=120,
        )
    finally:
        job.close()
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[[0.75, 0.75]]"
