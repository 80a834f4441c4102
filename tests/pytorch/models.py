#!/usr/bin/env python3
"""The models of models.h, written with torch.nn, and what is compared with ours.

  models.py golden           prints the names and shapes of all state dicts: state_dicts.golden
  models.py load FOLDER      each model takes our weights (load_state_dict) and computes our outputs
  models.py save FOLDER      writes weights of each model, an input and its output, for us
"""
import json
import struct
import sys
from collections import OrderedDict

import torch
from torch import nn

EXAMPLES = 3
TYPES = {"F32": torch.float32}


class GlobalAveragePool(nn.Module):
    def forward(self, x):
        return x.mean((2, 3))


class Residual(nn.Sequential):
    """y = layers(x) + x, or plus the modules called shortcut and shortcut_norm of x."""

    def forward(self, x):
        y, shortcut = x, x
        for name, module in self.named_children():
            if name in ("shortcut", "shortcut_norm"):
                shortcut = module(shortcut)
            else:
                y = module(y)
        return y + shortcut


class Branches(nn.Sequential):
    """Puts side by side what its modules, called 0, 1 and so on, make of ranges of the input."""

    def __init__(self, ranges, *branches):
        super().__init__(*branches)
        self.ranges = ranges

    def forward(self, x):
        return torch.cat([branch(x[:, begin:end]) for (begin, end), branch in zip(self.ranges, self)], dim=1)


def products(x, width):
    """The dot products of all pairs i > j of the vectors in each row."""
    vectors = x.reshape(len(x), -1, width)
    i, j = torch.tril_indices(vectors.shape[1], vectors.shape[1], -1)
    return torch.bmm(vectors, vectors.transpose(1, 2))[:, i, j]


class DotInteraction(nn.Module):
    """As in facebookresearch/dlrm."""

    def __init__(self, width):
        super().__init__()
        self.width = width

    def forward(self, x):
        return torch.cat([x[:, :self.width], products(x, self.width)], dim=1)


class FactorizationMachine(DotInteraction):
    def forward(self, x):
        return products(x, self.width).sum(dim=1, keepdim=True)


class Cross(nn.Module):
    """DCN V2: x_(k+1) = x_0 * layer<k>(x_k) + x_k."""

    def __init__(self, inputs, layers):
        super().__init__()
        for k in range(layers):
            self.add_module(f"layer{k}", nn.Linear(inputs, inputs))

    def forward(self, x):
        y = x
        for layer in self.children():
            y = x * layer(y) + y
        return y


class Embedding(nn.Embedding):
    """With a row for each position, which is added to the token's."""

    def __init__(self, vocabulary, width, positions):
        super().__init__(vocabulary, width)
        self.positions = nn.Parameter(torch.randn(positions, width))

    def forward(self, tokens):
        return super().forward(tokens) + self.positions


def causal(x):
    """What a position may not see: those after it."""
    return torch.triu(torch.ones(x.shape[1], x.shape[1], dtype=torch.bool), diagonal=1)


class Attention(nn.MultiheadAttention):
    def __init__(self, width, heads):
        super().__init__(width, heads, batch_first=True)

    def forward(self, x):
        return super().forward(x, x, x, attn_mask=causal(x), need_weights=False)[0]


class Transformer(nn.TransformerEncoderLayer):
    def __init__(self, width, heads, mlp_width, dropout=0.0):
        super().__init__(width, heads, mlp_width, dropout, activation="gelu", batch_first=True, norm_first=True)

    def forward(self, x):
        return super().forward(x, src_mask=causal(x))


def sequential(**modules):
    return nn.Sequential(OrderedDict(modules))


def models():
    return {
        "vectors": sequential(
            hidden=nn.Linear(6, 7), relu1=nn.ReLU(), linear2=nn.Linear(7, 9, bias=False), tanh3=nn.Tanh(),
            layer_norm4=nn.LayerNorm(9, eps=0.01), dropout5=nn.Dropout(0.4), linear6=nn.Linear(9, 5)),
        "images": sequential(
            conv2d0=nn.Conv2d(3, 6, 3, stride=2, padding=1), gelu1=nn.GELU(), max_pool2d2=nn.MaxPool2d(3, 1),
            group_norm3=nn.GroupNorm(3, 6), conv2d4=nn.Conv2d(6, 4, 2, bias=False),
            layer_norm5=nn.LayerNorm([4, 4, 3]), average_pool2d6=nn.AvgPool2d(2), flatten7=nn.Flatten(),
            linear8=nn.Linear(8, 5)),
        "residual": sequential(
            conv2d0=nn.Conv2d(3, 4, 3, padding=1),
            same=Residual(OrderedDict(conv2d0=nn.Conv2d(4, 4, 3, padding=1), relu1=nn.ReLU())),
            smaller=Residual(OrderedDict(
                down=nn.Conv2d(4, 8, 3, stride=2, padding=1), group_norm1=nn.GroupNorm(4, 8),
                shortcut=nn.Conv2d(4, 8, 1, stride=2, bias=False), shortcut_norm=nn.GroupNorm(2, 8))),
            global_average_pool3=GlobalAveragePool(), linear4=nn.Linear(8, 5)),
        "language": sequential(
            tokens=Embedding(17, 12, positions=10), block1=Transformer(12, 3, 48, dropout=0.2),
            block2=Transformer(12, 2, 20), layer_norm3=nn.LayerNorm(12), next=nn.Linear(12, 17)),
        "recommender": sequential(
            vectors=Branches(
                [(0, 5), (5, 13)],
                sequential(linear0=nn.Linear(5, 6), relu1=nn.ReLU(), linear2=nn.Linear(6, 4)), nn.Identity()),
            dot_interaction1=DotInteraction(4), top=nn.Linear(7, 3), relu3=nn.ReLU(), linear4=nn.Linear(3, 1)),
        "cross": sequential(
            parts=Branches(
                [(0, 12)] * 3, sequential(crossed=Cross(12, 3)), sequential(linear0=nn.Linear(12, 7), relu1=nn.ReLU()),
                sequential(factorization_machine0=FactorizationMachine(3))),
            linear1=nn.Linear(20, 1)),
        "attention": sequential(
            embedding0=nn.Embedding(11, 8), residual1=Residual(OrderedDict(attention0=Attention(8, 4))),
            linear2=nn.Linear(8, 3)),
    }


def inputs():
    return {
        "vectors": torch.randn(EXAMPLES, 6),
        "images": torch.randn(EXAMPLES, 3, 13, 11),
        "residual": torch.randn(EXAMPLES, 3, 9, 8),
        "language": torch.randint(17, (EXAMPLES, 10)),
        "recommender": torch.randn(EXAMPLES, 13),
        "cross": torch.randn(EXAMPLES, 12),
        "attention": torch.randint(11, (EXAMPLES, 7)),
    }


def read_safetensors(path):
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = bytearray(file.read())
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        tensors[name] = torch.frombuffer(data[begin:end], dtype=TYPES[entry["dtype"]]).reshape(entry["shape"])
    return tensors


def write_safetensors(path, tensors):
    header, data = {}, b""
    for name, tensor in tensors.items():
        elements = tensor.detach().float().flatten().tolist()
        begin = len(data)
        data += struct.pack(f"<{len(elements)}f", *elements)
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def golden():
    print("# Made by models.py golden: model, tensor, shape.")
    for name, model in models().items():
        for tensor, value in model.state_dict().items():
            print(name, tensor, "x".join(map(str, value.shape)))


def load(folder):
    for name, model in models().items():
        model.load_state_dict(read_safetensors(f"{folder}/{name}.safetensors"))
        run = read_safetensors(f"{folder}/{name}.run.safetensors")
        x = run["input"].long() if inputs()[name].dtype == torch.int64 else run["input"]
        difference = (model.eval()(x) - run["output"]).abs().max().item()
        print(f"{name}: load_state_dict takes our tensors; outputs differ by at most {difference:.1e}")
        if not difference < 1e-4:
            sys.exit(f"{name}: the outputs are not ours")


def save(folder):
    for name, model in models().items():
        # What begins as zeros or ones would not show that it is used.
        with torch.no_grad():
            for parameter in model.parameters():
                parameter += 0.1 * torch.randn_like(parameter)
        x = inputs()[name]
        write_safetensors(f"{folder}/{name}.torch.safetensors", model.state_dict())
        write_safetensors(f"{folder}/{name}.torch_run.safetensors", {"input": x, "output": model.eval()(x)})


if __name__ == "__main__":
    torch.manual_seed(1)
    with torch.no_grad():
        {"golden": golden, "load": load, "save": save}[sys.argv[1]](*sys.argv[2:])
