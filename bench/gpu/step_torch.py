"""Times steps of the models of step_models.cc in PyTorch on a GPU, as gpu_step_bench times ours: forward, loss to the
host, backward, and the next batch copied from locked memory beside it. In 16 bits by autocast, which keeps parameters
and their gradients in float32 as we do, and with the whole model in 16 bits; resnet20 in both layouts. Then products.
One line of JSON each. What fails is said, the rest follows, and the exit status is 1."""
import argparse
import contextlib
import json
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional

PRECISIONS = {"fp32": torch.float32, "tf32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
MODES = {"eager": "eager", "default": "compiled", "reduce-overhead": "compiled with reduce-overhead"}


def mlp(width=4096):
    layers = []
    for _ in range(4):
        layers += [nn.Linear(width, width), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(width, 10))


def conv(channels, filters, stride, kernel=3):
    return nn.Sequential(
        nn.Conv2d(channels, filters, kernel, stride, kernel // 2, bias=False), nn.GroupNorm(4, filters))


class Residual(nn.Module):
    def __init__(self, channels, filters, stride):
        super().__init__()
        self.layers = nn.Sequential(conv(channels, filters, stride), nn.ReLU(), conv(filters, filters, 1))
        self.shortcut = nn.Identity() if stride == 1 else conv(channels, filters, stride, kernel=1)

    def forward(self, x):
        return functional.relu(self.layers(x) + self.shortcut(x))


def resnet20():
    blocks, channels = [conv(3, 16, 1), nn.ReLU()], 16
    for stage in range(3):
        for block in range(3):
            filters = 16 << stage
            blocks.append(Residual(channels, filters, 2 if stage > 0 and block == 0 else 1))
            channels = filters
    return nn.Sequential(*blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        n, positions, width = x.shape
        qkv = self.qkv(self.norm1(x)).view(n, positions, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        y = functional.scaled_dot_product_attention(qkv[0], qkv[1], qkv[2], is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(n, positions, width))
        return x + self.mlp(self.norm2(x))


class LanguageModel(nn.Module):
    def __init__(self, blocks=12, width=768, positions=512):
        super().__init__()
        self.tokens, self.places = nn.Embedding(256, width), nn.Parameter(torch.zeros(positions, width))
        self.blocks = nn.Sequential(*[Block(width, width // 64) for _ in range(blocks)])
        self.norm, self.next = nn.LayerNorm(width), nn.Linear(width, 256)

    def forward(self, x):
        return self.next(self.norm(self.blocks(self.tokens(x) + self.places))).flatten(0, 1)


def batch(name):
    if name == "language_model":
        tokens = torch.arange(16 * 512).view(16, 512)
        return tokens * 31 % 256, tokens.flatten() * 7 % 256
    shape = (256, 4096) if name == "mlp" else (256, 3, 32, 32)
    return torch.randn(shape), torch.arange(256) * 7 % 10


class StagedBatch:
    """A batch in locked memory, copied to the GPU on a stream of its own."""

    def __init__(self, *tensors):
        self.tensors = [tensor.pin_memory() for tensor in tensors]
        self.stream = torch.cuda.Stream()
        self.stage()

    def stage(self):
        with torch.cuda.stream(self.stream):
            self.staged = [tensor.cuda(non_blocking=True) for tensor in self.tensors]

    def take(self):
        """What was staged last, once it is there."""
        torch.cuda.current_stream().wait_stream(self.stream)
        for tensor in self.staged:
            tensor.record_stream(torch.cuda.current_stream())
        return self.staged


def new_step(name, flags, mode, numbers, channels_last):
    """A call that makes one step, and the batch's size."""
    dtype = PRECISIONS[flags.precision]
    layout = torch.channels_last if channels_last else torch.contiguous_format
    model = {"mlp": mlp, "resnet20": resnet20, "language_model": LanguageModel}[name]()
    model = model.to("cuda", dtype if numbers == "pure" else torch.float32, memory_format=layout)
    inputs, labels = batch(name)
    staged = StagedBatch(inputs.contiguous(memory_format=layout), labels)
    # As we do: gradients of half precision would be too small to be kept.
    scale = 65536 if flags.precision == "fp16" else 1

    def loss_of(x, y):
        with torch.autocast("cuda", dtype=dtype) if numbers == "autocast" else contextlib.nullcontext():
            outputs = model(x.to(dtype) if numbers == "pure" and x.is_floating_point() else x)
            loss = functional.cross_entropy(outputs.float(), y)
        return loss if scale == 1 else loss * scale

    if mode != "eager":
        loss_of = torch.compile(loss_of, mode=mode)

    def step():
        for parameter in model.parameters():
            parameter.grad = None
        if mode != "eager":
            torch.compiler.cudagraph_mark_step_begin()
        loss = loss_of(*staged.take())
        loss.item()
        loss.backward()
        staged.stage()

    return step, len(inputs)


def seconds_of(call, flags):
    """Seconds of one call, as TimeOperation of device_timing.cc measures: the median of long rounds on a warm GPU, by
    the host's clock from an idle GPU to an idle GPU."""
    def round_of(calls):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(calls):
            call()
        torch.cuda.synchronize()
        return time.perf_counter() - begin

    # Compiles, chooses algorithms and records graphs.
    round_of(5)
    calls, warm = 1, 0.0
    while True:
        seconds = round_of(calls)
        warm += seconds
        if seconds >= flags.round_seconds and warm >= flags.warm_up_seconds:
            break
        if seconds < flags.round_seconds:
            calls = int(calls * min(4, 1.1 * flags.round_seconds / seconds)) + 1
    return statistics.median(round_of(calls) / calls for _ in range(flags.rounds))


def report(name, **figures):
    print(json.dumps({"name": name, **figures}), flush=True)


def time_step(name, flags, mode, numbers, channels_last):
    step, examples = new_step(name, flags, mode, numbers, channels_last)
    seconds = seconds_of(step, flags)
    layout = ", channels last" if channels_last else ""
    report(f"{name} {flags.precision} in PyTorch, {MODES[mode]}, {numbers}{layout}", batch=examples,
           step_milliseconds=seconds * 1e3, examples_per_s=examples / seconds)


def time_product(n, flags):
    a, b = (torch.randn(n, n, device="cuda").to(PRECISIONS[flags.precision]) for _ in range(2))
    seconds = seconds_of(lambda: a @ b.T, flags)
    report(f"product {n}, {flags.precision} in PyTorch", microseconds=seconds * 1e6,
           tflop_per_s=2 * n**3 / seconds / 1e12)


def cases(flags):
    """A name and a call each."""
    sixteen_bits = PRECISIONS[flags.precision] != torch.float32
    for mode in flags.modes.split(","):
        for name in ("language_model", "resnet20", "mlp"):
            for numbers in ("autocast", "pure") if sixteen_bits else ("float32",):
                for channels_last in (False, True) if name == "resnet20" else (False,):
                    arguments = name, flags, mode, numbers, channels_last
                    yield f"{name}, {mode}, {numbers}", lambda arguments=arguments: time_step(*arguments)
        if mode == "eager":
            for n in (256, 1024, 4096):
                yield f"product {n}", lambda n=n: time_product(n, flags)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--precision", choices=list(PRECISIONS), default="fp32")
    parser.add_argument("--modes", default="eager,reduce-overhead,default", help="of torch.compile, or eager")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--round_seconds", type=float, default=0.2)
    parser.add_argument("--warm_up_seconds", type=float, default=1)
    flags = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = flags.precision == "tf32"
    # Sums in float32, as ours.
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    torch.backends.cudnn.benchmark = True
    print(f"# PyTorch {torch.__version__} on {torch.cuda.get_device_name()}", flush=True)
    failed = 0
    for name, call in cases(flags):
        try:
            call()
        except Exception as error:  # Whatever PyTorch's compiler may raise.
            print(f"FAILED: {name}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
            failed += 1
        # The next one begins with free memory, and is compiled for itself.
        torch.compiler.reset()
        torch.cuda.empty_cache()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
