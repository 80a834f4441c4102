"""A transformer encoder that says from which of 66 books of the Bible a verse is, and a bag of words beside it.

    ./rubato.sh fetch-data text
    rubato run -n 2 -- python python/examples/text_classifier.py --data=data/text/bible.txt
"""

import argparse
import collections
import math
import pathlib
import re
from typing import Dict, List, Tuple

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

import common
import rubato
import rubato.torch

LENGTH = 48
WORDS = 8000
PADDING, UNKNOWN = 0, 1


def read_verses(path: str) -> Tuple[List[List[str]], List[int], int]:
    """Words and book of each verse, and how many books there are."""
    if not pathlib.Path(path).exists():
        raise SystemExit(f"{path} is missing: `./rubato.sh fetch-data text` fetches it")
    verses, labels = [], []
    books: Dict[str, int] = {}
    for line in pathlib.Path(path).read_text().splitlines():
        found = re.match(r"(\d?[A-Za-z]+)\d+:\d+ (.*)", line)
        if found:
            labels.append(books.setdefault(found[1], len(books)))
            verses.append(re.findall(r"[a-z']+", found[2].lower()))
    return verses, labels, len(books)


def encode(verses: List[List[str]], vocabulary: Dict[str, int]) -> torch.Tensor:
    """Numbers of words, padded."""
    rows = torch.full((len(verses), LENGTH), PADDING)
    for row, verse in zip(rows, verses):
        numbers = [vocabulary.get(word, UNKNOWN) for word in verse[:LENGTH]]
        row[: len(numbers)] = torch.tensor(numbers)
    return rows


def load(path: str, examples: int) -> Tuple[TensorDataset, TensorDataset, int]:
    """Nine of ten verses to train on, the others to test with; the vocabulary is that of the first."""
    verses, labels, books = read_verses(path)
    order = torch.randperm(len(verses), generator=torch.Generator().manual_seed(5)).tolist()
    order = order[:examples] if examples else order
    cut = len(order) * 9 // 10
    counted = collections.Counter(word for i in order[:cut] for word in verses[i])
    vocabulary = {word: i + 2 for i, (word, _) in enumerate(counted.most_common(WORDS - 2))}
    parts = []
    for part in (order[:cut], order[cut:]):
        tokens = encode([verses[i] for i in part], vocabulary)
        parts.append(TensorDataset(tokens, torch.tensor([labels[i] for i in part])))
    return parts[0], parts[1], books


class BagOfWords(nn.Module):
    """Each word adds to the score of each book, wherever it is."""

    def __init__(self, books: int) -> None:
        super().__init__()
        self.scores = nn.Embedding(WORDS, books, padding_idx=PADDING)
        nn.init.zeros_(self.scores.weight)
        self.bias = nn.Parameter(torch.zeros(books))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.scores(tokens).sum(1) + self.bias
        return result


class Classifier(nn.Module):
    """A transformer encoder layer, whose outputs say what words say in their places; and what they say anywhere."""

    def __init__(self, books: int, width: int = 128) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, width, padding_idx=PADDING)
        self.places = nn.Embedding(LENGTH, width)
        nn.init.normal_(self.words.weight, std=0.1)
        nn.init.normal_(self.places.weight, std=0.02)
        layer = nn.TransformerEncoderLayer(
            width, 4, 2 * width, dropout=0.1, batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.drop = nn.Dropout(0.3)
        self.output = nn.Linear(width, books)
        self.anywhere = BagOfWords(books)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        tokens = tokens[:, : max(1, int((tokens != PADDING).sum(1).max()))]
        padding = tokens == PADDING
        if self.training:
            # A verse has to be told without some of its words.
            left_out = (torch.rand(tokens.shape) < 0.2) & ~padding
            tokens = tokens.masked_fill(left_out, UNKNOWN)
        x = self.drop(self.words(tokens)) + self.places.weight[: tokens.shape[1]]
        x = self.encoder(x, src_key_padding_mask=padding)
        x = x.masked_fill(padding[..., None], 0.0)
        scores: torch.Tensor = self.output(x.sum(1) / 8) + self.anywhere(tokens)
        return scores


def train_alone(model: nn.Module, train: TensorDataset, epochs: int) -> nn.Module:
    """Beside the job, for comparison: 128 verses at a time, with the rate at which a bag of words is best."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(epochs):
        for x, y in DataLoader(train, 128, shuffle=True):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y, label_smoothing=0.1).backward()
            optimizer.step()
    return model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="data/text/bible.txt")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--examples", type=int, default=0, help="how many verses; 0: all")
    arguments = parser.parse_args()
    common.seed()

    with rubato.init() as session:
        torch.set_num_threads(1)
        train, test, books = load(arguments.data, arguments.examples)
        model = Classifier(books)
        optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
        sampler = DistributedSampler(train, session.size, session.rank, seed=1)
        loader = DataLoader(train, arguments.batch, sampler=sampler)
        total = max(1, arguments.epochs * len(loader))
        scheduler = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda step: 0.5 + 0.5 * math.cos(math.pi * min(1.0, step / total))
        )
        optimizer = rubato.torch.DistributedOptimizer(optimizer, model, clip_norm=1.0)
        for epoch in range(arguments.epochs):
            sampler.set_epoch(epoch)
            for step, (x, y) in enumerate(rubato.torch.batches(loader, optimizer)):
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(model(x), y, label_smoothing=0.1)
                session.log({"loss": loss.item(), "epoch": epoch + step / len(loader)}, len(x))
                loss.backward()
                optimizer.step()
                scheduler.step()
            if session.rank == 0:
                print(f"epoch {epoch + 1}: loss {loss.item():.3f}", flush=True)

    if session.rank == 0:
        bag = train_alone(BagOfWords(books), train, arguments.epochs)
        ours, theirs = common.accuracy(model, test), common.accuracy(bag, test)
        print(f"accuracy {100 * ours:.1f} %, of a bag of words {100 * theirs:.1f} %", flush=True)


if __name__ == "__main__":
    main()
