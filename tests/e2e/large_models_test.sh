#!/usr/bin/env bash
# A small residual network on pictures in CIFAR-10's format, and a small transformer on the bytes of a text: both learn,
# with the same weights for any number of servers, and the latter on byte pairs learned from it as well; bad files are named.
# shellcheck source=tests/e2e/common.sh
source tests/e2e/common.sh

tests/e2e/make_cifar "$work/cifar" 120 | tee "$work/cifar.out"
grep -q 'generated pictures' "$work/cifar.out" || fail "make_cifar does not say that its pictures are generated"
# Numbers that follow each other, over and over: easy to predict, but not from the last byte alone.
seq 0 3999 | awk '{ print 1000 + $1 % 50 }' >"$work/text"

cat >"$work/residual.textproto" <<TEXT
name: "residual"
cluster { workers: 2 evaluators: 1 chunk_bytes: 4096 update_log: true }
model {
  input_shape: [3, 32, 32]
  layers { name: "stem" conv2d { filters: 8 kernel: 3 stride: 2 padding: 1 } }
  layers {
    name: "block"
    residual {
      layers { conv2d { filters: 16 kernel: 3 stride: 2 padding: 1 no_bias: true } }
      layers { group_norm { groups: 4 } }
      layers { relu {} }
      layers { conv2d { filters: 16 kernel: 3 padding: 1 no_bias: true } }
      layers { group_norm { groups: 4 } }
      projection { stride: 2 norm_groups: 4 }
    }
  }
  layers { relu {} }
  layers { global_average_pool {} }
  layers { linear { units: 10 weight_initializer: LECUN_NORMAL } }
  loss: SOFTMAX_CROSS_ENTROPY
}
data {
  dispatch: STATIC
  cifar {
    train_paths: ["$work/cifar/data_batch_1.bin", "$work/cifar/data_batch_2.bin", "$work/cifar/data_batch_3.bin"]
    test_paths: "$work/cifar/test_batch.bin"
    mean: 0.5
    standard_deviation: 0.2
  }
}
optimizer { algorithm: MOMENTUM learning_rate: 0.1 }
training { batch_size: 18 epochs: 20 }
consistency { mode: SYNC }
TEXT

cat >"$work/transformer.textproto" <<TEXT
name: "transformer"
cluster { workers: 2 evaluators: 1 chunk_bytes: 4096 update_log: true }
model {
  input_shape: 24
  layers { name: "bytes" embedding { vocabulary: 256 width: 32 } }
  layers { name: "block" transformer { heads: 2 dropout: 0.1 } }
  layers { layer_norm {} }
  layers { name: "next" linear { units: 256 weight_initializer: LECUN_NORMAL } }
  loss: SOFTMAX_CROSS_ENTROPY
}
data { dispatch: STATIC text { path: "$work/text" } }
optimizer { algorithm: ADAMW learning_rate: 0.01 schedule { unit: STEPS warmup: 10 } }
training { batch_size: 16 max_steps: 200 clip_norm: 1 }
consistency { mode: SYNC }
TEXT

# run NAME JOB ARGUMENTS...
run() {
  local name="$1" job="$2"
  shift 2
  timeout $((120 * timeout_factor)) "$rubato" train "$work/$job.textproto" --binaries "$root" --run_directory="$work/$name" \
    "$@" >"$work/$name.out" 2>&1 || {
    cat "$work/$name.out" >&2
    fail "$name did not train"
  }
  audit_holds "$work/$name"
  "$rubato" export "$work/$name" --output="$work/$name.safetensors" >/dev/null
}

# learned NAME AWK_CONDITION: of the last evaluation's loss and accuracy.
learned() {
  local line
  line="$(grep '"final":true' "$work/$1/metrics.jsonl")" || fail "$1 has no final evaluation"
  say "$1: $line"
  local loss accuracy
  loss="$(grep -o '"loss":[-0-9.e]*' <<<"$line" | cut -d: -f2)"
  accuracy="$(grep -o '"accuracy":[-0-9.e]*' <<<"$line" | cut -d: -f2)"
  awk -v loss="$loss" -v accuracy="$accuracy" "BEGIN { exit !($2) }" || fail "$1 is not as good as $2"
}

run residual_one residual --set cluster.servers=1
run residual_two residual --set cluster.servers=2
cmp "$work/residual_one.safetensors" "$work/residual_two.safetensors" || fail "residual: weights depend on the servers"
learned residual_one 'accuracy > 0.6'
strings -n 8 "$work/residual_one.safetensors" | sed -n 1p | finds 'block.shortcut_norm.weight' ||
  fail "the export has no block.shortcut_norm.weight"

run transformer_one transformer --set cluster.servers=1
run transformer_two transformer --set cluster.servers=2
cmp "$work/transformer_one.safetensors" "$work/transformer_two.safetensors" ||
  fail "transformer: weights depend on the servers"
learned transformer_one 'loss < 0.5 && accuracy > 0.85'

# A line of five bytes is two tokens.
"$rubato" byte-pairs "$work/text" --tokens=320 --leave-out=0.1 --output="$work/text.pairs" | finds 'Wrote 3[0-9][0-9] tokens'
pairs=(--set "data.text.byte_pairs=$work/text.pairs" --set 'model.layers[0].embedding.vocabulary=320'
  --set 'model.layers[3].linear.units=320' --set training.max_steps=100)
run pairs transformer "${pairs[@]}"
learned pairs 'accuracy > 0.85'

# refused PATTERN JOB ARGUMENTS...
refused() {
  local pattern="$1" job="$2"
  shift 2
  ! timeout $((30 * timeout_factor)) "$rubato" train "$work/$job.textproto" --binaries "$root" --run_directory="$work/bad" \
    "$@" >"$work/bad.out" 2>&1 || fail "a bad file was accepted: $*"
  grep -q -- "$pattern" "$work/bad.out" || {
    cat "$work/bad.out" >&2
    fail "the error does not say '$pattern'"
  }
  rm -rf "$work/bad"
}

head -c 5000 "$work/cifar/data_batch_1.bin" >"$work/cut.bin"
{ printf '\x0b' && tail -c +2 "$work/cifar/data_batch_1.bin"; } >"$work/label.bin"
refused 'cut.bin: 5000 bytes, 1 records and 1927 bytes more; expected' residual \
  --set "data.cifar.train_paths[0]=$work/cut.bin"
refused 'label.bin: label 11 of record 0; expected: 0 to 9' residual --set "data.cifar.train_paths[2]=$work/label.bin"
head -c 20 "$work/text" >"$work/short"
refused 'short: 18 bytes to train with' transformer --set "data.text.path=$work/short" --set cluster.evaluators=0
refused 'text.pairs: SOFTMAX_CROSS_ENTROPY from positions, with a vocabulary of at least 312' transformer "${pairs[@]}" \
  --set 'model.layers[0].embedding.vocabulary=300'
sed -i '20s/^[0-9]*/999/' "$work/text.pairs"
refused 'text.pairs:20: token 272 is of 999 and' transformer "${pairs[@]}"
say passed
