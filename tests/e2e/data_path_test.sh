#!/usr/bin/env bash
# Whole jobs over each transport, with each codec, and with fewer messages: every one reaches its accuracy, its audit holds, and
# encoded gradients take fewer bytes.
# shellcheck source=tests/e2e/common.sh
source tests/e2e/common.sh

# The first number that summary.json of a run has for a key.
value() {
  grep -o "\"$2\": *[-0-9.e+]*" "$1/summary.json" | head -n 1 | cut -d: -f2
}

# job NAME FIELD=VALUE...: its pushed bytes are in `pushed`.
job() {
  local name="$1" settings=() accuracy
  shift
  for field in "$@"; do settings+=(--set "$field"); done
  train "$work/$name" --set cluster.update_log=true "${settings[@]}" || {
    cat "$work/$name.out" >&2
    fail "$name did not train"
  }
  audit_holds "$work/$name"
  accuracy="$(value "$work/$name" final_accuracy)"
  pushed="$(printf '%.0f' "$(value "$work/$name" pushed_bytes)")"
  say "$name: accuracy $accuracy, $pushed bytes pushed"
  awk -v accuracy="$accuracy" 'BEGIN { exit !(accuracy >= 0.85) }' || fail "$name: accuracy $accuracy is under 0.85"
}

job tcp cluster.shared_memory=OFF cluster.connections_per_server=3 evaluation.recall_at=1
all="$pushed"
accuracy="$(value "$work/tcp" final_accuracy)" recall="$(value "$work/tcp" final_recall)"
[[ "$recall" == "$accuracy" ]] || fail "the recall at 1 is $recall, the accuracy $accuracy"
job shared evaluation.recall_at=3
accuracy="$(value "$work/shared" final_accuracy)" recall="$(value "$work/shared" final_recall)"
awk -v accuracy="$accuracy" -v recall="$recall" 'BEGIN { exit !(recall > accuracy && recall <= 1) }' ||
  fail "the recall at 3 is $recall, the accuracy $accuracy"
for codec in BF16 INT8; do
  for path in OFF AUTO; do
    job "$codec-$path" "cluster.shared_memory=$path" "compression.push.codec=$codec" "compression.pull.codec=$codec"
    ((pushed < all * 6 / 10)) || fail "$codec pushed $pushed bytes, gradients that are not encoded are $all"
  done
done
for mode in SYNC ASYNC; do
  job "top-k-$mode" "consistency.mode=$mode" compression.push.codec=TOP_K compression.push.fraction=0.05
  ((pushed < all / 5)) || fail "top-k pushed $pushed bytes, gradients that are not encoded are $all"
  job "one-bit-$mode" "consistency.mode=$mode" compression.push.codec=ONE_BIT cluster.shared_memory=OFF
  ((pushed < all / 10)) || fail "1-bit pushed $pushed bytes, gradients that are not encoded are $all"
  job "local-$mode" "consistency.mode=$mode" consistency.sync_every=4
  ((pushed < all * 3 / 10)) || fail "local SGD pushed $pushed bytes, a push after every batch is $all"
done
say passed
