"""Whole jobs on a card, with the launcher's programs: MNIST's CNN in every mode, the same job on the CPU and on the card,
and how busy the card is in a synchronous job with one server on this host. One line of JSON each. Run it in the root of
the repository, where the data are; what is not there is left out, and said."""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading

MNIST = "data/mnist/train-images-idx3-ubyte"


def say(text):
    print(f"jobs.py: {text}", file=sys.stderr)


def run(flags, *arguments):
    """Runs `rubato`, and shows what it says when it fails."""
    done = subprocess.run([flags.rubato, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=flags.time_limit)
    if done.returncode != 0:
        print(done.stdout, file=sys.stderr)
        raise SystemExit(f"jobs.py: rubato {' '.join(arguments)}: exit {done.returncode}")


def settings(flags, **fields):
    """--set for each field; two underscores stand for a dot."""
    fields = {"training__device": flags.device, "training__precision": flags.precision, **fields}
    return [f"--set={name.replace('__', '.')}={value}" for name, value in fields.items()]


def train(flags, name, config, **fields):
    """The run record of a job."""
    directory = os.path.join(flags.work, name)
    run(flags, "train", config, *settings(flags, **fields), "--overwrite", f"--run_directory={directory}")
    with open(os.path.join(directory, "metrics.jsonl"), encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def report(name, **figures):
    print(json.dumps({"name": name, **figures}), flush=True)


def every_mode(flags):
    if not os.path.exists(MNIST):
        say(f"no {MNIST}; ./rubato.sh fetch-data gets it")
        return
    directory = os.path.join(flags.work, "modes")
    fields = {"training__max_steps": flags.steps} if flags.steps else {}
    # Longer than the config has it and with shifted digits, for 99 %.
    fields |= {"training__epochs": 12, "optimizer__schedule__cosine__length": 11.9, "data__augmentation__crop_padding": 2}
    run(flags, "compare", "configs/mnist_cnn.textproto", "--modes=sync,ssp:2,async", *settings(flags, **fields),
        f"--run_directory={directory}")
    with open(os.path.join(directory, "summary.json"), encoding="utf-8") as file:
        for mode in json.load(file)["modes"]:
            report(f"mnist_cnn {mode['mode']}, {flags.precision}, {flags.device}", accuracy=mode["mean"]["final_accuracy"],
                   examples_per_s=mode["mean"]["examples_per_second"], audit=mode["mean"]["audit"])


def loss_after(flags, name, config, steps, **fields):
    """The held-out loss of a job of one worker that is stopped after so many steps, in FP32."""
    records = train(flags, f"{name}-{steps}", config, training__precision="FP32", training__max_steps=steps,
                    cluster__workers=1, consistency__mode="SYNC", data__dispatch="STATIC", **fields)
    return [record["loss"] for record in records if record["kind"] == "evaluation"][-1]


def same_losses(flags):
    """The same job on the CPU, on the card, and on the CPU in two micro-batches, which only rounds differently: where a
    maximum or ReLU's edge decides, that too takes another way sooner or later."""
    configs = ["configs/teacher_mlp.textproto"] + (["configs/mnist_cnn.textproto"] if os.path.exists(MNIST) else [])
    for config in configs:
        for steps in (10, 25, 50, 100):
            on_cpu = loss_after(flags, "cpu", config, steps, training__device="CPU")
            on_device = loss_after(flags, "device", config, steps)
            in_parts = loss_after(flags, "parts", config, steps, training__device="CPU", training__micro_batches=2)
            report(f"{config}, {steps} steps in FP32", on_cpu=on_cpu, on_device=on_device,
                   difference=abs(on_device - on_cpu), in_two_parts_on_cpu=in_parts,
                   difference_of_parts=abs(in_parts - on_cpu))


def sample_card(samples, stop):
    """Adds how busy the card was, in percent of about the last sixth of a second, until `stop` is set."""
    query = ["nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits", "--id=0"]
    while not stop.wait(0.2):
        samples.append(float(subprocess.run(query, stdout=subprocess.PIPE, check=True, timeout=10).stdout))


def busy_card(flags):
    pictures = os.path.join(flags.work, "pictures")
    subprocess.run([flags.make_cifar, pictures, "2000"], check=True, stdout=subprocess.DEVNULL, timeout=flags.time_limit)
    config = os.path.join(flags.work, "resnet20.textproto")
    with open("configs/resnet20_cifar10.textproto", encoding="utf-8") as given:
        with open(config, "w", encoding="utf-8") as file:
            file.write(given.read().replace("data/cifar-10", pictures))
    samples, stop = [], threading.Event()
    sampler = threading.Thread(target=sample_card, args=(samples, stop))
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
    progress = [r for r in records if r["kind"] == "progress"]
    # Without the start and the end.
    middle = samples[len(samples) // 3:len(samples) * 9 // 10]
    report(f"resnet20 sync with one server, {flags.precision}, {flags.device}", batch=flags.batch,
           examples_per_s=progress[-1]["examples_per_second"], waiting_share=progress[-1]["waiting_share"],
           card_busy_percent=statistics.median(middle) if middle else None)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rubato", default="bazel-bin/cli/command/rubato")
    parser.add_argument("--make_cifar", default="bazel-bin/tests/e2e/make_cifar")
    parser.add_argument("--device", choices=["CUDA", "CPU"], default="CUDA")
    parser.add_argument("--precision", choices=["FP32", "TF32", "BF16", "FP16"], default="FP32")
    parser.add_argument("--batch", type=int, default=256, help="of the job that keeps the card busy")
    parser.add_argument("--steps", type=int, default=0, help="of each job but the one of 100; otherwise enough")
    parser.add_argument("--time_limit", type=float, default=600, help="seconds for each job")
    flags = parser.parse_args()
    with tempfile.TemporaryDirectory() as flags.work:
        every_mode(flags)
        same_losses(flags)
        busy_card(flags)


if __name__ == "__main__":
    main()
