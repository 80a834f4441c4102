#!/usr/bin/env bash
# Every case runs once, on the CPU and with small tensors.
set -euo pipefail
output="$("$1" --device=cpu --scale=1 --rounds=1)"
for name in "copy on the device" "product 64" "layer norm gradient" "convolution, weight gradient" "causal attention"; do
  grep -q "\"name\":\"$name\"" <<<"$output" || { printf 'no line for "%s" in:\n%s\n' "$name" "$output" >&2; exit 1; }
done
