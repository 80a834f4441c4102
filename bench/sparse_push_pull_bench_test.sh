#!/usr/bin/env bash
# Every case runs once on a small table, and all subjects bring the right rows; the figures mean nothing.
set -euo pipefail
subjects=("rubato" "rubato, shared memory" "grpc stream" "grpc stream, prefetched")
if command -v redis-server >/dev/null; then subjects+=("redis"); fi
output="$("$1" --rows=2000 --batch=100 --batches=4 --rounds=1 --seconds=0.01)"
for case in "lookup, uniform" "push and lookup, uniform" "lookup, Zipf" "push and lookup, Zipf"; do
  for subject in "${subjects[@]}"; do
    grep -q "\"name\":\"$case: $subject\".*rows_per_s.*payload_bytes_per_row" <<<"$output" ||
      { printf 'no line for "%s: %s" in:\n%s\n' "$case" "$subject" "$output" >&2; exit 1; }
  done
  grep -q "\"name\":\"$case\".*rubato/grpc stream.*rubato, shared memory/grpc stream" <<<"$output" ||
    { printf 'no ratios for "%s" in:\n%s\n' "$case" "$output" >&2; exit 1; }
done
if "$1" --rows=0 >/dev/null 2>&1; then echo "--rows=0 was taken" >&2; exit 1; fi
