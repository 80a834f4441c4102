#!/usr/bin/env bash
# A regression, with mean squared error, shows loss and R2 wherever a classification shows its accuracy.
# shellcheck source=tests/e2e/common.sh
source tests/e2e/common.sh

run="$work/run"
train "$run" --set model.loss=MEAN_SQUARED_ERROR --set evaluation.target_accuracy=0 || {
  cat "$run.out" >&2
  fail "the job failed"
}

say "the run record"
line="$(grep '"final":true' "$run/metrics.jsonl")" || fail "there is no final evaluation"
say "$line"
r2="$(grep -o '"r2":[-0-9.e]*' <<<"$line" | cut -d: -f2)"
awk -v r2="$r2" 'BEGIN { exit !(r2 > 0.5 && r2 < 1) }' || fail "R2 is $r2; a model that learns has more than 0.5"
! grep -q '"accuracy":' "$run/metrics.jsonl" || fail "the run record has an accuracy"

say "terminal, report and TensorBoard"
grep -qE '^mode +R2 +RMSE +loss ' "$run.out" || fail "the table has no R2: $(cat "$run.out")"
grep -q 'held-out R2' "$run.out" || fail "the plot is not R2's: $(cat "$run.out")"
! grep -q accuracy "$run.out" || fail "the terminal shows an accuracy: $(cat "$run.out")"
grep -q '"regression":true' "$run/report.html" || fail "the report does not show a regression"
/usr/bin/python3 tests/e2e/read_events.py "$run/tensorboard" >"$run.events" || fail "the event files are bad"
grep -qE '^scalar evaluation/r2 [0-9]+ 0\.[0-9]+$' "$run.events" || fail "the event files have no R2"
! grep -q "^scalar .*accuracy" "$run.events" || fail "the event files have an accuracy"
say passed
