#!/usr/bin/env bash
# Policies on real processes: one worker of three is slow. QUORUM and STRAGGLER stop waiting for it, SYNC_THEN_ASYNC leaves
# sync, BALANCE gives it less to do if it computes slowly, each with its reason in the run record, and the audit holds.
# shellcheck source=tests/e2e/common.sh
source tests/e2e/common.sh

# follows POLICY PART... -- ARGUMENTS...: a job with that policy gets to a plan whose line in the run record has these parts.
follows() {
  local policy="$1" parts=()
  shift
  while [[ "$1" != "--" ]]; do
    parts+=("$1")
    shift
  done
  shift
  local directory="$work/$policy"
  train "$directory" --set cluster.workers=3 --set training.epochs=3 --set "consistency.policy=$policy" \
    --set consistency.policy_pace.window_steps=10 --set consistency.policy_pace.window_seconds=0.5 \
    --slow=worker:0:sleep=10ms --slow=worker:1:sleep=10ms --slow=worker:2:sleep=80ms "$@" || {
    cat "$directory.out" >&2
    fail "$policy: the job failed"
  }
  has_line "$directory" '"plan":{' '"generation":2,' "${parts[@]}" || {
    grep '"plan":{' "$directory/metrics.jsonl" >&2
    fail "$policy: plan 2 does not have ${parts[*]}"
  }
  audit_holds "$directory"
  grep '"plan":{' "$directory/metrics.jsonl"
}

follows QUORUM '"mode":"SYNC"' '"quorum":2,' '"reason":"quorum: with 2 of 3 contributions a step takes ' \
  -- --set consistency.quorum_policy.share_min=0.6
follows SYNC_THEN_ASYNC '"mode":"ASYNC"' '"reason":"sync_then_async: ' -- --set consistency.sync_then_async.share=0.01
follows STRAGGLER '"mode":"SYNC"' '"quorum":2,' '"reason":"straggler: without waiting for worker 2 ' --
# A quorum drops what comes late; here nothing is.
trained_once "$work/SYNC_THEN_ASYNC" 120000

# BALANCE needs steps that take as long as their examples: one worker computes an eighth as fast as the others.
directory="$work/BALANCE"
train "$directory" --set cluster.workers=3 --set training.epochs=100 --set training.max_steps=200 \
  --set training.batch_size=256 --set "model.layers[0].linear.units=256" --set "model.layers[2].linear.units=256" \
  --set consistency.policy=BALANCE --set consistency.policy_pace.window_steps=10 \
  --set consistency.policy_pace.window_seconds=0.2 --set consistency.policy_pace.windows_agreeing=2 \
  --slow=worker:2:x8 || {
  cat "$directory.out" >&2
  fail "BALANCE: the job failed"
}
has_line "$directory" '"plan":{' '"generation":2,' '"batch_sizes":[' '"reason":"balance: with batches of ' || {
  grep '"plan":{' "$directory/metrics.jsonl" >&2
  fail "BALANCE: plan 2 has no batches"
}
audit_holds "$directory"
grep '"plan":{' "$directory/metrics.jsonl"
say passed
