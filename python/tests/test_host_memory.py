"""What torch frees on the CPU is used again by the next step, and not given back to the system and cleared anew."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

# Page faults of steps that allocate and free what an activation may take.
PROGRAM = """
import resource, torch
from rubato.torch._host_memory import keep_freed_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        tensors = [torch.ones(1 << bits) for bits in (16, 20, 22, 24)]
        del tensors
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

before = faults()
keeps = keep_freed_memory()
faults()
print(before, int(keeps), faults())
"""
SETTINGS = ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "GLIBC_TUNABLES", "LD_PRELOAD")

pytestmark = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="is about glibc")


def run(**settings):
    environment = {name: value for name, value in os.environ.items() if name not in SETTINGS}
    printed = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**environment, **settings},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return map(int, printed.stdout.split())


def test_freed_memory_is_used_again():
    before, keeps, after = run()
    assert keeps == 1
    assert after * 20 < before


@pytest.mark.parametrize(
    "settings",
    [
        {"MALLOC_TRIM_THRESHOLD_": "131072"},
        {"MALLOC_MMAP_THRESHOLD_": "131072"},
        {"GLIBC_TUNABLES": "glibc.malloc.trim_threshold=131072"},
    ],
    ids=lambda settings: next(iter(settings)),
)
def test_the_environment_decides(settings):
    before, keeps, after = run(**settings)
    assert keeps == 0
    assert after * 2 > before
