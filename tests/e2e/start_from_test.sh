#!/usr/bin/env bash
# A job goes on from another's last checkpoint, on other servers and in other chunks: with its weights, its optimizer's
# state, and its workers' error-feedback residuals; and from one that was stopped, or from its exported weights. A
# checkpoint of another model or optimizer is refused by name, and so are all tensors of a file that do not fit.
# shellcheck source=tests/e2e/common.sh
source tests/e2e/common.sh

encoded=(--set compression.push.codec=TOP_K --set compression.push.fraction=0.05)

train "$work/first" "${encoded[@]}" || {
  cat "$work/first.out" >&2
  fail "the first job did not train"
}
checkpoint="$work/first/checkpoints/final"
for worker in 0 1; do
  [[ -f "$checkpoint/worker-$worker.manifest" ]] || fail "worker $worker kept nothing of its codecs"
done

train "$work/second" "${encoded[@]}" --set "training.start_from=$checkpoint" --set training.epochs=1 \
  --set cluster.servers=3 --set cluster.chunk_bytes=8192 || {
  cat "$work/second.out" >&2
  fail "the second job did not train"
}
audit_holds "$work/second"
"$rubato" export "$work/first" --output="$work/first.safetensors" >/dev/null
"$rubato" export "$work/second" --checkpoint=step0 --output="$work/second.safetensors" >/dev/null
tests/e2e/compare_weights "$work/first.safetensors" "$work/second.safetensors" 0
grep -rq "goes on with the error-feedback residuals" "$work/second" || fail "the residuals were not read"

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

# Its weights are exported, and a job of another optimizer, on other servers, begins with the file.
"$rubato" checkpoint "$work/long" | finds '^Checkpoint stopped of job' || fail "checkpoint stopped is not shown"
"$rubato" export "$work/long" --output="$work/stopped.safetensors" | finds 'checkpoint stopped' ||
  fail "the weights of a stopped job are not exported"
train "$work/from_file" --set "training.start_from=$work/stopped.safetensors" --set training.epochs=1 \
  --set cluster.servers=3 --set optimizer.algorithm=ADAM --set optimizer.momentum= --set optimizer.learning_rate=0.001 || {
  cat "$work/from_file.out" >&2
  fail "the job did not begin with a safetensors file"
}
audit_holds "$work/from_file"
"$rubato" export "$work/from_file" --checkpoint=step0 --output="$work/begun.safetensors" >/dev/null
tests/e2e/compare_weights "$work/stopped.safetensors" "$work/begun.safetensors" 0

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
refused ".weight: shape [128, " "model.layers[0].linear.units=64"
refused "holds no server-<i>.manifest" "training.start_from=$work"
checkpoint="$work/stopped.safetensors"
refused "hidden1.weight: shape [128, 16], the job's is [64, 16]; hidden1.bias: shape [128], the job's is [64]; hidden2.weight: " \
  "model.layers[0].linear.units=64"
refused "output.weight: missing; output.bias: missing; classes.bias: not in the job's model; classes.weight: not" \
  "model.layers[4].name=output"
say passed
