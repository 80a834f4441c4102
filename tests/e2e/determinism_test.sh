#!/usr/bin/env bash
# SYNC with static dispatch: the same weights, bit by bit, on every run and for any number of servers; and two workers
# of batch 32 do what one of batch 64 does.
# shellcheck source=tests/e2e/common.sh
source tests/e2e/common.sh

options=(--set "data.dispatch=STATIC" --set "consistency.mode=SYNC" --set "cluster.evaluators=0"
  --set "evaluation.target_accuracy=" --set "training.epochs=" --set "training.max_steps=200"
  --set "cluster.update_log=true" --set "cluster.chunk_bytes=16384")

run() {
  local name="$1"
  shift
  say "$name: $*"
  train "$work/$name" "${options[@]}" "$@" || {
    cat "$work/$name.out" >&2
    fail "$name did not train"
  }
  audit_holds "$work/$name"
  "$rubato" export "$work/$name" --output="$work/$name.safetensors" >/dev/null
}

run one --set cluster.servers=1
run one_again --set cluster.servers=1
run two --set cluster.servers=2
run three --set cluster.servers=3 --set cluster.partitions_per_server=2
for name in one_again two three; do
  cmp "$work/one.safetensors" "$work/$name.safetensors" || fail "the weights of $name differ from those of one server"
done
say "identical weights: $(sha256sum <"$work/one.safetensors")"

run two_workers --set cluster.workers=2 --set training.batch_size=32
run one_worker --set cluster.workers=1 --set training.batch_size=64
tests/e2e/compare_weights "$work/two_workers.safetensors" "$work/one_worker.safetensors" 1e-4

"$rubato" export "$work/one" --checkpoint=step0 --output="$work/initial.safetensors" >/dev/null
"$rubato" export "$work/three" --checkpoint=step0 --output="$work/initial3.safetensors" >/dev/null
cmp "$work/initial.safetensors" "$work/initial3.safetensors" || fail "the initial weights depend on the servers"
! cmp -s "$work/initial.safetensors" "$work/one.safetensors" || fail "training changed nothing"

say "one report of runs that were made before"
"$rubato" report "$work/one" "other=$work/two" --output="$work/both" >"$work/report.out"
for text in '"mode": "one"' '"mode": "other"' '"baseline": "one"'; do
  grep -qF "$text" "$work/both/summary.json" || fail "the report's summary has no $text"
done
grep -q '"chosen_afterwards":true' "$work/both/report.html" || fail "the page does not know that its runs were chosen"
! "$rubato" report "a=$work/one" "a=$work/two" --output="$work/no" 2>"$work/error" || fail "one seed was taken twice"
grep -q 'have seed' "$work/error" || fail "the error does not name the seed: $(<"$work/error")"
say passed
