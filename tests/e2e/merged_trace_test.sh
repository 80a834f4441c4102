#!/usr/bin/env bash
# One timeline of a job with 2 servers and 3 workers: of a running one, on demand, and of a finished one that recorded
# some steps. Every push is sent before it is applied. A job that does not train and recorded nothing is told so.
# shellcheck source=tests/e2e/common.sh
source tests/e2e/common.sh

tasks=(--set cluster.servers=2 --set cluster.workers=3 --set consistency.mode=SYNC --set cluster.lease_seconds=20)

train "$work/live" "${tasks[@]}" --set training.epochs=1000 &
job=$!
wait_for 60 "training begins" has_step "$work/live" 20
"$rubato" trace "$work/live" --seconds=1 | tee "$work/live.txt"
grep -q "Recording 5 tasks for 1 s" "$work/live.txt" || fail "not all tasks were told"
grep -q " 0 of them applied before they were sent" "$work/live.txt" || fail "an arrow goes backward"
tests/e2e/check_merged_trace "$work"/live/traces/*/merged.json 2 3
# Once more, and elsewhere.
"$rubato" trace "$work/live" --seconds=0.2 --output="$work/again.json" >/dev/null
tests/e2e/check_merged_trace "$work/again.json" 2 3
wait_for 60 "the job is stopped" "$rubato" stop "$work/live"
wait "$job" || true

train "$work/steps" "${tasks[@]}" --set training.trace_steps=10 --set training.trace_after_steps=5 || {
  cat "$work/steps.out" >&2
  fail "the job did not train"
}
"$rubato" trace "$work/steps"
tests/e2e/check_merged_trace "$work/steps/traces/merged.json" 2 3

if "$rubato" trace "$work" 2>"$work/none.txt"; then fail "a directory without traces was merged"; fi
grep -q "was not recorded" "$work/none.txt" || fail "not said that nothing was recorded"
say passed
