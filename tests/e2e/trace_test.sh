#!/usr/bin/env bash
# The timeline of some steps, over TCP and through shared memory: a Chrome trace in which pushes overlap the backward
# pass and the next forward pass begins before the last weights are there. The model's second layer is the large one: the
# first, which is pushed last, overtakes it.
# shellcheck source=tests/e2e/common.sh
source tests/e2e/common.sh

cat >"$work/job.textproto" <<'TEXT'
name: "trace"
cluster { servers: 1 workers: 1 chunk_bytes: 262144 message_bytes: 262144 }
model {
  input_shape: 64
  layers { name: "first" linear { units: 256 } }
  layers { tanh {} }
  layers { name: "large" linear { units: 8192 } }
  layers { tanh {} }
  layers { name: "last" linear { units: 4 } }
  loss: SOFTMAX_CROSS_ENTROPY
}
data { teacher { train_examples: 4000 hidden_units: 8 } }
optimizer { algorithm: SGD learning_rate: 0.01 }
consistency { mode: ASYNC }
training { batch_size: 16 max_steps: 60 trace_after_steps: 10 trace_steps: 40 }
TEXT
for path in OFF AUTO; do
  run="$work/$path"
  timeout $((120 * timeout_factor)) "$rubato" train "$work/job.textproto" --binaries "$root" --run_directory="$run" \
    --set "cluster.shared_memory=$path" >"$run.out" 2>&1 || {
    cat "$run.out" >&2
    fail "$path did not train"
  }
  say "shared memory $path"
  tests/e2e/check_trace "$run/traces/worker-0.json" first
done
say passed
