"""client/rubato_client.h in ctypes: the structs, and the types of all functions."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char_p, c_double, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any

ABI_VERSION = 1

OK, AGAIN, ENDED, MOVED = 0, 1, 2, 3
INVALID, REFUSED, UNAVAILABLE, FAILED, FORKED, NOT_FOUND = -1, -2, -3, -4, -5, -6

MODES = {"sync": 1, "ssp": 2, "async": 3}
ALGORITHMS = {
    "sgd": 1,
    "momentum": 2,
    "nesterov": 3,
    "adagrad": 4,
    "rmsprop": 5,
    "adam": 6,
    "adamw": 7,
    "mean": 8,
}
TABLE_ALGORITHMS = {"sgd": 1, "adagrad": 2, "row_wise_adagrad": 3, "lazy_adam": 4, "ftrl": 5}
NUMBERS = {"float32": 0, "bf16": 1}


class Options(ctypes.Structure):
    """rubato_options."""

    _fields_ = [
        ("struct_bytes", c_size_t),
        ("coordinator", c_char_p),
        ("sidecar", c_char_p),
        ("rank", c_uint32),
        ("timeout_seconds", c_double),
        ("log_path", c_char_p),
    ]


class Tensor(ctypes.Structure):
    """rubato_tensor."""

    _fields_ = [
        ("name", c_char_p),
        ("shape", POINTER(c_int64)),
        ("dimensions", c_uint32),
        ("group", c_uint32),
    ]


class Hyperparameters(ctypes.Structure):
    """rubato_hyperparameters."""

    _fields_ = [
        (name, c_double)
        for name in (
            "learning_rate",
            "weight_decay",
            "momentum",
            "beta1",
            "beta2",
            "rho",
            "epsilon",
        )
    ]


class Table(ctypes.Structure):
    """rubato_table."""

    _fields_ = [
        ("name", c_char_p),
        ("dimension", c_int64),
        ("algorithm", ctypes.c_int),
        ("learning_rate", c_double),
        ("initial_bound", c_double),
        ("epsilon", c_double),
        ("beta1", c_double),
        ("beta2", c_double),
        ("beta", c_double),
        ("l1", c_double),
        ("l2", c_double),
        ("shards", c_uint32),
        ("memory_bytes", c_uint64),
    ]


class Admission(ctypes.Structure):
    """rubato_admission."""

    _fields_ = [
        ("admit_after", c_uint32),
        ("counters", c_uint64),
        ("expire_after_steps", c_uint64),
        ("most_rows", c_uint64),
    ]


class RowFormat(ctypes.Structure):
    """rubato_row_format."""

    _fields_ = [("precision", ctypes.c_int), ("push", ctypes.c_int), ("pull", ctypes.c_int)]


class Model(ctypes.Structure):
    """rubato_model."""

    _fields_ = [
        ("struct_bytes", c_size_t),
        ("tensors", POINTER(Tensor)),
        ("tensor_count", c_uint32),
        ("groups", POINTER(Hyperparameters)),
        ("group_count", c_uint32),
        ("algorithm", ctypes.c_int),
        ("initial_accumulator", c_double),
        ("leased_examples", c_int64),
        ("shard_examples", c_int64),
        ("epochs", c_int64),
        ("tables", POINTER(Table)),
        ("table_count", c_uint32),
        ("admission", POINTER(Admission)),
        ("row_formats", POINTER(RowFormat)),
        ("keep_weights", ctypes.c_int),
    ]


class Step(ctypes.Structure):
    """rubato_step."""

    _fields_ = [
        ("step", c_int64),
        ("generation", c_uint64),
        ("mode", ctypes.c_int),
        ("staleness_bound", c_int64),
        ("workers", c_uint32),
        ("learning_rate_scale", c_double),
        ("rollbacks", c_uint64),
    ]


class LeaseRange(ctypes.Structure):
    """rubato_lease_range."""

    _fields_ = [("shard", c_uint64), ("epoch", c_int64), ("begin", c_int64), ("end", c_int64)]


_result = ctypes.c_int

# name: (type of the result, types of the arguments).
FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "rubato_abi_version": (c_uint32, []),
    "rubato_version": (c_char_p, []),
    "rubato_open": (_result, [POINTER(Options), POINTER(c_void_p)]),
    "rubato_error": (c_char_p, [c_void_p]),
    "rubato_define": (_result, [c_void_p, POINTER(Model)]),
    "rubato_weights": (c_void_p, [c_void_p, c_uint32]),
    "rubato_gradient": (c_void_p, [c_void_p, c_uint32]),
    "rubato_start": (_result, [c_void_p]),
    "rubato_begin": (_result, [c_void_p, POINTER(Step), c_double]),
    "rubato_set_hyperparameters": (_result, [c_void_p, c_uint32, POINTER(Hyperparameters)]),
    "rubato_set_slice": (_result, [c_void_p, c_uint64, c_int64, c_int64]),
    "rubato_set_epoch": (_result, [c_void_p, c_double]),
    "rubato_push": (_result, [c_void_p, c_uint32, c_uint64]),
    "rubato_push_absent": (_result, [c_void_p, c_uint32]),
    "rubato_skip": (_result, [c_void_p]),
    "rubato_report": (_result, [c_void_p, c_uint64, c_double, c_double]),
    "rubato_lease": (_result, [c_void_p, POINTER(LeaseRange), c_double]),
    "rubato_put": (_result, [c_void_p, c_char_p, c_void_p, c_size_t]),
    "rubato_get": (
        _result,
        [c_void_p, c_char_p, c_void_p, c_size_t, POINTER(c_size_t), c_double],
    ),
    "rubato_erase": (_result, [c_void_p, c_char_p]),
    "rubato_barrier": (_result, [c_void_p, c_char_p, c_uint32, c_double]),
    "rubato_switch": (_result, [c_void_p, ctypes.c_int, c_int64, c_uint32, c_double, c_double]),
    "rubato_checkpoint": (_result, [c_void_p]),
    "rubato_await_checkpoint": (_result, [c_void_p, c_char_p, c_size_t, c_double]),
    "rubato_set_state": (_result, [c_void_p, c_uint32, c_uint32, c_void_p, c_int64]),
    "rubato_fetch_state": (_result, [c_void_p, c_uint32, POINTER(c_int64), c_double]),
    "rubato_pause": (_result, [c_void_p, c_char_p]),
    "rubato_drain": (_result, [c_void_p]),
    "rubato_close": (_result, [c_void_p, c_char_p]),
    "rubato_free_weights": (None, [c_void_p]),
    "rubato_has_weights": (_result, [c_void_p, c_uint32, POINTER(ctypes.c_int), c_double]),
    "rubato_await": (_result, [c_void_p, c_uint32, c_double]),
    "rubato_ask_rows": (_result, [c_void_p, c_uint32, c_void_p, c_size_t]),
    "rubato_read_rows": (_result, [c_void_p, c_uint32, c_void_p, c_size_t, c_void_p, c_double]),
    "rubato_push_rows": (_result, [c_void_p, c_uint32, c_void_p, c_size_t, c_void_p, c_uint64]),
}


def declare(library: Any) -> None:
    """Gives the functions of a loaded library their types."""
    for name, (result, arguments) in FUNCTIONS.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments
