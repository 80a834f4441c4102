"""Our steps beside PyTorch's: summary.py LOG..., with what gpu_step_bench and step_torch.py have printed. A row for
each model, precision and way in which PyTorch computes in it (autocast, or the whole model in 16 bits), with the best
of its layouts and ways of compiling. A ratio is how many times as long PyTorch takes as we do."""
import json
import re
import sys

OURS = re.compile(r"(\w+) (fp32|tf32|bf16|fp16) on ")
PYTORCHS = re.compile(r"(\w+) (fp32|tf32|bf16|fp16) in PyTorch, (eager|compiled[^,]*), (\w+)")


def steps(lines):
    """Milliseconds of our steps by (model, precision), and of PyTorch's, the best, by (model, precision, numbers) and
    "eager" or "compiled"."""
    ours, pytorchs = {}, {}
    for line in lines:
        try:
            case = json.loads(line)
            name, milliseconds = case["name"], case["step_milliseconds"]
        except (ValueError, TypeError, KeyError):
            continue  # Tables, and what else was printed.
        if found := OURS.match(name):
            ours[found.groups()] = milliseconds
        elif found := PYTORCHS.match(name):
            model, precision, mode, numbers = found.groups()
            best = pytorchs.setdefault((model, precision, numbers), {})
            kind = mode.split()[0]
            best[kind] = min(milliseconds, best.get(kind, milliseconds))
    return ours, pytorchs


def rows(ours, pytorchs):
    """Texts of the table's cells; "-" for what was not measured."""
    def number(value):
        return "-" if value is None else f"{value:.4g}"

    def ratio(value, own):
        return "-" if value is None or own is None else f"{value / own:.2f}"

    yield "model", "precision", "PyTorch in", "ours, ms", "eager, ms", "compiled, ms", "eager / ours", "compiled / ours"
    alone = [(*key, "-") for key in ours if not any(other[:2] == key for other in pytorchs)]
    for key in sorted([*pytorchs, *alone]):
        own, best = ours.get(key[:2]), pytorchs.get(key, {})
        eager, compiled = best.get("eager"), best.get("compiled")
        yield *key, number(own), number(eager), number(compiled), ratio(eager, own), ratio(compiled, own)


def main():
    lines = []
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines += file
    table = list(rows(*steps(lines)))
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    for row in table:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


if __name__ == "__main__":
    main()
