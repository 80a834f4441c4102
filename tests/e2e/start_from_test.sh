#!/usr/bin/env bash
# A job goes on from another's last checkpoint, on other servers and in other chunks: with its weights, its optimizer's
# state, and what its workers' codecs had kept back; and from one that was stopped. A checkpoint of another model or
# optimizer is refused by name.
# shellcheck source=tests/e2e/common.sh
source tests/e2e/common.sh

packed=(--set compression.push.codec=TOP_K --set compression.push.fraction=0.05)

train "$work/first" "${packed[@]}" || {
  cat "$work/first.out" >&2
  fail "the first job did not train"
}
checkpoint="$work/first/checkpoints/final"
for worker in 0 1; do
  [[ -f "$checkpoint/worker-$worker.manifest" ]] || fail "worker $worker kept nothing of its codecs"
done

train "$work/second" "${packed[@]}" --set "training.start_from=$checkpoint" --set training.epochs=1 \
  --set cluster.servers=3 --set cluster.chunk_bytes=8192 || {
  cat "$work/second.out" >&2
  fail "the second job did not train"
}
audit_holds "$work/second"
"$rubato" export "$work/first" --output="$work/first.safetensors" >/dev/null
"$rubato" export "$work/second" --at-step=0 --output="$work/second.safetensors" >/dev/null
tests/e2e/compare_weights "$work/first.safetensors" "$work/second.safetensors" 0
grep -rq "goes on with what its codecs had kept back" "$work/second" || fail "the residuals were not read"

# A job that is stopped while it trains keeps its weights, and another goes on with them.
train "$work/long" --set training.epochs=100000 &
wait_for 60 "training begins" has_step "$work/long" 200
"$rubato" stop "$work/long" --reason="enough for now" >/dev/null || fail "the job cannot be stopped"
if wait $!; then fail "a stopped job has ended well"; fi
grep -q '"end":{.*"ok":false.*enough for now' "$work/long/metrics.jsonl" || fail "the run record does not say why"
train "$work/after" --set "training.start_from=$work/long/checkpoints/stopped" --set training.epochs=1 || {
  cat "$work/after.out" >&2
  fail "the job after the stop did not train"
}
audit_holds "$work/after"

# refused WHY FIELD=VALUE...
refused() {
  local why="$1" settings=()
  shift
  for field in "$@"; do settings+=(--set "$field"); done
  if train "$work/refused" --set "training.start_from=$checkpoint" "${settings[@]}"; then
    fail "started although: $why"
  fi
  grep -rqF "$why" "$work"/refused* || {
    cat "$work/refused.out" >&2
    fail "not said: $why"
  }
  rm -rf "$work"/refused*
}
refused "1 optimizer slots, the job's optimizer.algorithm has 2" optimizer.algorithm=ADAM optimizer.momentum= optimizer.learning_rate=0.001
refused "/weight: shape [128, " "model.layers[0].linear.units=64"
refused "holds no server-<i>.manifest" "training.start_from=$work"
say passed
