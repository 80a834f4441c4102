"""A job on this machine that a benchmark starts from a config of its own, looks at while it trains, and ends."""

import glob
import json
import os
import signal
import subprocess
import time


class LocalJob:
    """`rubato train` of a config, with its run in a directory; ends with the block."""

    def __init__(self, binaries, directory, config_text, *options):
        self.rubato = os.path.join(binaries, "cli/command/rubato")
        self.run = os.path.join(directory, "run")
        config = os.path.join(directory, "config.textproto")
        with open(config, "w") as file:
            file.write(config_text)
        self.output = open(os.path.join(directory, "train.out"), "w+")
        self.launcher = subprocess.Popen(
            [self.rubato, "train", config, f"--run_directory={self.run}", f"--binaries={binaries}",
             *options],
            stdout=self.output, stderr=self.output, start_new_session=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.killpg(self.launcher.pid, signal.SIGKILL)
        for pid in self.tasks("coordinator", "server", "worker"):
            os.kill(pid, signal.SIGKILL)
        self.launcher.wait(30)

    def fail(self, why):
        self.output.seek(0)
        raise SystemExit(f"{why}\n{self.output.read()[-4000:]}")

    def wait_until_it_trains(self, seconds=300):
        self.wait_for("third step", lambda: self.steps() >= 3, seconds)

    def wait_for(self, what, holds, seconds):
        """Returns how long it took, in seconds. It is looked at five times a second."""
        begin = time.monotonic()
        while not holds():
            if self.launcher.poll() is not None or time.monotonic() > begin + seconds:
                self.fail(f"no {what} after {seconds} s, or the job has ended")
            time.sleep(0.2)
        return time.monotonic() - begin

    def lines(self, kind):
        """Of the run record."""
        try:
            with open(os.path.join(self.run, "metrics.jsonl")) as lines:
                return [json.loads(line)[kind] for line in lines if line.startswith('{"' + kind) and line.endswith("\n")]
        except FileNotFoundError:
            return []

    def steps(self):
        return max((line.get("step", 0) for line in self.lines("progress")), default=0)

    def tasks(self, *programs):
        """Process ids."""
        for path in glob.glob("/proc/[0-9]*/cmdline"):
            try:
                with open(path, "rb") as file:
                    arguments = file.read().split(b"\0")
            except OSError:
                continue
            program = os.path.basename(arguments[0]).decode(errors="replace")
            if program in programs and any(self.run.encode() in argument for argument in arguments):
                yield int(path.split("/")[2])
