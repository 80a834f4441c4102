"""What a model consists of, as the C library is told of it."""

from __future__ import annotations

import dataclasses
from typing import Sequence

from rubato import _abi


@dataclasses.dataclass(frozen=True)
class TensorSpec:
    """One tensor of a model: float32, dense, in C order."""

    name: str
    shape: tuple[int, ...]
    group: int = 0


@dataclasses.dataclass(frozen=True)
class TableSpec:
    """One table of rows by 64-bit keys, as rubato_table, rubato_admission and rubato_row_format have it."""

    name: str
    dimension: int
    algorithm: str
    learning_rate: float
    initial_bound: float
    epsilon: float = 1e-8
    beta1: float = 0.9
    beta2: float = 0.999
    beta: float = 1.0
    l1: float = 0.0
    l2: float = 0.0
    shards: int = 0
    memory_bytes: int = 0
    admit_after: int = 1
    admission_counters: int = 0
    expire_after_steps: int = 0
    most_rows: int = 0
    precision: str = "float32"
    push: str = "float32"
    pull: str = "float32"


@dataclasses.dataclass(frozen=True)
class ModelSpec:
    """What rubato_define is told."""

    tensors: Sequence[TensorSpec]
    groups: Sequence[dict[str, float]]
    algorithm: str
    initial_accumulator: float = 0.0
    leased_examples: int = 0
    shard_examples: int = 0
    epochs: int = 0
    tables: Sequence[TableSpec] = ()
    keep_weights: bool = False


def table_of(spec: TableSpec) -> _abi.Table:
    given = dataclasses.asdict(spec)
    values = {name: given[name] for name, _ in _abi.Table._fields_}
    values["name"] = spec.name.encode()
    values["algorithm"] = _abi.TABLE_ALGORITHMS[spec.algorithm]
    return _abi.Table(**values)


def admission_of(spec: TableSpec) -> _abi.Admission:
    return _abi.Admission(
        admit_after=spec.admit_after,
        counters=spec.admission_counters,
        expire_after_steps=spec.expire_after_steps,
        most_rows=spec.most_rows,
    )


def row_format_of(spec: TableSpec) -> _abi.RowFormat:
    return _abi.RowFormat(
        precision=_abi.NUMBERS[spec.precision],
        push=_abi.NUMBERS[spec.push],
        pull=_abi.NUMBERS[spec.pull],
    )
