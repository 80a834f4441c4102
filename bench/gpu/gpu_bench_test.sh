#!/usr/bin/env bash
# Every case runs once, on the CPU and with small tensors.
set -euo pipefail
output="$("$1" --device=cpu --scale=1 --rounds=1 --round-seconds=0 --warm-up-seconds=0)"
for name in "copy on the device" "product 64" "linear, gradient" "layer norm gradient" "encode, one_bit" \
  "convolution, weight gradient" "group norm gradient" "max pool, gradient" "embedding, gradient" \
  "causal attention over 64, gradient"; do
  grep -q "\"name\":\"$name\".*floor_to_time" <<<"$output" ||
    { printf 'no line for "%s" in:\n%s\n' "$name" "$output" >&2; exit 1; }
done
