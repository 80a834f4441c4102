# Sourced after tasks.sh by the tests of what a job shows of itself.
# shellcheck shell=bash disable=SC2154  # root and work are common.sh's.

# fetch HOST:PORT PATH: the whole answer, head included, over HTTP.
fetch() {
  exec 9<>"/dev/tcp/${1%:*}/${1##*:}"
  printf 'GET %s HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n' "$2" >&9
  cat <&9
  exec 9>&-
}

# page HOST:PORT PATH: its body; fails when the status is another than 200.
page() {
  local answer
  answer="$(fetch "$1" "$2" | tr -d '\r')"
  [[ "$answer" == "HTTP/1.1 200 "* ]] || return 1
  sed '1,/^$/d' <<<"$answer"
}

# start_job ARGUMENTS...: the teacher job with two servers, two workers and an evaluator, all of which show metrics, and
# which trains until it is stopped. The coordinator's page is at $pages, the whole list of pages in $targets.
start_job() {
  local job=(--config="$root/configs/teacher_mlp.textproto" --set "run_directory=$work/run" --set cluster.update_log=false
    --set training.epochs=100000 --metrics_listen=127.0.0.1:0 "$@")
  start_coordinator coordinator "${job[@]}"
  local task=("${job[@]}" --coordinator="$address") index
  for index in 0 1; do
    start "server-$index" server "${task[@]}" --task_index="$index" --listen=127.0.0.1:0
    start "worker-$index" worker "${task[@]}" --task_index="$index" --health_listen=127.0.0.1:0
  done
  start evaluator worker "${task[@]}" --task_index=0 --role=evaluator --health_listen=127.0.0.1:0
  pages="$(sed -nE 's#.*shows metrics at http://([^/]*)/.*#\1#p' "$work/coordinator.log")"
  wait_for 60 "training begins" has_step "$work/run" 20
  targets="$(page "$pages" /targets)"
}

# stop_job: all tasks end, the coordinator with status 1, because the job is not done.
stop_job() {
  local name credentials=()
  # A job with security.insecure has none.
  if [[ -d "$work/run/credentials" ]]; then credentials=(--credentials="$work/run/credentials"); fi
  "$rubato" stop "$address" "${credentials[@]}" >/dev/null
  for name in "${!process[@]}"; do
    if [[ "$name" == coordinator ]]; then ends "$name" 1 30; else ends "$name" 0 30; fi
  done
}

# The addresses in $targets, one a line.
target_addresses() { grep -oE '"[0-9.]+:[0-9]+"' <<<"$targets" | tr -d '"'; }
