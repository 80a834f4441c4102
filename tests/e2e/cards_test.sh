#!/usr/bin/env bash
# A local job on a machine with several cards: its tasks take turns with them, unless the config says which card.
# `bazel test --config=emulated_cuda //tests/e2e:cards_test` has two cards on any machine.
# shellcheck source=tests/e2e/common.sh
source tests/e2e/common.sh

cards="$("$root/worker/worker" --count_cards)"
((cards >= 2)) || skip "$cards cards, two are needed"

# job NAME ARGUMENTS...: a short job of two workers and an evaluator.
job() {
  local name="$1"
  shift
  train "$work/$name" --set training.device=CUDA --set cluster.workers=2 --set training.max_steps=2 "$@" ||
    fail "$name ended with $?: $(cat "$work/$name.out")"
}

# expect_card NAME TASK INDEX: what the task's log says that it computes on.
expect_card() {
  grep -q "computes on cuda:$3 " "$work/$1/logs/$2.log" || fail "$1: $2 is not on card $3: $(cat "$work/$1/logs/$2.log")"
}

say "each task takes the next card"
job turns
expect_card turns worker-0 0
expect_card turns worker-1 1
expect_card turns evaluator-0 $((2 % cards))

say "the card that the config names is everybody's"
job named --set training.device_index=1
expect_card named worker-0 1
expect_card named worker-1 1
expect_card named evaluator-0 1
say passed
