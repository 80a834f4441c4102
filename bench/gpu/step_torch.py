"""Times steps of the models of step_models.cc in PyTorch on a card: inputs to the device, forward, loss to the host,
backward; eager and, with --compile, compiled. One line of JSON each, like gpu_step_bench."""
import argparse
import json
import statistics
import time

import torch
from torch import nn
from torch.nn import functional

PRECISIONS = {"fp32": None, "tf32": None, "bf16": torch.bfloat16, "fp16": torch.float16}


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


def cases():
    yield "mlp", mlp(), torch.randn(256, 4096), torch.arange(256) % 10
    yield "resnet20", resnet20(), torch.randn(256, 3, 32, 32), torch.arange(256) % 10
    tokens = torch.arange(16 * 512).view(16, 512)
    yield "language_model", LanguageModel(), tokens * 31 % 256, tokens.flatten() * 7 % 256


def time_steps(model, inputs, labels, dtype, rounds, steps):
    inputs, labels = inputs.pin_memory(), labels.pin_memory()

    def step():
        for parameter in model.parameters():
            parameter.grad = None
        x, y = inputs.cuda(non_blocking=True), labels.cuda(non_blocking=True)
        with torch.autocast("cuda", dtype=dtype or torch.float32, enabled=dtype is not None):
            loss = functional.cross_entropy(model(x), y)
        value = loss.detach()
        value.item()
        (loss * (65536 if dtype is torch.float16 else 1)).backward()

    times = []
    for round_number in range(rounds + 1):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(steps):
            step()
        torch.cuda.synchronize()
        if round_number > 0:
            times.append((time.perf_counter() - begin) * 1e3 / steps)
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--precision", choices=list(PRECISIONS), default="fp32")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--compile", action="store_true")
    flags = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = flags.precision == "tf32"
    for name, model, inputs, labels in cases():
        model = model.cuda()
        if flags.compile:
            model = torch.compile(model)
        milliseconds = time_steps(model, inputs, labels, PRECISIONS[flags.precision], flags.rounds, flags.steps)
        how = "compiled" if flags.compile else "eager"
        print(json.dumps({"name": f"{name} {flags.precision} in PyTorch, {how}", "batch": len(inputs),
                          "step_milliseconds": milliseconds, "examples_per_s": len(inputs) / milliseconds * 1e3}))


if __name__ == "__main__":
    main()
