#!/usr/bin/env bash
# gRPC's health service and reflection on the ports of a running job's tasks, and logs as JSON lines.
# shellcheck source=tests/e2e/common.sh
source tests/e2e/common.sh
# shellcheck source=tests/e2e/tasks.sh
source tests/e2e/tasks.sh
# shellcheck source=tests/e2e/pages.sh
source tests/e2e/pages.sh

probe() { tests/e2e/grpc_probe "$@"; }
# port NAME PATTERN: the port that a task's log says after the pattern.
port() { sed -nE "s/.*$2 ([0-9]+).*/127.0.0.1:\1/p" "$work/$1.log"; }

# Whoever asks for what a port serves has no credential here.
start_job --set observability.log_format=JSON --set security.reflection=true --set security.insecure=true
server="$(port server-0 'listens on port')"
for at in "$address" "$server" "$(port worker-0 'healthy on port')" "$(port evaluator 'healthy on port')"; do
  [[ "$(probe health "$at")" == SERVING ]] || fail "$at does not serve"
  probe services "$at" | finds grpc.health.v1.Health || fail "$at does not list its services"
done
[[ "$(probe health "$address" rubato.v1.Coordinator)" == SERVING ]] || fail "the coordinator's service does not serve"
[[ "$(probe health "$server" rubato.v1.ParameterServer)" == SERVING ]] || fail "the server's service does not serve"
probe services "$address" | finds rubato.v1.Coordinator || fail "the coordinator's service is not listed"
probe services "$server" | finds rubato.v1.ParameterServer || fail "the server's service is not listed"
probe symbol "$server" rubato.v1.ParameterServer | finds 'proto/parameter_server.proto' ||
  fail "reflection does not describe the server's service"
probe symbol "$address" rubato.v1.Coordinator | finds 'proto/coordinator.proto' ||
  fail "reflection does not describe the coordinator's service"

say "a worker that cannot reach its coordinator is not ready"
start lonely worker --config="$root/configs/teacher_mlp.textproto" --task_index=0 --coordinator=127.0.0.1:1 \
  --set "run_directory=$work/lonely" \
  --health_listen=127.0.0.1:0
wait_for 20 "it listens" grep -q 'healthy on port' "$work/lonely.log"
[[ "$(probe health "$(port lonely 'healthy on port')")" == NOT_SERVING ]] || fail "it serves"
stop lonely
unset 'process[lonely]'

say "logs are JSON lines with who, where and what"
stop_job
for name in coordinator server-0 worker-0 evaluator; do
  [[ -s "$work/$name.log" ]] || fail "$name has no log"
  if grep -vE '^\{"time":"[^"]*","severity":"(info|warning|error)","role":"[a-z]+"(,"index":[0-9]+)?,"incarnation":"[0-9a-f]{16}",("generation":[0-9]+,"step":-?[0-9]+,)?"message":".*"\}$' \
    "$work/$name.log"; then fail "$name logs something else"; fi
done
grep -q '"generation":[1-9][0-9]*,"step":[0-9]*,"message"' "$work/worker-0.log" || fail "worker 0 does not say where it is"
say passed
