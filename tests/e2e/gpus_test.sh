#!/usr/bin/env bash
# A local job on a machine with several GPUs: its tasks are assigned them round-robin, unless the config says which GPU.
# `bazel test --config=emulated_cuda //tests/e2e:gpus_test` has two GPUs on any machine.
# shellcheck source=tests/e2e/common.sh
source tests/e2e/common.sh

gpus="$("$root/worker/worker" --count_gpus)"
((gpus >= 2)) || skip "$gpus GPUs, two are needed"

# job NAME ARGUMENTS...: a short job of two workers and an evaluator.
job() {
  local name="$1"
  shift
  train "$work/$name" --set training.device=CUDA --set cluster.workers=2 --set training.max_steps=2 "$@" ||
    fail "$name ended with $?: $(cat "$work/$name.out")"
}

# expect_gpu NAME TASK INDEX: what the task's log says that it computes on.
expect_gpu() {
  grep -q "computes on cuda:$3 " "$work/$1/logs/$2.log" || fail "$1: $2 is not on GPU $3: $(cat "$work/$1/logs/$2.log")"
}

say "each task takes the next GPU"
job assigned
expect_gpu assigned worker-0 0
expect_gpu assigned worker-1 1
expect_gpu assigned evaluator-0 $((2 % gpus))

say "the GPU that the config names is everybody's"
job named --set training.device_index=1
expect_gpu named worker-0 1
expect_gpu named worker-1 1
expect_gpu named evaluator-0 1
say passed
