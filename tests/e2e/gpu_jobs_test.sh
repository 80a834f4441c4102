#!/usr/bin/env bash
# The jobs that bench/gpu has for a GPU, on the CPU and short: each runs, the same job has the same losses twice, and
# one that fails does not end the others.
# shellcheck source=tests/e2e/common.sh
source tests/e2e/common.sh

run_jobs() {
  python3 "$root/bench/gpu/jobs.py" --device=CPU --rubato="$rubato" --make_cifar="$root/tests/e2e/make_cifar" \
    --steps=3 --batch=4 --work="$work/jobs" >"$work/out" 2>"$work/err"
}
line() { grep -q "$1" "$work/out" || fail "no line with '$1' in: $(cat "$work/out" "$work/err")"; }

run_jobs || fail "jobs.py failed: $(cat "$work/err")"
line '100 steps in FP32", .*"difference": 0.0,'
line 'resnet20 sync with one server, FP32, CPU", "batch": 4, "examples_per_s": [1-9].*"computes_on": "cpu'
# The test has no MNIST.
grep -q 'no data/mnist/train-images-idx3-ubyte' "$work/err" ||
  fail "it does not say what it left out: $(cat "$work/err")"
# What is kept has the whole run's rate.
rate="$(grep '"end":{' "$work/jobs/busy/metrics.jsonl" | grep -o '"examples_per_second":[0-9.]*' | cut -d: -f2)"
# The two writers of JSON may round the last digit differently.
line "resnet20 sync with one server, .*\"examples_per_s\": ${rate:0:12}"

python3 -B - "$root/bench/gpu" 2>"$work/err" <<'PYTHON' || fail "a missing nvidia-smi ends it: $(cat "$work/err")"
import os, sys, threading
sys.path.insert(0, sys.argv[1])
import jobs
os.environ["PATH"] = ""
jobs.sample_gpu([], threading.Event())
PYTHON
grep -q 'how busy the GPU is cannot be asked: .*nvidia-smi' "$work/err" || fail "it says: $(cat "$work/err")"

# MNIST's files are there, and are none.
mkdir -p "$work/elsewhere/data/mnist"
cd "$work/elsewhere"
ln -s "$root/configs" .
for name in train-images-idx3 train-labels-idx1 t10k-images-idx3 t10k-labels-idx1; do
  printf no >"data/mnist/$name-ubyte"
done
if run_jobs; then fail "jobs.py did not fail with broken data"; fi
grep -q 'FAILED: every mode: JobFailed: rubato compare .*: exit' "$work/err" || fail "no reason in: $(cat "$work/err")"
grep -q 'jobs.py: 5 failed: every mode; configs/mnist_cnn.textproto, 10 steps; ' "$work/err" ||
  fail "no list of failures in: $(cat "$work/err")"
line 'mnist_cnn async, FP32, CPU", "ok": false, '
line 'configs/teacher_mlp.textproto, 10 steps in FP32", '
line 'resnet20 sync with one server, FP32, CPU"'
