"""What simple models reach on the data of the ready jobs, to be held beside what these reach (bench/RESULTS.md).

    baselines.py flights|ratings|text|testaments [--data=data]

Reads the files that `./rubato.sh fetch-data` writes, and prints the figures on the test files. Nothing is drawn at
random.
"""

from __future__ import annotations

import argparse
import csv
import pathlib
import re
import zlib
from typing import Any, Dict, List, Tuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Columns = Dict[str, List[str]]


def read(path: pathlib.Path, names: List[str]) -> Columns:
    """Columns of a file with a header."""
    if not path.exists():
        raise SystemExit(f"{path} is missing: `./rubato.sh fetch-data` fetches it")
    with open(path, encoding="utf-8", newline="") as file:
        lines = csv.reader(file)
        header = next(lines)
        at = [header.index(name) for name in names]
        rows = [[line[i] for i in at] for line in lines]
    return {name: [row[i] for row in rows] for i, name in enumerate(names)}


def read_both(directory: pathlib.Path, names: List[str]) -> Tuple[Columns, Columns]:
    """Of the files to train and to test with."""
    return read(directory / "train.csv", names), read(directory / "test.csv", names)


def number(train: List[str], test: List[str]) -> Tuple[Integers, Integers, int]:
    """Numbers of values, counted from 1, 0 for those that are in `test` alone, and how many there are."""
    values = {value: i + 1 for i, value in enumerate(sorted(set(train)))}
    numbers = (np.array([values.get(value, 0) for value in part]) for part in (train, test))
    return (*numbers, len(values) + 1)  # type: ignore[return-value]


def auc(scores: Floats, labels: Integers) -> float:
    """The share of pairs of an example of either class in which that of class 1 has the higher score; a tie is half a
    pair."""
    _, ranks, counts = np.unique(scores, return_inverse=True, return_counts=True)
    middle = np.cumsum(counts) - (counts - 1) / 2
    positives = int(labels.sum())
    of_positives = middle[ranks][labels == 1].sum() - positives * (positives + 1) / 2
    return float(of_positives / (positives * (len(labels) - positives)))


def log_loss(scores: Floats, labels: Integers) -> float:
    """The mean cross entropy of logits."""
    return float(np.mean(np.maximum(scores, 0) - scores * labels + np.log1p(np.exp(-np.abs(scores)))))


def fit_logistic(fields: Integers, labels: Integers, weights: int, penalty: float = 1.0) -> Floats:
    """Logistic regression on one value of each field, [examples, fields] numbers under `weights`: Newton's method, to
    the end."""
    result = np.zeros(weights)
    for _ in range(12):
        scores = result[fields].sum(1)
        chances = 1 / (1 + np.exp(-scores))
        gradient = penalty * result
        hessian = np.zeros(weights * weights)
        curvature = chances * (1 - chances)
        for i in range(fields.shape[1]):
            gradient += np.bincount(fields[:, i], chances - labels, weights)
            for j in range(fields.shape[1]):
                hessian += np.bincount(fields[:, i] * weights + fields[:, j], curvature, weights * weights)
        step = np.linalg.solve(hessian.reshape(weights, weights) + penalty * np.eye(weights), gradient)
        result -= step
        if np.abs(step).max() < 1e-6:
            break
    return result


def flights(directory: pathlib.Path) -> None:
    """Logistic regression on the fields, each by itself: whether a flight is over 15 minutes late."""
    names = ["origin", "destination", "weekday", "hour", "distance"]
    train, test = read_both(directory, names + ["delay"])
    for part in (train, test):
        part["distance"] = [str(int(miles) // 100) for miles in part["distance"]]
    labels = [(np.array(part["delay"], dtype=np.int64) > 15).astype(np.int64) for part in (train, test)]
    fields: List[List[Integers]] = [[], []]
    first = 0
    for name in names:
        of_train, of_test, count = number(train[name], test[name])
        fields[0].append(first + of_train)
        fields[1].append(first + of_test)
        first += count
    weights = fit_logistic(np.stack(fields[0], 1), labels[0], first)
    scores = weights[np.stack(fields[1], 1)].sum(1)
    share = labels[0].mean()
    print(f"flights: {len(labels[0])} to train with, {share:.3f} of them late")
    print(f"  {len(labels[1])} to test with, {labels[1].mean():.3f} of them late")
    constant = np.full(len(labels[1]), np.log(share / (1 - share)))
    print(f"  the share of late flights alone: log loss {log_loss(constant, labels[1]):.4f}, AUC 0.5")
    loss, area = log_loss(scores, labels[1]), auc(scores, labels[1])
    print(f"  logistic regression without crosses: log loss {loss:.4f}, AUC {area:.4f}")


def fit_biases(
    users: Integers, items: Integers, ratings: Floats, penalties: Tuple[float, float]
) -> Tuple[float, Floats, Floats]:
    """The mean, and a ridge regression's bias of each user and item, by turns until they stand still."""
    mean = float(ratings.mean())
    of_users, of_items = np.zeros(users.max() + 1), np.zeros(items.max() + 1)
    user_counts, item_counts = np.bincount(users), np.bincount(items)
    for _ in range(50):
        of_users = np.bincount(users, ratings - mean - of_items[items]) / (user_counts + penalties[0])
        of_items = np.bincount(items, ratings - mean - of_users[users]) / (item_counts + penalties[1])
    return mean, of_users, of_items


def ratings(directory: pathlib.Path) -> None:
    """Biases of students and lecturers."""
    train, test = read_both(directory, ["student", "lecturer", "rating"])
    users, test_users, count_users = number(train["student"], test["student"])
    items, test_items, count_items = number(train["lecturer"], test["lecturer"])
    values, test_values = (np.array(part["rating"], dtype=np.float64) for part in (train, test))

    def error(
        mean: float, of_users: Floats, of_items: Floats, which: Any, on: Tuple[Integers, Integers, Floats]
    ) -> float:
        users, items, values = (column[which] for column in on)
        of_users = np.append(of_users, np.zeros(count_users - len(of_users)))
        of_items = np.append(of_items, np.zeros(count_items - len(of_items)))
        return float(np.sqrt(np.mean((values - mean - of_users[users] - of_items[items]) ** 2)))

    # The penalties are those that are best on a tenth of the training data.
    held = np.array([zlib.crc32(f"{u} {i}".encode()) % 10 == 1 for u, i in zip(users, items)])
    best = min(
        ((a, b) for a in (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 40.0) for b in (0.5, 1.0, 2.0, 5.0, 10.0, 20.0)),
        key=lambda p: error(*fit_biases(users[~held], items[~held], values[~held], p), held, (users, items, values)),
    )
    everything, tested = slice(None), (test_users, test_items, test_values)
    print(f"ratings: {len(values)} to train with, {len(test_values)} to test with")
    print(f"  the mean alone: RMSE {np.sqrt(np.mean((test_values - values.mean()) ** 2)):.4f}")
    plain = error(*fit_biases(users, items, values, (0.0001, 0.0001)), everything, tested)
    print(f"  biases without a penalty: RMSE {plain:.4f}")
    penalised = error(*fit_biases(users, items, values, best), everything, tested)
    print(f"  biases with the best penalties, {best}: RMSE {penalised:.4f}")


def text(directory: pathlib.Path) -> None:
    """Naive Bayes over the counts of words: from which of 66 books a verse is."""
    train, test = read_both(directory, ["book", "text"])
    labels, test_labels = (np.array(part["book"], dtype=np.int64) for part in (train, test))
    words: Dict[str, int] = {}
    counted = [
        [words.setdefault(word, len(words)) for word in re.findall("[a-z0-9]+", verse.lower())]
        for verse in train["text"]
    ]
    classes = int(labels.max()) + 1

    def scores(smoothing: float, learnt: npt.NDArray[np.bool_], verses: List[List[int]]) -> Floats:
        counts = np.full((classes, len(words)), smoothing)
        for i in np.flatnonzero(learnt):
            np.add.at(counts[labels[i]], counted[i], 1)
        chances = np.log(counts) - np.log(counts.sum(1, keepdims=True))
        prior = np.log(np.bincount(labels[learnt], minlength=classes) + 1.0)
        return np.stack([prior + chances[:, verse].sum(1) for verse in verses])

    # The smoothing is that which is best on a tenth of the training data.
    held = np.array([zlib.crc32(verse.encode()) % 10 == 1 for verse in train["text"]])
    held_verses = [counted[i] for i in np.flatnonzero(held)]
    best = max(
        (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0),
        key=lambda s: float(np.mean(scores(s, ~held, held_verses).argmax(1) == labels[held])),
    )
    verses = [
        [words[word] for word in re.findall("[a-z0-9]+", verse.lower()) if word in words] for verse in test["text"]
    ]
    found = scores(best, np.full(len(labels), True), verses)
    largest = np.argsort(-found, axis=1, kind="stable")[:, :5]
    most = int(np.bincount(labels).argmax())
    print(f"text: {len(labels)} to train with, {len(test_labels)} to test with, {classes} classes, {len(words)} words")
    print(f"  the largest class alone: accuracy {np.mean(test_labels == most):.4f}")
    print(
        f"  naive Bayes over words, smoothing {best}: accuracy {np.mean(largest[:, 0] == test_labels):.4f}, "
        f"recall@5 {np.mean((largest == test_labels[:, None]).any(1)):.4f}"
    )


def read_libsvm(path: pathlib.Path) -> Tuple[Integers, List[Dict[int, float]]]:
    """Whether labels are over 0, and each line's values by their indices."""
    if not path.exists():
        raise SystemExit(f"{path} is missing: `./rubato.sh fetch-data` fetches it")
    lines = [line.split() for line in path.read_text(encoding="utf-8").splitlines()]
    pairs = ((field.split(":") for field in line[1:]) for line in lines)
    values = [{int(index): float(value) for index, value in line} for line in pairs]
    return np.array([float(line[0]) > 0 for line in lines], dtype=np.int64), values


def testaments(directory: pathlib.Path) -> None:
    """Naive Bayes over the counts of words: from which Testament a verse is."""
    (labels, verses), (test_labels, test_verses) = (
        read_libsvm(directory / f"{part}.libsvm") for part in ("train", "test")
    )
    size = max(max(verse) for verse in verses + test_verses) + 1
    # Index 1 is how long the verse is.
    counts = np.ones((2, size))
    for label, verse in zip(labels, verses):
        for index, value in verse.items():
            counts[label, index] += value if index > 1 else 0
    chances = np.log(counts) - np.log(counts.sum(1, keepdims=True))
    prior = np.log(labels.sum() / (len(labels) - labels.sum()))
    weights = chances[1] - chances[0]
    scores = np.array(
        [prior + sum(v * weights[i] for i, v in verse.items() if i > 1) for verse in test_verses]
    )
    print(f"testaments: {len(labels)} to train with, {len(test_labels)} to test with")
    print(f"  {labels.mean():.3f} of the New Testament, {size - 2} words")
    accuracy = np.mean((scores > 0) == test_labels)
    print(f"  naive Bayes over words: AUC {auc(scores, test_labels):.4f}, accuracy {accuracy:.4f}")


def main() -> None:
    """See above."""
    parser = argparse.ArgumentParser(description="What simple models reach on the data of the ready jobs")
    parser.add_argument("job", choices=["flights", "ratings", "text", "testaments"])
    parser.add_argument("--data", default="data", type=pathlib.Path, help="the folder that fetch-data writes to")
    arguments = parser.parse_args()
    if arguments.job == "testaments":
        testaments(arguments.data / "text")
    else:
        {"flights": flights, "ratings": ratings, "text": text}[arguments.job](arguments.data / arguments.job)


if __name__ == "__main__":
    main()
