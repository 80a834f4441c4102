#!/usr/bin/env bash
# Event files for TensorBoard: of each run of a comparison, read by a reader that knows the formats' descriptions alone; and
# the comparison's page, while it makes its runs.
# shellcheck source=tests/e2e/common.sh
source tests/e2e/common.sh

python=/usr/bin/python3
[[ -x "$python" ]] || python="$(command -v python3)"
read_events() { "$python" tests/e2e/read_events.py "$1/tensorboard" >"$1.events" || fail "the event files of $1 are bad"; }
# has RUN PATTERN: a line of what was read.
has() { grep -qE "$2" "$1.events" || fail "the event files of $1 have no $2"; }

timeout $((240 * timeout_factor)) "$rubato" compare "$root/configs/teacher_mlp.textproto" --binaries "$root" --modes=sync,async \
  --run_directory="$work/compared" --set observability.histogram_every_steps=100 --set training.epochs=6 --page \
  >"$work/compare.out" 2>&1 &
compared=$!
says() { grep -qE "$1" "$work/compare.out"; }
wait_for 30 "the page's address is printed" says '^Page: http://127\.0\.0\.1:[0-9]+/$'
page="$(sed -nE 's#^Page: http://(.*)/$#\1#p' "$work/compare.out")"
# ask PATH: the answer of the page's server; that of events goes on until it ends.
ask() {
  exec 8<>"/dev/tcp/${page%:*}/${page##*:}"
  printf 'GET %s HTTP/1.1\r\nHost: %s\r\n\r\n' "$1" "$page" >&8
  cat <&8
  exec 8>&-
}
ask / | finds '</html>' || fail "the comparison has no page"
ask /events >"$work/page.events" &
events=$!
wait "$compared" || {
  cat "$work/compare.out" >&2
  fail "the comparison failed"
}
wait "$events" || fail "the page's events do not end with the comparison"
for mode in sync async; do
  grep -q "\"about\":{\"name\":\"$mode\"" "$work/page.events" || fail "the page has no run of $mode"
done
if grep -A 2 '^event: all' "$work/page.events" | finds '"name":"async"'; then fail "a run is there before it has begun"; fi
(($(grep -o '"end":{[^}]*"ok":true' "$work/page.events" | wc -l) == 2)) || fail "the page does not say how both runs ended"
(($(grep -o '"points":\[\[' "$work/page.events" | wc -l) >= 2)) || fail "the page has no curves of both runs"
says "^Page: rubato page $work/compared shows it from now on$" || fail "how to open the page again is not said"
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
