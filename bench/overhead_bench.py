#!/usr/bin/env python3
"""What looking at a job costs: MNIST's multilayer perceptron trained with everything that shows it off, with all of it
on, and with all of it on while it is traced as well.

On: /metrics of every task, all scraped once a second; event files with norms and histograms of every tensor each 100
steps; JSON logs; `rubato status --watch`, once a second. Traced: `rubato trace` in addition, so that every step of every
block is recorded; what is recorded is written and merged between the blocks, and not counted. Off: none of that. Watched:
off, but for the job's page, which 50 clients watch from before the first turn to after the last one; one that is cut off
ends the bench. In all the update log is off, and the evaluator has nothing to do.

A machine's speed changes by more from minute to minute than what is to be measured. So the jobs are alive at the same
time, and one runs while the others are stopped (SIGSTOP), for seconds at a time, in an order that changes: what disturbs
one disturbs all. A job's time is the time for which it was let run. Its rate in a block of turns is the slope, by least
squares, of the examples that its run record counts over that time. One process is faster than another of the same
program by percents, for as long as both live; so each block has new jobs.

Printed for each: examples a second and the processor time of all of its processes an example, scraper included; to the
job with everything off: the median and the mean over the blocks, with its standard error.

    bazel build //cli/command:rubato //coordinator //server //worker
    bench/overhead_bench.py
"""

import argparse
import contextlib
import http.client
import json
import os
import selectors
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

# In the environment of all processes of a job, so that they are found.
MARK = "RUBATO_OVERHEAD_JOB"
WATCHERS = 50


def scrape(address):
    """Asks all tasks for their metrics once a second, over connections that it keeps, as Prometheus does. For ever."""
    connections = {}

    def get(address, path):
        if address not in connections:
            connections[address] = http.client.HTTPConnection(address, timeout=60)
        try:
            connections[address].request("GET", path)
            return connections[address].getresponse().read()
        except (OSError, http.client.HTTPException):
            connections.pop(address).close()
            raise

    pages = 0
    while True:
        time.sleep(1)
        try:
            targets = [target for group in json.loads(get(address, "/targets")) for target in group["targets"]]
            for target in targets:
                get(target, "/metrics")
                pages += 1
            print(pages, flush=True)
        except (OSError, http.client.HTTPException):
            pass  # Not there yet, or not any more.


def watch(run, watchers):
    """Watches the page of a job with so many clients, each on a connection of its own, until one of them is cut off.

    Prints the news that the one with the fewest has had, whenever that changes."""
    with open(os.path.join(run, "page.address")) as file:
        host, port = file.read().strip().rsplit(":", 1)
    selector = selectors.DefaultSelector()
    for index in range(watchers):
        client = socket.create_connection((host, int(port)))
        client.sendall(f"GET /events HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
        selector.register(client, selectors.EVENT_READ, index)
    news, rest, fewest = [0] * watchers, [b""] * watchers, 0
    while True:
        for key, _ in selector.select():
            received = key.fileobj.recv(1 << 20)
            if not received:
                return
            *events, rest[key.data] = (rest[key.data] + received).split(b"\n\n")
            news[key.data] += sum(event.startswith(b"event: news") for event in events)
        if min(news) > fewest:
            fewest = min(news)
            print(fewest, flush=True)


class Job:
    """A job, and what looks at it; stopped and continued as a whole."""

    def __init__(self, variant, port, work):
        self.variant, self.port, self.mark = variant, port, f"{os.getpid()}-{variant}"
        self.directory = os.path.join(work, variant)
        self.run = os.path.join(self.directory, "run")
        self.launcher, self.trace, self.active_s, self.points = None, None, 0.0, []
        self.watchers = None
        os.mkdir(self.directory)

    def launch(self, options):
        rubato = os.path.join(options.binaries, "cli/command/rubato")
        command = [rubato, "train", options.config, f"--run_directory={self.run}", f"--binaries={options.binaries}"]
        # More steps than it will do; leases that outlast the others' turns; and no evaluation, which would fall into some
        # turns and not into others.
        command += ["--set", "training.max_steps=100000000", "--set", "cluster.lease_seconds=120"]
        command += ["--set", "evaluation.every_epochs=1000000", "--set", "cluster.update_log=false"]
        if self.variant == "watched":
            command += ["--page"]
        if self.variant in ("off", "watched"):
            command += ["--set", "observability.no_tensorboard=true"]
        else:
            command += [f"--metrics_listen=127.0.0.1:{self.port}", "--set", "observability.histogram_every_steps=100"]
            command += ["--set", "observability.log_format=JSON"]
        self.launcher = self.start("train", command)

    def settle(self, options):
        """Waits until it trains and is looked at, and stops it."""
        self.wait_for("line of progress", lambda: self.last_progress() is not None)
        rubato = os.path.join(options.binaries, "cli/command/rubato")
        if self.variant == "watched":
            self.watchers = self.start("page", [sys.executable, os.path.abspath(__file__), f"--watch={self.run}"])
            self.wait_for("news for every watcher of the page", lambda: self.watched() > 0)
        elif self.variant != "off":
            self.start("scrape", [sys.executable, os.path.abspath(__file__), f"--scrape=127.0.0.1:{self.port}"])
            self.start("watch", [rubato, "status", self.run, "--watch"])
            self.wait_for("page of metrics", lambda: os.path.getsize(self.output("scrape")) > 0)
        self.signal(signal.SIGSTOP)

    def watched(self):
        """The news that every watcher of its page has had."""
        with open(self.output("page")) as output:
            return max(map(int, output.read().split()), default=0)

    def check_watchers(self, before):
        """An error if not all were there all the time: a page has news once a second, and when it goes on."""
        news = self.watched() - before
        if self.watchers.poll() is not None:
            raise SystemExit(f"{self.variant}: a watcher was cut off after {news} news")
        if news < self.active_s / 2:
            raise SystemExit(f"{self.variant}: a watcher has had {news} news in {self.active_s:.1f} s")

    def begin_trace(self, options, seconds):
        """Has the job recorded from now on, for `seconds`."""
        rubato = os.path.join(options.binaries, "cli/command/rubato")
        command = [rubato, "trace", self.run, f"--seconds={seconds:.0f}", f"--output={self.directory}/trace.json"]
        self.signal(signal.SIGCONT)
        self.trace = self.start("trace", command)
        time.sleep(2)  # The tasks hear of it within a heartbeat, half a second.
        self.signal(signal.SIGSTOP)

    def end_trace(self):
        """Lets the job run until its trace is there; an error if that was recorded for less than the block."""
        early = self.trace.poll() is not None
        self.signal(signal.SIGCONT)
        self.trace.wait(60)
        self.signal(signal.SIGSTOP)
        with open(self.output("trace")) as output:
            said = output.read()
        if early or self.trace.returncode != 0 or "Wrote" not in said or "too much to keep" in said:
            raise SystemExit(f"{self.variant}: the block was not recorded as a whole:\n{said}")
        print("".join(f"#   {line}\n" for line in said.splitlines()), end="", flush=True)

    def output(self, name):
        return os.path.join(self.directory, name + ".out")

    def start(self, name, command):
        with open(self.output(name), "w") as output:
            return subprocess.Popen(command, stdout=output, stderr=output, env={**os.environ, MARK: self.mark})

    def wait_for(self, what, holds, seconds=60):
        deadline = time.monotonic() + seconds
        while not holds():
            if self.launcher.poll() is not None or time.monotonic() > deadline:
                with open(self.output("train")) as output:
                    raise SystemExit(f"{self.variant}: no {what} after {seconds} s, or it ended\n{output.read()}")
            time.sleep(0.05)

    def last_progress(self):
        """(when it was written, seconds since the epoch; examples) of the run record's last line of progress."""
        try:
            with open(os.path.join(self.run, "metrics.jsonl")) as lines:
                written = os.fstat(lines.fileno()).st_mtime
                progress = [line for line in lines if line.startswith('{"progress":') and line.endswith("\n")]
        except FileNotFoundError:
            return None
        return (written, json.loads(progress[-1])["progress"]["examples"]) if progress else None

    def processes(self):
        mark = f"{MARK}={self.mark}".encode()
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                with open(f"/proc/{pid}/environ", "rb") as environment:
                    if mark in environment.read().split(b"\0"):
                        yield int(pid)

    def signal(self, number):
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def cpu_seconds(self):
        ticks = 0
        for pid in self.processes():
            with open(f"/proc/{pid}/stat") as status:
                ticks += sum(map(int, status.read().rsplit(")", 1)[1].split()[11:13]))
        return ticks / os.sysconf("SC_CLK_TCK")

    def turn(self, seconds):
        """Lets it run, all others being stopped."""
        self.signal(signal.SIGCONT)
        begin = time.time()
        time.sleep(seconds)
        end = time.time()
        self.signal(signal.SIGSTOP)
        if self.launcher.poll() is not None:
            with open(self.output("train")) as output:
                said = output.read()[-2000:]
            raise SystemExit(f"{self.variant}: the job ended with exit status {self.launcher.returncode}\n{said}")
        written, examples = self.last_progress()
        if begin < written < end:
            self.points.append((self.active_s + written - begin, examples))
        self.active_s += end - begin

    def end(self):
        self.signal(signal.SIGKILL)
        if self.launcher is not None:
            self.launcher.wait(30)


def measure(jobs, options):
    """({variant: examples a second}, {variant: seconds of processor time an example}) of one block."""
    traced = [job for job in jobs if job.variant == "traced"]
    for job in traced:
        job.begin_trace(options, options.turns * len(jobs) * (options.seconds + 0.1) + 3)
    before = {job.variant: (job.cpu_seconds(), job.active_s) for job in jobs}
    watched = [(job, job.watched()) for job in jobs if job.watchers is not None]
    for turn in range(options.turns):
        # Each comes first, second and third, and before and after each other, equally often.
        order = jobs[turn % len(jobs) :] + jobs[: turn % len(jobs)]
        for job in order if (turn // len(jobs)) % 2 == 0 else reversed(order):
            job.turn(options.seconds)
    rates, costs = {}, {}
    for job in jobs:
        cpu_s, active_s = before[job.variant]
        rates[job.variant] = statistics.linear_regression(*zip(*job.points)).slope
        costs[job.variant] = (job.cpu_seconds() - cpu_s) / (rates[job.variant] * (job.active_s - active_s))
    for job, news in watched:
        job.check_watchers(news)
    for job in traced:
        job.end_trace()
    return rates, costs


def measure_new(variants, block, options):
    """A block of jobs of its own."""
    jobs = []
    with tempfile.TemporaryDirectory() as work:
        try:
            for index in range(len(variants)):
                variant = variants[(index + block) % len(variants)]
                port = 20000 + (os.getpid() * 64 + block * len(variants) + index) % 10000
                jobs.append(Job(variant, port, work))
                jobs[-1].launch(options)
            for job in jobs:
                job.settle(options)
            return measure(jobs, options)
        finally:
            for job in jobs:
                job.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, default=40)
    parser.add_argument("--turns", type=int, default=6, help="of each job in a block")
    parser.add_argument("--seconds", type=float, default=1.5, help="of a turn")
    parser.add_argument("--variants", default="off,on,traced", help="off, and any of the others")
    parser.add_argument("--config", default="configs/mnist_mlp_sync.textproto")
    parser.add_argument("--binaries", default="bazel-bin")
    parser.add_argument("--scrape", help=argparse.SUPPRESS)
    parser.add_argument("--watch", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.scrape:
        scrape(options.scrape)
    if options.watch:
        return watch(options.watch, WATCHERS)
    # Whoever ends this ends the jobs as well.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    variants = options.variants.split(",")
    rates, costs = {variant: [] for variant in variants}, {variant: [] for variant in variants}
    for block in range(options.blocks):
        block_rates, block_costs = measure_new(variants, block, options)
        for variant in variants:
            rates[variant].append(block_rates[variant])
            costs[variant].append(block_costs[variant])
        print(f"# block {block}:", {variant: round(rate) for variant, rate in block_rates.items()}, flush=True)
    for variant in rates:
        to_off = [rate / off for rate, off in zip(rates[variant], rates["off"])]
        print(json.dumps({
            "name": variant,
            "examples_per_s": round(statistics.median(rates[variant])),
            "to_off_median": round(statistics.median(to_off), 4),
            "to_off_mean": round(statistics.mean(to_off), 4),
            "standard_error": round(statistics.stdev(to_off) / len(to_off) ** 0.5, 4) if len(to_off) > 1 else None,
            "cpu_us_per_example": round(1e6 * statistics.median(costs[variant]), 3),
            "cpu_to_off": round(statistics.median(cost / off for cost, off in zip(costs[variant], costs["off"])), 4),
        }))


if __name__ == "__main__":
    main()
