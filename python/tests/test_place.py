"""Where a process finds itself, and how ranks find rank 0's coordinator."""

from __future__ import annotations

import os
import shutil
import socket
import stat
import subprocess
import sys
import threading

import pytest

import rubato
from rubato import _meet
from rubato._place import Place, find_place
from rubato._serve import Serve

OMPI = {
    "OMPI_COMM_WORLD_RANK": "1",
    "OMPI_COMM_WORLD_SIZE": "2",
    "OMPI_COMM_WORLD_LOCAL_RANK": "1",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
    "PMIX_NAMESPACE": "123",
}
SLURM = {"SLURM_PROCID": "3", "SLURM_NTASKS": "4", "SLURM_LOCALID": "1", "SLURM_JOB_ID": "77"}
TORCHRUN = {"RANK": "2", "WORLD_SIZE": "4", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "2"}
RUBATO = {"RUBATO_RANK": "1", "RUBATO_SIZE": "3", "RUBATO_COORDINATOR": "host:1"}


def place(environment, **arguments):
    found = find_place(environment, **arguments)
    return found.launcher, found.rank, found.size, found.local_rank, found.coordinator


def test_nobody_has_started_it():
    assert place({}) == ("nobody", 0, 1, 0, None)


def test_the_order_of_launchers():
    everything = {**SLURM, "SLURM_STEP_ID": "0", **OMPI, **TORCHRUN, **RUBATO}
    assert place(everything, rank=5, size=6, coordinator="a:2") == ("arguments", 5, 6, 5, "a:2")
    assert place(everything) == ("rubato run", 1, 3, 1, "host:1")
    assert place({**SLURM, "SLURM_STEP_ID": "0", **OMPI, **TORCHRUN}) == ("torchrun", 2, 4, 0, None)
    assert place({**SLURM, "SLURM_STEP_ID": "0", **OMPI}) == ("mpirun", 1, 2, 1, None)
    assert place({**SLURM, "SLURM_STEP_ID": "0"}) == ("srun", 3, 4, 1, None)


def test_slurms_variables_count_in_a_step_of_several_tasks_alone():
    assert place(SLURM)[:3] == ("nobody", 0, 1)
    alone = {**SLURM, "SLURM_STEP_ID": "0", "SLURM_NTASKS": "1"}
    assert place(alone)[:3] == ("nobody", 0, 1)


def test_a_coordinator_may_be_given_to_any_launcher():
    assert place({**OMPI, "RUBATO_COORDINATOR": "h:9"})[4] == "h:9"
    assert place(OMPI, coordinator="h:8", local_rank=0)[3:] == (0, "h:8")


@pytest.mark.parametrize(
    "environment, arguments, text",
    [
        ({"RUBATO_RANK": "1"}, {}, "no RUBATO_SIZE"),
        ({"RANK": "x", "WORLD_SIZE": "2"}, {}, 'RANK="x": a whole number'),
        ({"RANK": "2", "WORLD_SIZE": "2"}, {}, "rank 2 of 2 workers: 0 to 1"),
        ({}, {"rank": 1}, "give both"),
    ],
)
def test_bad_places(environment, arguments, text):
    with pytest.raises(rubato.InvalidCall, match=text):
        find_place(environment, **arguments)


def meet(environments, start, timeout=10.0):
    """The answers, or exceptions, of ranks that meet in threads."""
    answers = [None] * len(environments)

    def run(rank):
        try:
            found = find_place(environments[rank])
            answers[rank] = _meet.share(found, environments[rank], timeout, start)
        except Exception as error:
            answers[rank] = error

    threads = [threading.Thread(target=run, args=[rank]) for rank in range(len(environments))]
    for thread in reversed(threads):  # The others come before rank 0.
        thread.start()
    for thread in threads:
        thread.join(30)
    return [answer[0] if isinstance(answer, tuple) else answer for answer in answers]


def ranks_of(base, size):
    name = f"test-{os.getpid()}-{base}"
    if base == "mpirun":
        return [
            {
                **OMPI,
                "OMPI_COMM_WORLD_RANK": str(r),
                "OMPI_COMM_WORLD_SIZE": str(size),
                "OMPI_COMM_WORLD_LOCAL_SIZE": str(size),
                "PMIX_NAMESPACE": name,
            }
            for r in range(size)
        ]
    return [
        {
            "SLURM_STEP_ID": "0",
            "SLURM_JOB_ID": name,
            "SLURM_NTASKS": str(size),
            "SLURM_PROCID": str(r),
        }
        for r in range(size)
    ]


@pytest.mark.parametrize("base", ["mpirun", "srun"])
def test_ranks_meet_at_an_abstract_socket(base):
    assert meet(ranks_of(base, 3), lambda: "host:1234") == ["host:1234"] * 3


def test_srun_on_several_nodes_meets_at_the_first(tmp_path, monkeypatch):
    scontrol = tmp_path / "scontrol"
    scontrol.write_text(
        '#!/bin/sh\nif [ "$2" = hostnames ]; then echo n1; echo n2; else echo "NodeName=n1 NodeAddr=127.0.0.1 Port=1"; fi\n'
    )
    scontrol.chmod(scontrol.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    environments = [
        {**e, "SLURM_STEP_NUM_NODES": "2", "SLURM_STEP_NODELIST": "n[1-2]"}
        for e in ranks_of("srun", 2)
    ]
    assert meet(environments, lambda: "host:99") == ["host:99"] * 2
    assert _meet.host_for_others(find_place(environments[0]), environments[0]) == "127.0.0.1"


def test_what_other_hosts_call_rank_0s():
    torchrun = {**TORCHRUN, "MASTER_ADDR": "node7"}
    assert _meet.host_for_others(find_place(torchrun), torchrun) == "node7"
    alone = {**torchrun, "LOCAL_WORLD_SIZE": "4"}
    assert _meet.host_for_others(find_place(alone), alone) is None
    assert _meet.host_for_others(find_place({}), {}) is None


# Python 3.11 and torch 1.13 do not agree on what torchrun's default, no redirection, is; so it redirects something.
LAUNCHERS = {
    "torchrun": [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--nproc_per_node=2",
        "--master_port={port}",
        "--redirects=1",
        "--tee=1",
    ],
    "mpirun": ["mpirun", "-np", "2", "--oversubscribe", "--allow-run-as-root", sys.executable],
}


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_real_launchers(launcher, tmp_path):
    if launcher == "torchrun":
        pytest.importorskip("torch")
    elif shutil.which("mpirun") is None:
        pytest.skip("mpirun is not installed (openmpi-bin)")
    program = os.path.join(os.path.dirname(__file__), "meets.py")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [word.format(port=port) for word in LAUNCHERS[launcher]]
    done = subprocess.run(
        [*command, program, str(tmp_path / "met")],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    lines = [line.split("]:")[-1] for line in done.stdout.splitlines()]
    assert sorted(lines) == [f"{launcher} {r}/2 host:1234" for r in range(2)]


def test_what_rank_0_could_not_do_is_told_to_all():
    def fails():
        raise rubato.Unavailable("no program")

    answers = meet(ranks_of("mpirun", 3), fails)
    assert str(answers[0]) == "no program"
    for answer in answers[1:]:
        assert isinstance(answer, rubato.Unavailable)
        assert str(answer) == "rank 0 could not start the job: no program"


def test_a_rank_0_that_does_not_come():
    environments = ranks_of("mpirun", 2)
    found = find_place(environments[1])
    with pytest.raises(rubato.Timeout, match="@rubato-.* within 0.2 s"):
        _meet.share(found, environments[1], 0.2, lambda: "")


def test_mpirun_on_several_hosts_needs_a_coordinator():
    environment = {**OMPI, "OMPI_COMM_WORLD_LOCAL_SIZE": "1"}
    with pytest.raises(rubato.Unavailable, match="-x RUBATO_COORDINATOR"):
        _meet.share(find_place(environment), environment, 1.0, lambda: "")


def test_several_ranks_of_nobody_need_a_coordinator():
    with pytest.raises(rubato.Unavailable, match="2 workers, and no coordinator"):
        _meet.share(Place(0, 2, 0, 2, None, "arguments"), {}, 1.0, lambda: "")


SERVE = """#!/usr/bin/python3
import sys
options = dict(argument.lstrip("-").split("=", 1) for argument in sys.argv[2:])
if options["workers"] == "9":
    sys.exit(3)
assert options.get("host") in (None, "node7")
with open(options["address_file"], "w") as file:
    file.write("127.0.0.1:77\\n")
sys.stdin.read()
"""


@pytest.fixture
def program(tmp_path, monkeypatch):
    path = tmp_path / "rubato"
    path.write_text(SERVE)
    path.chmod(0o755)
    monkeypatch.setenv("RUBATO_PROGRAM", str(path))
    return path


def test_serve_ends_with_its_input(program):
    serve = Serve(2, 1, 10.0, "ssp:2", None)
    assert serve.address == "127.0.0.1:77"
    assert serve.close(0.1) == 0
    assert Serve(2, 1, 10.0, None, None, "node7").close(0.1) == 0


def test_serve_that_ends_too_early(program):
    with pytest.raises(
        rubato.Unavailable, match="has ended with 3 before its coordinator listened"
    ):
        Serve(9, 1, 10.0, None, None)


def test_no_program(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("RUBATO_PROGRAM", raising=False)
    with pytest.raises(rubato.Unavailable, match="RUBATO_PROGRAM"):
        Serve(1, 1, 1.0, None, None)
