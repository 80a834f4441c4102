#!/usr/bin/env bash
# Who belongs to a job: the token of one machine, certificates on a network, and strangers to both.
# shellcheck source=tests/e2e/common.sh
source tests/e2e/common.sh
# shellcheck source=tests/e2e/tasks.sh
source tests/e2e/tasks.sh

teacher="$root/configs/teacher_mlp.textproto"

# refuses STATUS PATTERN COMMAND...: it exits so, and says so.
refuses() {
  local expected="$1" pattern="$2" status=0
  shift 2
  timeout $((60 * timeout_factor)) "$@" >"$work/refused" 2>&1 || status=$?
  ((status == expected)) || fail "$*: exit status $status instead of $expected: $(<"$work/refused")"
  grep -q -- "$pattern" "$work/refused" || fail "$* does not say '$pattern': $(<"$work/refused")"
}

# start_job NAME ARGUMENTS...: two servers, two workers and an evaluator, which train until they are stopped.
start_job() {
  local run="$work/$1" job
  shift
  job=(--config="$teacher" --set "run_directory=$run" --set training.epochs=100000 "$@")
  rm -f "$work/address"
  start coordinator coordinator "${job[@]}" --listen="$listen" --port_file="$work/address"
  wait_for 20 "the coordinator listens" test -s "$work/address"
  # The name in there is this machine's, which need not be known here.
  address="127.0.0.1:$(sed 's/.*://' "$work/address")"
  local index
  for index in 0 1; do
    start "server-$index" server "${job[@]}" --listen="$listen" --task_index="$index" --coordinator="$address"
    start "worker-$index" worker "${job[@]}" --task_index="$index" --coordinator="$address"
  done
  start evaluator worker "${job[@]}" --task_index=0 --role=evaluator --coordinator="$address"
  wait_for 60 "training begins" has_step "$run" 20
}

# stop_job CREDENTIALS: asked by who has them.
stop_job() {
  local name
  "$rubato" stop "$address" --credentials="$1" >/dev/null || fail "the job cannot be stopped"
  ends coordinator 1 30
  for name in server-0 server-1 worker-0 worker-1 evaluator; do ends "$name" 0 30; done
}

say "on one machine: whoever has the token"
listen=127.0.0.1:0
start_job token --metrics_listen=0.0.0.0:0
[[ "$(stat --format=%a "$work/token/credentials/job.token")" == 600 ]] || fail "others may read the token"
refuses 1 'the call has no job token' "$rubato" status "$address"
refuses 1 'the call has no job token' "$rubato" stop "$address"
mkdir -m 700 "$work/other"
(umask 077 && head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \n' >"$work/other/job.token")
refuses 1 "the call's token is not this job's" "$rubato" stop "$address" --credentials="$work/other"
refuses 1 "does not take this task for server 0: the call's token is not this job's" "$root/server/server" \
  --config="$teacher" --set "run_directory=$work/token" --set "security.credentials=$work/other" --task_index=0 \
  --coordinator="$address"
"$rubato" status "$address" --credentials="$work/token/credentials" | finds '^ *server 0' || fail "no status"

say "metrics on a network: whoever has their token"
metrics="$(sed -nE 's#.*shows metrics at http://[^/]*:([0-9]+)/metrics .*#\1#p' "$work/coordinator.log")"
# scrape PATH [TOKEN]: the whole answer.
scrape() {
  exec 9<>"/dev/tcp/127.0.0.1/$metrics"
  printf 'GET %s HTTP/1.1\r\n%s\r\n' "$1" "${2:+Authorization: Bearer $2$'\r\n'}" >&9
  cat <&9
  exec 9>&-
}
for path in /metrics /targets; do
  scrape "$path" | finds '^HTTP/1.1 401 ' || fail "a stranger reads $path"
  scrape "$path" "$(<"$work/token/credentials/job.token")" | finds '^HTTP/1.1 401 ' || fail "another token reads $path"
  scrape "$path" "$(<"$work/token/credentials/metrics.token")" | finds rubato_job || fail "$path is not read with the token"
done
scrape /healthz | finds '^serving' || fail "a probe needs a token"
stop_job "$work/token/credentials"

say "a network is listened on with certificates, or where the config says insecure"
for program in coordinator "server --task_index=0 --coordinator=127.0.0.1:1"; do
  # shellcheck disable=SC2086  # The flags.
  refuses 2 '^--listen: 0.0.0.0:0 is not a loopback address' "$root/${program%% *}/"$program --config="$teacher" \
    --set "run_directory=$work/none" --listen=0.0.0.0:0
done

say "certificates"
"$rubato" credentials "$teacher" --set "run_directory=$work/tls" >"$work/made"
grep -q 'tls/credentials: 7 certificates of job teacher_mlp, valid until' "$work/made" || fail "$(<"$work/made")"
[[ "$(stat --format=%a "$work/tls/credentials/metrics.token")" == 600 ]] || fail "there is no token for metrics"
listen=0.0.0.0:0
start_job tls
refuses 1 "$address" "$rubato" status "$address"
refuses 1 "$address" "$rubato" stop "$address" --credentials="$work/other"
"$rubato" credentials "$teacher" --set "run_directory=$work/stranger" >/dev/null
refuses 1 "$address" "$rubato" stop "$address" --credentials="$work/stranger/credentials"
cp -r "$work/tls/credentials" "$work/swapped"
for end in crt key; do cp "$work/tls/credentials/worker-1.$end" "$work/swapped/worker-0.$end"; done
refuses 2 'is the certificate of worker 1, not of worker 0' "$root/worker/worker" --config="$teacher" \
  --set "run_directory=$work/tls" --set "security.credentials=$work/swapped" --task_index=0 --coordinator="$address"
before="$(last_value "$work/tls" step)"
grows() { (($(last_value "$work/tls" step) > before)); }
wait_for 30 "the job goes on" grows

say "and new ones without a restart"
"$rubato" credentials "$work/tls" | finds 'by the authority that was there' || fail "nothing was renewed"
stop_job "$work/tls/credentials"
grep -q '"error":"stopped by the operator' "$work/tls/metrics.jsonl" || fail "the job was not stopped by its operator"
say passed
