#!/usr/bin/env bash
# The page of a real job in a real browser (page_test.js): it moves, names the worker that is waited for, changes the mode,
# and stops the job; the run record says who did it, and the page shows the run when it has ended. With
# TEST_UNDECLARED_OUTPUTS_DIR pictures of it are kept.
# shellcheck source=tests/e2e/common.sh
source tests/e2e/common.sh

browser="$(command -v chromium || command -v chromium-browser || true)"
[[ -n "$browser" ]] || skip "there is no Chromium here"
command -v node >/dev/null || skip "there is no Node.js here"
playwright="${RUBATO_PLAYWRIGHT:-}"
[[ -e "$playwright/package.json" ]] || skip "playwright-core is not there: ./rubato.sh test fetches it"
pictures="${TEST_UNDECLARED_OUTPUTS_DIR:-$work}"

# drive ARGUMENTS...: the browser, with a home of its own.
drive() { HOME="$work" node "$root/tests/browser/page_test.js" "$playwright" "$browser" "$pictures" "$@"; }

train "$work/run" --page --slow=worker:1:x4+sleep=30ms --set consistency.mode=SYNC --set cluster.update_log=false \
  --set training.epochs=100000 --set evaluation.every_epochs=4 &
job=$!
address() { grep -o 'http://127.0.0.1:[0-9]*/#token=[0-9a-f]*' "$work/run.out"; }
wait_for 60 "the page's address is printed" address
wait_for 60 "training begins" has_step "$work/run" 50

drive job "$(address)" || fail "the page of a job"
if wait "$job"; then fail "a job that was stopped is no success"; fi
grep -q 'stopped by the operator at 127.0.0.1: on its page' "$work/run.out" || fail "who stopped the job is not said"
for request in 'switch to async' checkpoint 'trace 5 s' stop; do
  has_line "$work/run" '"request":{' "\"request\":\"$request\"" '"by":"operator at 127.0.0.1"' '"refused":""' ||
    fail "the run record does not say who asked for: $request"
done
if grep -q token "$work/run/logs/"*.log; then
  if grep -qF "$(cat "$work/run/credentials/operator.token")" "$work/run/logs/"*.log; then fail "a log has the token"; fi
fi
[[ ! -e "$work/run/page.address" ]] || fail "the page's address is left behind"

mkdir "$work/copy"
cp "$work/run/job.textproto" "$work/run/metrics.jsonl" "$work/copy"
"$rubato" page "$work/run" "<img>again=$work/copy" --output="$work/page.html" >/dev/null
drive file "$work/page.html" || fail "the page of a run that has ended"
say passed
