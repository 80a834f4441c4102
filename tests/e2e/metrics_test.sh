#!/usr/bin/env bash
# What a running job shows over HTTP: metrics of every task, where they are found, and whether each task is healthy. Every
# metric that the dashboard and the alerts ask for is there, and the counts agree with the run record.
# shellcheck source=tests/e2e/common.sh
source tests/e2e/common.sh
# shellcheck source=tests/e2e/tasks.sh
source tests/e2e/tasks.sh
# shellcheck source=tests/e2e/pages.sh
source tests/e2e/pages.sh

# value ADDRESS NAME: of a metric that has one sample.
value() { page "$1" /metrics | grep "^$2{" | grep -o '[^ ]*$'; }

start_job --set consistency.mode=SSP --set consistency.staleness_bound=4 --set evaluation.every_epochs=0.1
say "$targets"
mapfile -t addresses < <(target_addresses)
((${#addresses[@]} == 6)) || fail "/targets has ${#addresses[@]} addresses instead of 6"
grep -q '"rubato_job":"teacher_mlp"' <<<"$targets" || fail "/targets does not name the job"
for address_of_task in "${addresses[@]}"; do
  page "$address_of_task" /healthz | finds '^serving$' || fail "$address_of_task is not healthy"
done
fetch "$pages" /nothing | finds '^HTTP/1.1 404 ' || fail "a page that is not there is found"

say "every metric that is asked for is shown"
# An accuracy comes with the first evaluation, the time that is left with the second reading of the workers' progress.
has_all() { (($(page "$pages" /metrics | grep -cE '^rubato_job_(evaluation_accuracy|left_seconds)') == 2)); }
wait_for 60 "an evaluation and an estimate of the time" has_all
for address_of_task in "${addresses[@]}"; do page "$address_of_task" /metrics; done >"$work/metrics"
# R2 is a regression's, whose job shows no accuracy (regression_test).
asked="$(grep -ohE '(rubato|process)_[a-z0-9_]+' deploy/grafana/rubato.json deploy/prometheus/rubato.rules.yml |
  grep -vxE 'rubato_job|rubato_job_evaluation_r2' | sort -u)"
(($(wc -l <<<"$asked") > 30)) || fail "the dashboard and the alerts ask for too little"
for name in $asked; do grep -qE "^${name}[{ ]" "$work/metrics" || fail "no task shows $name"; done
for sample in 'rubato_plan_mode{role="worker",index="1",mode="SSP"} 1' \
  'rubato_plan_staleness_bound{role="coordinator",index="0"} 4' 'rubato_plan_members{role="server",index="0"} 2' \
  'rubato_job_phase{role="coordinator",index="0",phase="TRAINING"} 1' \
  'rubato_task_serving{role="evaluator",index="0"} 1'; do
  grep -qxF "$sample" "$work/metrics" || fail "nobody shows $sample"
done

say "counts grow, and agree with each other"
worker="$(sed -nE 's/.*shows its metrics on port ([0-9]+).*/127.0.0.1:\1/p' "$work/worker-0.log")"
before="$(value "$worker" rubato_worker_steps_total)"
grew() { (($(value "$worker" rubato_worker_steps_total) > before)); }
wait_for 20 "steps go on" grew
page "$worker" /metrics >"$work/worker"
steps="$(grep -o '^rubato_worker_steps_total{[^ ]* [0-9]*' "$work/worker" | cut -d' ' -f2)"
timed="$(grep -o '^rubato_worker_step_seconds_count{[^ ]* [0-9]*' "$work/worker" | cut -d' ' -f2)"
((steps > 0 && steps == timed)) || fail "$steps steps, of which $timed have a duration"
[[ "$(value "$worker" rubato_worker_learning_rate)" == 0.02 ]] || fail "the learning rate is not the config's"

say "a mode change is seen"
"$rubato" switch "$address" --credentials="$work/run/credentials" --to=sync >/dev/null
[[ "$(value "$pages" rubato_job_mode_changes_total)" == 1 ]] || fail "the mode change was not counted"
[[ "$(value "$pages" rubato_plan_generation)" == 2 ]] || fail "the plan is not the second"

say "in sync the servers measure how gradients differ"
measured() { [[ -n "$(value "$pages" rubato_job_lasting_ratio)" ]]; }
wait_for 60 "twelve measured steps" measured
page "$pages" /metrics | awk -F '[{ ]' '/^rubato_job_(gradient|lasting)/ { value[$1] = $NF } END {
  norm = value["rubato_job_gradient_norm"]; lasting = value["rubato_job_lasting_ratio"]
  exit !(norm > 0 && norm < 10 && lasting >= 0 && lasting < 0.3)
}' || fail "of gradients of examples that are dealt out at random: $(page "$pages" /metrics | grep -E '_(gradient|lasting)')"

say "a port in use is an error with the flag's name"
status=0
"$root/worker/worker" --config="$root/configs/teacher_mlp.textproto" --coordinator="$address" --task_index=2 \
  --metrics_listen="$worker" 2>"$work/taken.log" || status=$?
((status == 1)) || fail "exit status $status instead of 1"
grep -q -- "--metrics_listen: cannot listen on $worker: the port is taken" "$work/taken.log" ||
  fail "the log does not say it: $(<"$work/taken.log")"
stop_job
say passed
