#!/usr/bin/env bash
# `rubato run` and `rubato serve` with commands that fail, are killed, do not take part or are interrupted: what is said, the
# exit status, and that nothing is left; and a whole job of clients.
# shellcheck source=tests/e2e/common.sh
source tests/e2e/common.sh
# shellcheck source=tests/e2e/pages.sh
source tests/e2e/pages.sh

# run NAME EXIT_STATUS ARGUMENTS...: a `rubato run` whose output is in NAME.out, and which has to end with that status.
run() {
  local name="$1" expected="$2" status=0
  shift 2
  timeout $((60 * timeout_factor)) "$rubato" run --binaries "$root" --run_directory="$work/$name" "$@" \
    >"$work/$name.out" 2>&1 </dev/null || status=$?
  ((status == expected)) || {
    cat "$work/$name.out" >&2
    fail "$name: exit status $status instead of $expected"
  }
}

# says NAME PATTERN: the output has such a line.
says() {
  grep -qE -- "$2" "$work/$1.out" || {
    cat "$work/$1.out" >&2
    fail "$1: does not say \"$2\""
  }
}

nothing_is_left() {
  ! pgrep -f -- "$work/" >/dev/null || fail "$1: processes are left: $(pgrep -af -- "$work/")"
}

say "one fails"
# shellcheck disable=SC2016  # For the workers' shell.
run fails 1 -n 2 --servers=2 -- sh -c '
  echo "rank $RUBATO_RANK of $RUBATO_SIZE, here $RUBATO_LOCAL_RANK of $RUBATO_LOCAL_SIZE, at $RUBATO_COORDINATOR"
  [ "$RUBATO_RANK" = 0 ] || { echo "no such data" >&2; exit 3; }
  exec sleep 600'
says fails '^\[0\] rank 0 of 2, here 0 of 2, at 127\.0\.0\.1:[0-9]+$'
says fails '^\[1\] no such data$'
says fails '^\[job\] worker 1 ended with exit status 3'
says fails '^rubato run: worker 1 ended before the job could begin'
says fails '^    no such data$'
grep -qx 'no such data' "$work/fails/logs/worker-1.log" || fail "the log of worker 1 does not have its last words"
nothing_is_left fails

say "one does not take part"
run idle 1 -n 2 -- true
says idle 'ended before the job could begin; its program has not taken part in it'
nothing_is_left idle

say "one is killed, and started again with its rank"
# shellcheck disable=SC2016
run killed 1 -n 2 -- sh -c '
  [ "$RUBATO_RANK" = 1 ] || exec sleep 600
  [ -e "$1" ] || { : >"$1"; kill -9 $$; }
  echo "again"
  exit 4' sh "$work/mark"
says killed '^\[job\] worker 1 was killed by signal 9; it is started again'
says killed '^\[1\] again$'
says killed '^rubato run: worker 1 ended before the job could begin'
nothing_is_left killed

say "what cannot be is said with flag, value and what is allowed"
run nothing 2 -n 2
says nothing 'COMMAND: no command is given; allowed: '
run program 2 -n 2 -- no-such-program
says program 'COMMAND: no program "no-such-program" in the PATH'
run mode 2 -n 2 --mode=fast -- true
says mode '^rubato run: --mode: value "fast"; allowed: sync, async, or ssp:N'
run workers 2 -n 0 -- true
says workers '^(-n|--workers): .*0 not in range'
run workers 2 -- true
says workers 'cluster\.workers: value 0; allowed: 1 to 1024'
run slow 2 -n 2 --slow=worker:2:x3 -- true
says slow '--slow: value "worker:2:x3": the job has 2 workers, counted from 0'
run model 2 -n 2 '--slow=worker:*:sleep=-3ms' -- true
says model '--slow: value "worker:\*:sleep=-3ms": term "sleep=-3ms"; allowed: sleep=TIME, a time of 0 to 10m'
run config 2 -n 2 --config="$root/configs/teacher_mlp.textproto" -- true
says config '^rubato run: --config: .*teacher_mlp\.textproto has a model, data or an optimizer; allowed: none of them'

say "two clients"
# shellcheck disable=SC2016
run clients 0 -n 2 --servers=2 --mode=ssp:2 --set cluster.update_log=true -- sh -c '
  exec "$0" "$RUBATO_COORDINATOR" "$RUBATO_RANK" "$RUBATO_SIDECAR"' "$root/client/examples/linear_regression"
says clients '^\[0\] worker 0 learned y = 3\.0[0-9]* a'
says clients '^\[1\] worker 1 learned '
says clients '^ssp:2  .* held$'
audit_holds "$work/clients"
nothing_is_left clients

say "a straggler, with metrics and histograms"
# shellcheck disable=SC2016
"$rubato" run --binaries "$root" --run_directory="$work/straggler" -n 2 --mode=async --slow=worker:1:x3+exp=3ms \
  --metrics_listen=127.0.0.1:0 --set observability.histogram_every_steps=50 -- sh -c '
  exec "$0" "$RUBATO_COORDINATOR" "$RUBATO_RANK" "$RUBATO_SIDECAR"' "$root/client/examples/linear_regression" \
  >"$work/straggler.out" 2>&1 </dev/null &
launcher=$!
worker_page() {
  local pages address
  pages="$(sed -nE 's#.*shows metrics at http://([^/]*)/.*#\1#p' "$work/straggler/logs/coordinator.log")"
  for address in $(page "$pages" /targets | grep -oE '"[0-9.]+:[0-9]+"' | tr -d '"'); do
    page "$address" /metrics | grep -q '^rubato_worker_steps_total{role="worker",index="1"} [1-9]' && return
  done
  return 1
}
wait_for 30 "worker 1 shows metrics" worker_page
status=0
wait "$launcher" || status=$?
((status == 0)) || fail "straggler: exit status $status: $(<"$work/straggler.out")"
# compute_seconds INDEX: of its last progress.
compute_seconds() {
  grep -oE "\"index\":$1,[^}]*\"compute_seconds\":[0-9.e-]+" "$work/straggler/metrics.jsonl" | tail -n 1 | grep -oE '[0-9.e-]+$'
}
awk -v slow="$(compute_seconds 1)" -v fast="$(compute_seconds 0)" 'BEGIN { exit !(slow > 5 * fast) }' ||
  fail "straggler: worker 1 computes for $(compute_seconds 1) s, worker 0 for $(compute_seconds 0) s"
grep -aqr 'weights/weight' "$work/straggler/tensorboard" || fail "straggler: TensorBoard has no histogram of weight"
nothing_is_left straggler

say "interrupted"
"$rubato" run --binaries "$root" --run_directory="$work/interrupted" -n 2 -- sh -c 'echo here; exec sleep 600' \
  >"$work/interrupted.out" 2>&1 &
launcher=$!
wait_for 30 "workers are there" grep -q '^\[1\] here$' "$work/interrupted.out"
kill -INT "$launcher"
status=0
wait "$launcher" || status=$?
((status == 1)) || fail "interrupted: exit status $status"
says interrupted 'stopping the job: stopped by a signal'
nothing_is_left interrupted

say "serve"
mkfifo "$work/input"
"$rubato" serve --binaries "$root" --workers=2 --run_directory="$work/serve" --address_file="$work/address" \
  <"$work/input" >"$work/serve.out" 2>&1 &
launcher=$!
exec {input}>"$work/input"
wait_for 30 "the address is there" test -s "$work/address"
grep -qxE '127\.0\.0\.1:[0-9]+' "$work/address" || fail "an address is expected, not $(<"$work/address")"
"$rubato" status "$(<"$work/address")" --credentials="$work/serve/credentials" >"$work/status.out"
grep -q 'starting' "$work/status.out" || fail "serve: the job does not wait for its workers: $(<"$work/status.out")"
exec {input}>&-
status=0
wait "$launcher" || status=$?
((status == 1)) || fail "serve: exit status $status"
says serve 'stopped by the end of its standard input'
[[ ! -e "$work/address" ]] || fail "serve: the address file is still there"
nothing_is_left serve

say "passed"
