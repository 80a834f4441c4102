#!/usr/bin/env python3
"""Whether rubato plan-capacity may be believed: it is calibrated with short runs of 1, 2 and 4 workers, and says what
other runs on this machine will do before they are made: more workers, another mode, another straggler. Printed are both, and
whether the modes are in the right order.

All tasks share this machine, so steps mostly sleep (docs/findings). Measured is the rate of a run between a quarter of its
steps and its end, from the run record's lines of progress. Runs are interleaved: each round makes all of them once, and
rates are the rounds' medians. The predictions are made once, from the first round's calibration.

    bazel build //cli/command:rubato //coordinator //server //worker
    bench/capacity_check.py --output=DIRECTORY
"""

import argparse
import json
import os
import statistics
import subprocess
import sys

BATCH = 32  # Of the config.
SLEEP = "worker:*:sleep=30ms"
BIMODAL = "worker:*:sleep=30ms+bimodal=x6,0.125"
ASYNC = ["consistency.mode=ASYNC", "optimizer.learning_rate=0.0125"]

# Name, workers, straggler, settings; the first ones are calibrated with.
FITTED = [(f"fitted: sync, {n}", n, SLEEP, []) for n in (1, 2, 4)]
HELD_OUT = [
    ("sync, 8", 8, SLEEP, []),
    ("sync, 16", 16, SLEEP, []),
    ("ssp:2, 8", 8, SLEEP, ["consistency.mode=SSP", "consistency.staleness_bound=2"]),
    ("async, 8", 8, SLEEP, ASYNC),
    ("async, 16", 16, SLEEP, ASYNC),
    ("sync, 8, bimodal", 8, BIMODAL, []),
    ("sync, 8, bimodal, quorum 6", 8, BIMODAL, ["consistency.quorum=6"]),
    ("async, 8, bimodal", 8, BIMODAL, ASYNC),
]
# Orders that should come out as they are: names of pairs that are compared.
PAIRS = [
    ("sync, 8, bimodal", "async, 8, bimodal"),
    ("sync, 8, bimodal", "sync, 8, bimodal, quorum 6"),
    ("sync, 16", "async, 16"),
]


def settings(workers, more):
    values = [f"cluster.workers={workers}", "cluster.evaluators=0", "evaluation="] + more
    return [argument for value in values for argument in ("--set", value)]


def rate_of(directory):
    """Examples a second between a quarter of the steps and the end."""
    lines = []
    with open(os.path.join(directory, "metrics.jsonl")) as record:
        for line in record:
            progress = json.loads(line).get("progress")
            if progress and progress["examples"] > 0:
                lines.append((progress["t"], progress["examples"]))
    begin = next(line for line in lines if line[1] >= lines[-1][1] / 4)
    # The last line is of the end, when some workers may have been done already.
    end = lines[-2]
    return (end[1] - begin[1]) / (end[0] - begin[0])


def train(options, case, directory):
    _, workers, slow, more = case
    steps = ["training.epochs=1000", f"training.max_steps={options.steps}"]
    traced = [f"training.trace_steps={options.steps // 2}", f"training.trace_after_steps={options.steps // 4}"]
    command = [options.rubato, "train", options.config, f"--run_directory={directory}", "--overwrite", f"--slow={slow}"]
    command += [f"--binaries={options.binaries}"] + settings(workers, more + steps + (traced if case in FITTED else []))
    with open(directory + ".out", "w") as output:
        if subprocess.run(command, stdout=output, stderr=output).returncode != 0:
            raise SystemExit(f"{' '.join(command)} failed: see {directory}.out")
    return rate_of(directory)


def plan(options, case, runs):
    _, workers, slow, more = case
    command = [options.rubato, "plan-capacity", options.config, "--json", "--one_host", f"--slow={slow}", "--steps=500"]
    command += [f"--calibrate={run}" for run in runs] + settings(workers, more)
    planned = subprocess.run(command, stdout=subprocess.PIPE)
    if planned.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed")
    return json.loads(planned.stdout)


def rate_of_plan(planned):
    """Examples a second that workers compute; with a quorum some of them are dropped, which the run record counts, too."""
    return planned["worker_steps_per_second"] * BATCH


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", required=True, help="a directory for the runs and check.json")
    parser.add_argument("--config", default="configs/fashion_mnist_cnn.textproto")
    parser.add_argument("--binaries", default="bazel-bin")
    parser.add_argument("--steps", type=int, default=400, help="of each run")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    options.rubato = os.path.join(options.binaries, "cli/command/rubato")
    options.binaries = os.path.abspath(options.binaries)
    os.makedirs(options.output, exist_ok=True)
    measured = {case[0]: [] for case in FITTED + HELD_OUT}
    predicted = {}
    for number in range(options.rounds):
        for at, case in enumerate(FITTED + HELD_OUT):
            if number == 0 and at == len(FITTED):
                runs = [os.path.join(options.output, f"round0-{i}") for i in range(len(FITTED))]
                predicted = {case[0]: plan(options, case, runs) for case in FITTED + HELD_OUT}
            directory = os.path.join(options.output, f"round{number}-{at}")
            measured[case[0]].append(train(options, case, directory))
            print(f"# round {number}: {case[0]}: {measured[case[0]][-1]:.0f} samples/s", file=sys.stderr, flush=True)
    print("| run | measured, samples/s | range | predicted | error |\n|---|---|---|---|---|")
    rows = []
    for name, rates in measured.items():
        median, model = statistics.median(rates), rate_of_plan(predicted[name])
        rows.append({"run": name, "measured": rates, "predicted": model, "plan": predicted[name]})
        measures = f"{median:.0f} | {min(rates):.0f} to {max(rates):.0f}"
        print(f"| {name} | {measures} | {model:.0f} | {100 * (model / median - 1):+.1f} % |")
    for slower, faster in PAIRS:
        real = statistics.median(measured[faster]) / statistics.median(measured[slower])
        model = rate_of_plan(predicted[faster]) / rate_of_plan(predicted[slower])
        print(f"{faster} to {slower}: {real:.2f} measured, {model:.2f} predicted")
    with open(os.path.join(options.output, "check.json"), "w") as output:
        json.dump(rows, output, indent=1)


if __name__ == "__main__":
    main()
