#!/usr/bin/env bash
# A running job goes to async and back to sync: no restart, no update lost, and a stall of at most one step of the
# slowest worker and 50 ms, which the run record carries.
# shellcheck source=tests/e2e/common.sh
source tests/e2e/common.sh

directory="$work/run"
# status_says PATTERN: a line of the job's status is like that.
status_says() { "$rubato" status "$directory" | finds -E "$1"; }
# trains_on: fifty more steps than now, in the mode that holds.
trains_on() {
  local step
  step="$(last_value "$directory" step)"
  wait_for 60 "fifty more steps after step $step" has_step "$directory" $((step + 50))
}

train "$directory" --set consistency.mode=SYNC --set cluster.update_log=true --set training.epochs=16 \
  --slow=worker:1:x3 &
job=$!
wait_for 60 "training begins" has_step "$directory" 50
"$rubato" switch "$directory" --to=async --momentum=0.5
wait_for 60 "plan 2 is ASYNC" has_line "$directory" '"plan":{' '"generation":2,' '"mode":"ASYNC"' '"momentum":0.5'
wait_for 20 "status says ASYNC" status_says '^Plan 2: ASYNC from step [0-9]+ on; .*; momentum 0.5'
trains_on
"$rubato" switch "$directory" --to=sync
wait_for 60 "plan 3 is SYNC" has_line "$directory" '"plan":{' '"generation":3,' '"mode":"SYNC"'
wait_for 20 "status says SYNC" status_says '^Plan 3: SYNC from step [0-9]+ on'
wait "$job" || {
  cat "$directory.out" >&2
  fail "the job failed"
}
audit_holds "$directory"
for generation in 2 3; do
  line="$(grep '"plan":{' "$directory/metrics.jsonl" | grep "\"generation\":$generation,")" ||
    fail "the run record has no line for plan $generation"
  say "$line"
  stall="$(grep -o '"stall_seconds":[-0-9.e]*' <<<"$line" | cut -d: -f2)"
  slowest="$(grep -o '"slowest_step_seconds":[-0-9.e]*' <<<"$line" | cut -d: -f2)"
  # Ten times the bound: this machine may be doing anything meanwhile. The bound itself is shown by bench/RESULTS.md.
  awk -v stall="$stall" -v slowest="$slowest" 'BEGIN { exit !(stall >= 0 && stall <= 10 * (slowest + 0.05)) }' ||
    fail "plan $generation: a stall of $stall s, with a slowest step of $slowest s"
done
say passed
