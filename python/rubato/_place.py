"""Where this process is: which rank of how many, and who started it."""

from __future__ import annotations

import dataclasses
import os
from typing import Mapping, Optional

from rubato import errors


@dataclasses.dataclass(frozen=True)
class Place:
    """A process of a job."""

    rank: int
    size: int
    local_rank: int
    local_size: int
    coordinator: Optional[str]
    # "arguments", "rubato run", "torchrun", "mpirun", "srun" or "nobody".
    launcher: str


def find_place(
    environment: Mapping[str, str],
    *,
    coordinator: Optional[str] = None,
    rank: Optional[int] = None,
    size: Optional[int] = None,
    local_rank: Optional[int] = None,
) -> Place:
    """The arguments, or what the environment says, the first that applies. Raises InvalidCall.

    Slurm's variables count in a step of several tasks alone: in a batch script, or a shell of salloc, they are there too.
    """
    found = _from_environment(environment)
    if rank is None and size is None:
        place = found
    elif rank is None or size is None:
        raise errors.InvalidCall("rank and size: give both, or neither")
    else:
        local = rank if local_rank is None else local_rank
        place = Place(rank, size, local, size, None, "arguments")
    return _checked(
        dataclasses.replace(
            place,
            local_rank=place.local_rank if local_rank is None else local_rank,
            coordinator=coordinator or environment.get("RUBATO_COORDINATOR") or None,
        )
    )


def _from_environment(environment: Mapping[str, str]) -> Place:
    if "RUBATO_RANK" in environment:
        return _read(
            environment,
            "rubato run",
            "RUBATO_RANK",
            "RUBATO_SIZE",
            "RUBATO_LOCAL_RANK",
            "RUBATO_LOCAL_SIZE",
        )
    if "RANK" in environment and "WORLD_SIZE" in environment:
        return _read(
            environment, "torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"
        )
    if "OMPI_COMM_WORLD_RANK" in environment:
        ompi = "OMPI_COMM_WORLD_"
        return _read(
            environment,
            "mpirun",
            ompi + "RANK",
            ompi + "SIZE",
            ompi + "LOCAL_RANK",
            ompi + "LOCAL_SIZE",
        )
    if "SLURM_STEP_ID" in environment and _number(environment, "SLURM_NTASKS", 1) > 1:
        place = _read(environment, "srun", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "")
        nodes = _number(environment, "SLURM_STEP_NUM_NODES", 1)
        return dataclasses.replace(place, local_size=place.size if nodes == 1 else 1)
    return Place(0, 1, 0, 1, None, "nobody")


def _read(
    environment: Mapping[str, str],
    launcher: str,
    rank: str,
    size: str,
    local_rank: str,
    local_size: str,
) -> Place:
    number = _number(environment, rank, None)
    return Place(
        number,
        _number(environment, size, None),
        _number(environment, local_rank, number),
        _number(environment, local_size, 1),
        None,
        launcher,
    )


def _number(environment: Mapping[str, str], name: str, default: Optional[int]) -> int:
    text = environment.get(name)
    if text is None:
        if default is None:
            raise errors.InvalidCall(
                f"the environment has no {name}, which its launcher should have set"
            )
        return default
    try:
        return int(text)
    except ValueError:
        raise errors.InvalidCall(f'{name}="{text}": a whole number is expected') from None


def _checked(place: Place) -> Place:
    if not 0 <= place.rank < place.size:
        raise errors.InvalidCall(
            f"rank {place.rank} of {place.size} workers: 0 to {place.size - 1} is allowed"
        )
    if place.local_rank < 0:
        raise errors.InvalidCall(f"local_rank {place.local_rank}: 0 or more is allowed")
    return place


def job_name(environment: Mapping[str, str], place: Place) -> str:
    """The same on all ranks of a job, and different from other jobs of its launcher."""
    if place.launcher == "mpirun":
        for name in ("PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "OMPI_MCA_orte_hnp_uri"):
            if name in environment:
                return f"mpirun-{environment[name]}"
        raise errors.InvalidCall(
            "mpirun does not say which job this is: give RUBATO_COORDINATOR to all processes"
        )
    if place.launcher == "srun":
        job, step = environment.get("SLURM_JOB_ID", ""), environment["SLURM_STEP_ID"]
        return f"srun-{job}-{step}"
    return f"{place.launcher}-{os.getpid()}"
