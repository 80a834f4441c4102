#!/usr/bin/env bash
# Policies on real processes: one worker of three is slow. QUORUM stops waiting for it, SYNC_THEN_ASYNC leaves sync, each
# with its reason in the run record, and the audit holds.
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
# A quorum drops what comes late; here nothing is.
trained_once "$work/SYNC_THEN_ASYNC" 120000
say passed
