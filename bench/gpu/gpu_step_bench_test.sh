#!/usr/bin/env bash
# Every model makes its steps, on the CPU and small.
set -euo pipefail
output="$("$1" --device=cpu --small --rounds=1 --round-seconds=0 --warm-up-seconds=0)"
grep -q "floor_milliseconds" <<<"$output" || { printf "no floor in:\n%s\n" "$output" >&2; exit 1; }
for name in "mlp fp32 on cpu" "resnet20 fp32 on cpu" "language_model fp32 on cpu"; do
  grep -q "\"name\":\"$name\"" <<<"$output" || { printf 'no line for "%s" in:\n%s\n' "$name" "$output" >&2; exit 1; }
done
