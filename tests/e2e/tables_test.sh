#!/usr/bin/env bash
# A job with rows of a table, some of which are removed: the same rows and weights, bit by bit, for any number of servers
# and when all of it is killed and goes on; every mode with its audit; a table that is full ends the job with its name.
# shellcheck source=tests/e2e/common.sh
source tests/e2e/common.sh

# clicks DIRECTORY ARGUMENTS...
clicks() {
  local directory="$1"
  shift
  timeout $((120 * timeout_factor)) "$rubato" train "$root/configs/clicks_dlrm.textproto" --binaries "$root" \
    --run_directory="$directory" --set data.clicks.test_examples=2000 "$@" >"$directory.out" 2>&1
}

# Not every key has a row, and not for ever, and weights, gradients and rows have 16 bits.
static=(--set data.dispatch=STATIC --set cluster.evaluators=0 --set checkpoint.every_steps=15
  --set data.clicks.train_examples=50000 --set 'model.tables[0].admit_after=2' --set 'model.tables[0].expire_after_steps=40'
  --set 'model.tables[0].most_rows=2560' --set 'model.tables[0].precision=BF16' --set 'model.tables[0].push=BF16'
  --set 'model.tables[0].pull=BF16')

# digest RUN: of weights and rows.
digest() {
  "$rubato" export "$1" --output="$1.safetensors" >/dev/null
  sha256sum <"$1.safetensors"
}

for servers in 1 3; do
  clicks "$work/static$servers" "${static[@]}" --set "cluster.servers=$servers" || {
    cat "$work/static$servers.out" >&2
    fail "$servers servers did not train"
  }
  audit_holds "$work/static$servers"
done
expected="$(digest "$work/static1")"
say "identical rows: $expected"
[[ "$(digest "$work/static3")" == "$expected" ]] || fail "the rows of 3 servers differ from those of one"
rows="$(grep -ao '"keys.keys":{"dtype":"U64","shape":\[[0-9]*\]' "$work/static1.safetensors" | grep -o '[0-9]*\]' | tr -d ']')"
say "$rows rows"
((${rows:?the export has no keys} > 1000 && rows <= 2560)) || fail "$rows rows, of 2560 at most"

# All of it is killed in the middle, and goes on with another number of servers.
killed="$work/killed"
setsid "$rubato" train "$root/configs/clicks_dlrm.textproto" --binaries "$root" --run_directory="$killed" "${static[@]}" \
  --set cluster.servers=2 --set data.clicks.test_examples=2000 --slow=worker:0:sleep=30ms >"$killed.out" 2>&1 &
job=$!
# That of step 0 has no rows.
trained() { grep -a '"checkpoint"' "$killed/metrics.jsonl" | grep -qav '"step":0,'; }
wait_for 60 "a checkpoint" trained
kill -9 -- "-$job"
wait "$job" || true
clicks "$killed" "${static[@]}" --set cluster.servers=3 --resume || {
  cat "$killed.out" >&2
  fail "the killed job did not go on"
}
[[ "$(digest "$killed")" == "$expected" ]] || fail "the rows of the job that was killed differ"

for mode in SSP ASYNC; do
  clicks "$work/$mode" --set "consistency.mode=$mode" --set consistency.staleness_bound="$([[ $mode == SSP ]] && echo 2)" \
    --set data.clicks.train_examples=120000 || {
    cat "$work/$mode.out" >&2
    fail "$mode did not train"
  }
  audit_holds "$work/$mode"
  trained_once "$work/$mode" 120000
  auc="$(last_value "$work/$mode" auc)"
  say "$mode: AUC $auc"
  awk -v auc="$auc" 'BEGIN { exit !(auc > 0.65) }' || fail "$mode: an AUC of $auc"
done

if clicks "$work/full" --set data.clicks.keys=1000000 --set 'model.tables[0].memory_bytes=1048576'; then
  fail "a table that is full ended well"
fi
grep -q "memory_bytes of model.tables is 1048576, for 2 partitions: table 'keys': .* new rows" "$work/full.out" || {
  cat "$work/full.out" >&2
  fail "the full table is not named"
}
