"""Examples as whole jobs of `rubato run`, which somebody switches, or in which somebody kills what there is."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import soak
from servers import real_only
from test_examples import EXAMPLES, write_mnist


class Run:
    """`rubato run -n 2` of an example, with an update log. A context manager: what is left at its end is killed."""

    def __init__(self, folder, settings, name, *arguments):
        from rubato._serve import find_program

        self.folder = folder / "run"
        self._program = find_program()
        self._output = folder / "output"
        command = [self._program, "run", "-n", "2", "--servers=2", f"--run_directory={self.folder}"]
        command += [f"--set={setting}" for setting in ("cluster.update_log=true", *settings)]
        command += ["--", sys.executable, str(EXAMPLES / name), *arguments]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=open(self._output, "wb"),
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    @property
    def output(self):
        return self._output.read_text(errors="replace")

    def lines(self, kind):
        """Those of a kind in the run record."""
        record = self.folder / "metrics.jsonl"
        text = record.read_text() if record.exists() else ""
        lines = (json.loads(line) for line in text.splitlines(keepends=True) if line[-1] == "\n")
        return [line[kind] for line in lines if kind in line]

    def joined(self, rank):
        """How often a worker has come to the job that had begun."""
        joined = {"task": f"worker {rank}", "event": "JOINED"}
        return sum(joined.items() <= member.items() for member in self.lines("member"))

    def wait_for(self, what, condition, seconds=120.0):
        deadline = time.monotonic() + seconds
        while not condition():
            assert self._process.poll() is None, f"the run has ended before {what}: {self.output}"
            assert time.monotonic() < deadline, f"{what}: not within {seconds} s: {self.output}"
            time.sleep(0.02)

    def wait_for_step(self, step):
        self.wait_for(
            f"step {step}", lambda: any(p["step"] >= step for p in self.lines("progress"))
        )

    def switch(self, mode):
        """As from another terminal; until both ranks have printed that they have the new plan."""
        plans = self.output.count(f"mode='{mode}'")
        subprocess.run([self._program, "switch", str(self.folder), f"--to={mode}"], check=True)
        self.wait_for(mode, lambda: self.output.count(f"mode='{mode}'") >= plans + 2)

    def kill(self, role):
        """With SIGKILL: "worker 1", "server 0", "coordinator"."""
        for process in soak.children(self._process.pid):
            if soak.role_of(process) == role:
                os.kill(process, signal.SIGKILL)
                return
        raise AssertionError(f"there is no {role}")

    def end(self, seconds=240.0):
        """Waits for its good end; what the audit says."""
        try:
            status = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"not at its end within {seconds} s: {self.output}") from None
        assert status == 0, self.output
        audit = subprocess.run(
            [self._program, "audit", str(self.folder), "--json"], capture_output=True, text=True
        )
        assert audit.returncode == 0, audit.stdout
        return json.loads(audit.stdout)


@real_only
def test_resnet_is_switched_to_async_and_back_while_it_trains(tmp_path):
    arguments = ["--data=nowhere", "--examples=1280", "--epochs=4", "--batch=4"]
    with Run(tmp_path, [], "resnet_cifar.py", *arguments) as run:
        run.wait_for_step(5)
        run.switch("async")
        run.switch("sync")
        run.end()
        assert "accuracy" in run.output
        modes = [plan["mode"] for plan in run.lines("plan")]
        assert modes[0] == "SYNC" and modes[-1] == "SYNC" and "ASYNC" in modes
        # Nobody was started again.
        assert [run.joined(rank) for rank in range(2)] == [0, 0]


EXAMPLES_OF_AN_EPOCH, EPOCHS = 512, 24


@real_only
def test_each_example_is_trained_once_though_all_roles_are_killed(tmp_path):
    """A worker, a server and the coordinator: it ends at its accuracy."""
    write_mnist(tmp_path, EXAMPLES_OF_AN_EPOCH, 64)
    settings = [
        "checkpoint.every_seconds=0.5",
        "cluster.lease_seconds=1",
        "cluster.server_grace_seconds=0.5",
    ]
    arguments = [
        f"--data={tmp_path}",
        f"--examples={EXAMPLES_OF_AN_EPOCH}",
        f"--epochs={EPOCHS}",
        "--batch=8",
        "--target=0.9",
    ]
    with Run(tmp_path, settings, "elastic_mnist.py", *arguments) as run:
        run.wait_for_step(10)
        run.kill("worker 1")
        run.wait_for("worker 1 is there again", lambda: run.joined(1) == 1)
        run.wait_for("a checkpoint", lambda: run.lines("checkpoint"))
        run.kill("server 1")
        run.wait_for("the job has gone back", lambda: run.lines("rollback"))
        run.wait_for_step(run.lines("rollback")[-1]["step"] + 5)
        run.kill("coordinator")
        audit = run.end()
        assert "accuracy" in run.output
    # The audit has held: none twice.
    assert audit["examples"]["trained"] == EPOCHS * EXAMPLES_OF_AN_EPOCH


@real_only
def test_a_job_is_flat(monkeypatch):
    """The short form of bench/soak.py: some seconds, for the run record has steps once a second."""
    monkeypatch.setenv("PYTHONPATH", os.environ["PYTHONPATH"])
    growths, steps = soak.soak("simplenet", ["--steps=6000", "--batch=1"])
    assert steps == 6000
    assert {growth.process for growth in growths} >= {
        "coordinator",
        "server 0",
        *(f"{role} {rank}" for role in ("worker", "sidecar") for rank in range(2)),
    }
    assert [growth for growth in growths if not growth.is_flat(1.0)] == []


def test_what_grows_is_not_flat():
    """A page in a step, or a descriptor in a hundred. A jump that comes once, and batches of unequal size, are flat."""

    def growth(mib, descriptors):
        found = [
            soak.Sample(
                step,
                100 + 5 * (step > 600) + step % 7 + mib * step,
                10 + int(descriptors * step),
            )
            for step in range(1000)
        ]
        return soak.growth_of("worker 0", found, 1000)

    assert growth(0.0, 0.0).is_flat(1.0)
    assert not growth(4096 / (1 << 20), 0.0).is_flat(1.0)
    assert not growth(0.0, 0.01).is_flat(1.0)


def test_every_example_is_soaked():
    assert {f"{name}.py" for name in soak.NAMES} == {
        path.name for path in EXAMPLES.glob("*.py") if "__main__" in path.read_text()
    }
