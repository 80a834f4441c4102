#!/usr/bin/env bash
# Policies on real processes: one worker of three is slow. QUORUM and STRAGGLER stop waiting for it, SYNC_THEN_ASYNC leaves
# sync, BALANCE gives it less to do if it computes slowly; over a slow network POST_LOCAL changes how
# often workers exchange, and ADACOMM if their data differ. Each has its reason in the run record, and the audit holds.
# shellcheck source=tests/e2e/common.sh
source tests/e2e/common.sh

slow=(--slow=worker:0:sleep=10ms --slow=worker:1:sleep=10ms --slow=worker:2:sleep=80ms)

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
    "${slow[@]}" "$@" || {
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
# Each message waits as on the way to another site.
slow=(--slow='worker:*:sleep=5ms' --network='worker:*:latency=20ms')
follows POST_LOCAL '"mode":"SYNC"' '"sync_every":16' '"reason":"post_local: ' -- --set training.epochs=1
# Three kinds of examples, one after the other, in as many shards: each worker has a kind of its own.
awk 'BEGIN {
  srand(1)
  for (kind = 0; kind < 3; ++kind) for (row = 0; row < 12000; ++row) {
    for (column = 0; column < 16; ++column) printf "%.3f,", (column % 3 == kind) + 2 * rand() - 1
    print kind
  }
}' >"$work/kinds.csv"
follows ADACOMM '"mode":"SYNC"' '"sync_every":' '"reason":"adacomm: the training loss is ' -- --set training.epochs=2 \
  --set consistency.sync_every=16 --set consistency.adacomm.interval_windows=1 --set data.csv.label_column=16 \
  --set "data.csv.train_path=$work/kinds.csv" --set "data.csv.test_path=$work/kinds.csv" \
  --set data.no_shuffle=true --set data.shard_examples=12000
grep -m1 -oE '"lasting_share":(0[.][5-9]|1)' "$work/ADACOMM/metrics.jsonl" ||
  fail "ADACOMM: the workers' differences do not last"
# A quorum drops what comes late; here nothing is.
trained_once "$work/SYNC_THEN_ASYNC" 120000
trained_once "$work/POST_LOCAL" 40000
trained_once "$work/ADACOMM" 72000

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
