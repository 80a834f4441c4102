#!/usr/bin/env bash
# Event files for TensorBoard: of each run of a comparison, read by a reader that knows the formats' descriptions alone.
# shellcheck source=tests/e2e/common.sh
source tests/e2e/common.sh

python=/usr/bin/python3
[[ -x "$python" ]] || python="$(command -v python3)"
read_events() { "$python" tests/e2e/read_events.py "$1/tensorboard" >"$1.events" || fail "the event files of $1 are bad"; }
# has RUN PATTERN: a line of what was read.
has() { grep -qE "$2" "$1.events" || fail "the event files of $1 have no $2"; }

timeout $((240 * timeout_factor)) "$rubato" compare "$root/configs/teacher_mlp.textproto" --binaries "$root" --modes=sync,async \
  --run_directory="$work/compared" --set observability.histogram_every_steps=100 --set training.epochs=6 \
  >"$work/compare.out" 2>&1 || {
  cat "$work/compare.out" >&2
  fail "the comparison failed"
}
for mode in sync async; do
  run="$work/compared/$mode-seed1"
  read_events "$run"
  for tag in training/loss training/accuracy training/examples_per_second consistency/staleness_mean \
    consistency/waiting_share evaluation/loss evaluation/accuracy; do
    has "$run" "^scalar $tag [0-9]+ [0-9.e-]+$"
  done
  for tag in gradient_norm gradient_noise_scale; do
    [[ $mode == async ]] || has "$run" "^scalar training/$tag [0-9]+ [0-9.e-]+$"
  done
  has "$run" '^scalar training/learning_rate [0-9]+ 0.0199'
  has "$run" "^text consistency/plan 0 plan 1: \*\*${mode^^}\*\* from step 0; members: 0, 1;"
  has "$run" '^text job/config 0     name: "teacher_mlp"'
  has "$run" '^text job/end [0-9]+ done$'
  for layer in hidden1 hidden2 classes; do
    for tensor in weight bias; do
      for kind in weights gradients; do
        has "$run" "^scalar $kind/$layer[.]$tensor/norm [0-9]+ [0-9.e-]+$"
        has "$run" "^histogram $kind/$layer[.]$tensor [1-9][0-9]* [0-9]+ 30$"
      done
    done
  done
  has "$run" '^histogram weights/hidden2[.]weight [1-9][0-9]* 16384 30$'
  say "$mode: $(wc -l <"$run.events") values, of which $(grep -c ^histogram "$run.events") histograms"
done

say "a job that wants no event files has none"
train "$work/without" --set observability.no_tensorboard=true --set training.epochs=1 --set evaluation.target_accuracy=0
[[ ! -e "$work/without/tensorboard" ]] || fail "they are there"

say passed
