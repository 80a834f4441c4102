"""What the process does with memory of the host that torch has freed."""

from __future__ import annotations

import ctypes
import os

# Of malloc.h.
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
# Older versions of glibc take no more than that as the size from which an allocation is a mapping of its own.
_MMAP_THRESHOLDS = (1 << 30, 32 << 20)
_MOST = (1 << 31) - 1


def keep_freed_memory() -> bool:
    """Lets glibc keep what torch frees, for the next step to use. Returns whether that holds now because of this call.

    A step on the CPU allocates and frees the same activations and gradients as the last one. From some size on, at first
    128 KiB, glibc gives such memory back to the system each time, which then clears it page by page when it is used again:
    a tenth to a fifth of a step. The process's memory is the same at its highest and stays there. Nothing changes where
    the environment says how glibc is to do it (MALLOC_MMAP_THRESHOLD_, MALLOC_TRIM_THRESHOLD_ or GLIBC_TUNABLES), or
    where there is no glibc.
    """
    if any(name in os.environ for name in ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_")):
        return False
    if "glibc.malloc." in os.environ.get("GLIBC_TUNABLES", ""):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return False
    mallopt.argtypes = (ctypes.c_int, ctypes.c_int)
    mallopt.restype = ctypes.c_int
    return any(mallopt(_M_MMAP_THRESHOLD, bytes) for bytes in _MMAP_THRESHOLDS) and bool(
        mallopt(_M_TRIM_THRESHOLD, _MOST)
    )
