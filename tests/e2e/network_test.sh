#!/usr/bin/env bash
# Workers behind slow links: no step of sync is quicker than the link's way there and back, and bytes take their time at its
# rate; the weights are those of the same job without links.
# shellcheck source=tests/e2e/common.sh
source tests/e2e/common.sh

# run NAME ARGUMENTS...: 100 steps of sync with the examples dealt out by the plan, so that each run gives the same weights.
run() {
  local directory="$work/$1"
  shift
  train "$directory" --set data.dispatch=STATIC --set training.epochs=0 --set training.max_steps=100 "$@" || {
    cat "$directory.out" >&2
    fail "the job failed"
  }
  "$rubato" export "$directory" --output="$directory.safetensors" >/dev/null
}

# takes NAME SECONDS: that much at least.
takes() {
  local seconds
  seconds="$(last_value "$work/$1" t)"
  say "$1: $seconds s, at least $2 s"
  awk -v seconds="$seconds" -v least="$2" 'BEGIN { exit !(seconds >= least) }' || fail "$1: quicker than its link"
}

run plain
# 100 steps of 20 ms there and 20 ms back.
run latency '--network=worker:*:latency=20ms'
takes latency 4
# Each step has 77 kB of gradients to send: 100 of them take 6 s at 10 mbit/s.
run rate --network=worker:1:rate=10mbit
takes rate 6
for name in latency rate; do
  cmp "$work/plain.safetensors" "$work/$name.safetensors" || fail "$name: other weights than without a link"
done
! train "$work/bad" --network=worker:0:fast || fail "a link was taken that is none"
grep -q -- '--network: value "worker:0:fast"' "$work/bad.out" || fail "the error does not name the flag: $(<"$work/bad.out")"
say passed
