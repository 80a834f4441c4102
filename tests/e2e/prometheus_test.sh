#!/usr/bin/env bash
# Prometheus itself with a running job: promtool finds nothing to complain about in the metrics, the rules and the
# configuration, the alerts fire when they should, and a server that is given the coordinator's address alone finds and
# scrapes every task.
# shellcheck source=tests/e2e/common.sh
source tests/e2e/common.sh
# shellcheck source=tests/e2e/tasks.sh
source tests/e2e/tasks.sh
# shellcheck source=tests/e2e/pages.sh
source tests/e2e/pages.sh

PATH="${RUBATO_PROMETHEUS:+$RUBATO_PROMETHEUS:}$PATH:/usr/bin"
for program in prometheus promtool; do
  command -v "$program" >/dev/null || skip "there is no $program here"
done
cp deploy/prometheus/*.yml "$work"
cd "$work"
promtool check config prometheus.yml
promtool test rules rules_test.yml
cd "$root"

start_job --set consistency.mode=SSP --set consistency.staleness_bound=4
while read -r target; do
  page "$target" /metrics | promtool check metrics || fail "promtool does not like the metrics of $target"
done < <(target_addresses)

say "Prometheus scrapes the job"
sed -i -e "s#http://coordinator:7071/#http://$pages/#" -e 's/10s/1s/' "$work/prometheus.yml"
prometheus --config.file="$work/prometheus.yml" --storage.tsdb.path="$work/tsdb" --web.listen-address=127.0.0.1:0 \
  2>"$work/prometheus.log" &
monitor=$!
listens() { grep -q 'msg="Listening on" address=127' "$work/prometheus.log"; }
wait_for 30 "Prometheus listens" listens
prometheus_at="$(sed -nE 's/.*msg="Listening on" address=([0-9.:]+).*/\1/p' "$work/prometheus.log")"

# answers QUERY TEXT: Prometheus' answer to the query has the text.
answers() { fetch "$prometheus_at" "/api/v1/query?query=$1" | finds -F -- "$2"; }
wait_for 60 "all six tasks are up" answers 'count(up%7Bjob="rubato"%7D==1)' '"6"]'
wait_for 30 "steps have a rate" answers 'sum%20by(rubato_job)(rate(rubato_worker_steps_total%5B10s%5D))>0' \
  '"metric":{"rubato_job":"teacher_mlp"}'
wait_for 30 "the mode is known" answers 'rubato_plan_mode%7Brole="coordinator"%7D==1' '"mode":"SSP"'
wait_for 30 "the histogram of steps has a median" answers \
  'histogram_quantile(0.5,sum%20by(le)(rate(rubato_worker_step_seconds_bucket%5B10s%5D)))>0' '"value":['
fetch "$prometheus_at" /api/v1/rules | finds -F '"name":"RubatoNoProgress"' || fail "the rules were not loaded"
kill "$monitor"
wait "$monitor" || true
stop_job
say passed
