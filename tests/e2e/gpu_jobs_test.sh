#!/usr/bin/env bash
# The jobs that bench/gpu has for a card, on the CPU and short: each runs, and the same job has the same losses twice.
# shellcheck source=tests/e2e/common.sh
source tests/e2e/common.sh

python3 bench/gpu/jobs.py --device=CPU --rubato="$rubato" --make_cifar=tests/e2e/make_cifar --steps=3 --batch=4 \
  >"$work/out" 2>"$work/err" || fail "jobs.py failed: $(cat "$work/err")"
for line in '100 steps in FP32", .*"difference": 0.0,' 'resnet20 sync with one server, FP32, CPU", "batch": 4'; do
  grep -q "$line" "$work/out" || fail "no line with '$line' in: $(cat "$work/out")"
done
# The test has no MNIST.
grep -q 'no data/mnist/train-images-idx3-ubyte' "$work/err" || fail "it does not say what it left out: $(cat "$work/err")"
