"""Whole jobs on a GPU, with the launcher's programs: MNIST's CNN in every mode, in FP32 the same job on the CPU and
on the GPU, and how busy the GPU is in a synchronous job with one server on this host. One line of JSON each. Run it
where configs/ and data/ are; what is not there is left out, and said. A job that fails is said too, the others follow,
and the exit status is 1."""
import argparse
import glob
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading

MNIST = "data/mnist/train-images-idx3-ubyte"


def say(text):
    print(f"jobs.py: {text}", file=sys.stderr)


class JobFailed(Exception):
    """What went wrong, and what the program said."""


def run(flags, jobs, *arguments):
    """Runs `rubato`, for so many jobs one after another."""
    process = subprocess.Popen([flags.rubato, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    limit = flags.time_limit * jobs
    try:
        said, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired as expired:
        # It stops its tasks first.
        process.send_signal(signal.SIGTERM)
        try:
            process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
        raise JobFailed(f"rubato {' '.join(arguments)}: not done within {limit:.0f} s") from expired
    if process.returncode != 0:
        raise JobFailed(f"rubato {' '.join(arguments)}: exit {process.returncode}\n{said}")


def settings(flags, **fields):
    """--set for each field; two underscores stand for a dot."""
    fields = {"training__device": flags.device, "training__precision": flags.precision, **fields}
    return [f"--set={name.replace('__', '.')}={value}" for name, value in fields.items()]


def train(flags, name, config, **fields):
    """The lines of a job's run record, each with its kind."""
    directory = os.path.join(flags.work, name)
    run(flags, 1, "train", config, *settings(flags, **fields), "--overwrite", f"--run_directory={directory}")
    with open(os.path.join(directory, "metrics.jsonl"), encoding="utf-8") as file:
        return [{"kind": kind, **line} for text in file for kind, line in json.loads(text).items()]


def report(name, **figures):
    print(json.dumps({"name": name, **figures}), flush=True)


def computes_on(directory):
    """What the first worker of a job says that it computes on; None if it says nothing."""
    for log in sorted(glob.glob(os.path.join(directory, "**", "worker-0.log"), recursive=True)):
        with open(log, encoding="utf-8") as file:
            if found := re.search(r"computes on (.*)", file.read()):
                return found.group(1)
    return None


def report_modes(flags, directory):
    with open(os.path.join(directory, "summary.json"), encoding="utf-8") as file:
        modes = json.load(file)["modes"]
    for mode in modes:
        mean = mode["mean"]
        report(f"mnist_cnn {mode['mode']}, {flags.precision}, {flags.device}", ok=mean["ok"],
               accuracy=mean["final_accuracy"], examples_per_s=mean["examples_per_second"], audit=mean["audit"],
               computes_on=computes_on(directory), workers_and_evaluators_that_share_it=3)


def every_mode(flags):
    if not os.path.exists(MNIST):
        say(f"no {MNIST}; ./rubato.sh fetch-data gets it")
        return
    directory = os.path.join(flags.work, "modes")
    fields = {"training__max_steps": flags.steps} if flags.steps else {}
    # Longer than the config has it and with shifted digits, for 99 %.
    fields |= {"training__epochs": 12, "optimizer__schedule__cosine__length": 11.9,
               "data__augmentation__crop_padding": 2, "cluster__workers": 2, "cluster__evaluators": 1}
    if flags.device == "CUDA":
        # Of several GPUs, one for all.
        fields["training__device_index"] = 0
    try:
        run(flags, 3, "compare", "configs/mnist_cnn.textproto", "--modes=sync,ssp:2,async", *settings(flags, **fields),
            "--overwrite", f"--run_directory={directory}")
    finally:
        # Of those that did not fail.
        if os.path.exists(os.path.join(directory, "summary.json")):
            report_modes(flags, directory)


def loss_after(flags, name, config, steps, **fields):
    """The held-out loss of a job of one worker that is stopped after so many steps."""
    records = train(flags, f"{name}-{steps}", config, training__max_steps=steps, cluster__workers=1,
                    consistency__mode="SYNC", data__dispatch="STATIC", **fields)
    return [record.get("loss") for record in records if record["kind"] == "evaluation"][-1]


def same_losses(flags, config, steps):
    """The same job on the CPU, on the GPU, and on the CPU in two micro-batches, which only rounds differently: if
    a maximum or ReLU's edge decides, that too takes another way sooner or later."""
    on_cpu = loss_after(flags, "cpu", config, steps, training__device="CPU")
    on_device = loss_after(flags, "device", config, steps)
    in_micro_batches = loss_after(flags, "micro-batches", config, steps, training__device="CPU",
                                  training__micro_batches=2)
    report(f"{config}, {steps} steps in FP32", on_cpu=on_cpu, on_device=on_device, difference=abs(on_device - on_cpu),
           in_two_micro_batches_on_cpu=in_micro_batches,
           difference_of_micro_batches=abs(in_micro_batches - on_cpu))


def sample_gpu(samples, stop):
    """Adds how busy the GPU was, in percent of about the last sixth of a second, until `stop` is set."""
    query = ["nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits", "--id=0"]
    while not stop.wait(0.2):
        try:
            samples.append(float(subprocess.run(query, stdout=subprocess.PIPE, check=True, timeout=10).stdout))
        except (OSError, subprocess.SubprocessError, ValueError) as error:
            say(f"how busy the GPU is cannot be asked: {error}")
            return


def busy_gpu(flags):
    pictures = os.path.join(flags.temporary, "pictures")
    make = [flags.make_cifar, pictures, "2000"]
    subprocess.run(make, check=True, stdout=subprocess.DEVNULL, timeout=flags.time_limit)
    config = os.path.join(flags.work, "resnet20.textproto")
    with open("configs/resnet20_cifar10.textproto", encoding="utf-8") as given:
        with open(config, "w", encoding="utf-8") as file:
            file.write(given.read().replace("../data/cifar-10", pictures))
    samples, stop = [], threading.Event()
    sampler = threading.Thread(target=sample_gpu, args=(samples, stop))
    if flags.device == "CUDA":
        sampler.start()
    try:
        records = train(flags, "busy", config, consistency__mode="SYNC", cluster__servers=1, cluster__workers=1,
                        cluster__evaluators=0, training__batch_size=flags.batch, training__epochs=1000,
                        training__max_steps=flags.steps or 3000)
    finally:
        stop.set()
        if sampler.ident is not None:
            sampler.join()
    waiting = [record["waiting_share"] for record in records if record["kind"] == "progress"]
    # Without the start and the end.
    middle = samples[len(samples) // 3:len(samples) * 9 // 10]
    report(f"resnet20 sync with one server, {flags.precision}, {flags.device}", batch=flags.batch,
           examples_per_s=next(record["examples_per_second"] for record in records if record["kind"] == "end"),
           waiting_share=waiting[-1] if waiting else None,
           gpu_busy_percent=statistics.median(middle) if middle else None,
           computes_on=computes_on(os.path.join(flags.work, "busy")))


def sections(flags):
    """What there is to do: a name and a call each."""
    yield "every mode", lambda: every_mode(flags)
    if flags.precision == "FP32":
        configs = ["configs/teacher_mlp.textproto"] + (["configs/mnist_cnn.textproto"] if os.path.exists(MNIST) else [])
        for config in configs:
            for steps in (10, 25, 50, 100):
                yield f"{config}, {steps} steps", lambda config=config, steps=steps: same_losses(flags, config, steps)
    yield "busy GPU", lambda: busy_gpu(flags)


def run_sections(flags):
    """The names of those that failed."""
    failed = []
    for name, call in sections(flags):
        try:
            call()
        except (JobFailed, OSError, subprocess.SubprocessError, LookupError, ValueError, StopIteration) as error:
            say(f"FAILED: {name}: {type(error).__name__}: {error}")
            failed.append(name)
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    # No defaults: what happens to be built last may have emulated GPUs.
    parser.add_argument("--rubato", required=True, help="the program, with the other tasks' beside it")
    parser.add_argument("--make_cifar", required=True, help="the program")
    parser.add_argument("--device", choices=["CUDA", "CPU"], default="CUDA")
    parser.add_argument("--precision", choices=["FP32", "TF32", "BF16", "FP16"], default="FP32")
    parser.add_argument("--batch", type=int, default=256, help="of the job that keeps the GPU busy")
    parser.add_argument("--steps", type=int, default=0, help="of each job but those of 10 to 100; otherwise enough")
    parser.add_argument("--time_limit", type=float, default=120, help="seconds for each job")
    parser.add_argument("--work", default="", help="folder for what jobs write, which is kept; else temporary")
    flags = parser.parse_args()
    with tempfile.TemporaryDirectory() as flags.temporary:
        flags.work = flags.work or flags.temporary
        os.makedirs(flags.work, exist_ok=True)
        failed = run_sections(flags)
    if failed:
        raise SystemExit(f"jobs.py: {len(failed)} failed: {'; '.join(failed)}")


if __name__ == "__main__":
    main()
