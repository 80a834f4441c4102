#!/usr/bin/env bash
# Kills and freezes random tasks of a real job at random moments: it has to end by itself, with its target accuracy,
# its audit has to hold, and each example of each epoch to be trained once. Says how long the job took to get over each blow. From the top of the repository:
#
#   tests/chaos/chaos.sh --kills=100 [--mode=sync|ssp:2|async|all] [--seed=N] [--servers=N] [--workers=N]
#
# The programs are those of the build (bazel-bin), or those beside this script's runfiles. A seed gives the same blows at
# the same waiting times; what they hit depends on the machine.
#
# A blow is SIGKILL, or one time in four SIGSTOP and after a while SIGCONT, to a server, a worker, the evaluator or the
# coordinator. It is got over when the task is there again (after SIGKILL as another process; a coordinator in a higher
# term), the job trains, and then has got on by a step. So the time is never shorter than two heartbeats.
# shellcheck source=tests/e2e/common.sh
source tests/e2e/common.sh

kills=20 mode=all seed=$RANDOM servers=2 workers=3
# Between blows, so that there is something to lose.
quiet_tenths_min=10 quiet_tenths_max=30
# A blow with what follows from it takes about so long: it decides how long the job is.
seconds_of_a_blow=6
lease=2
# Of configs/teacher_mlp.textproto.
train_examples=40000

refuse() {
  printf 'chaos.sh: %s\n' "$*" >&2
  exit 2
}

parse() {
  local argument
  for argument; do
    case "$argument" in
      --kills=*) kills="${argument#*=}" ;;
      --mode=*) mode="${argument#*=}" ;;
      --seed=*) seed="${argument#*=}" ;;
      --servers=*) servers="${argument#*=}" ;;
      --workers=*) workers="${argument#*=}" ;;
      *) refuse "$argument is not known; allowed: --kills, --mode, --seed, --servers, --workers" ;;
    esac
  done
  local name
  for name in kills seed servers workers; do
    [[ "${!name}" =~ ^[0-9]+$ ]] || refuse "--$name: value \"${!name}\"; allowed: a number"
  done
  [[ "$mode" =~ ^(sync|async|ssp:[1-9][0-9]*|all)$ ]] || refuse "--mode: value \"$mode\"; allowed: sync, async, ssp:N, all"
  if [[ ! -x "$rubato" ]]; then
    binaries="$root/bazel-bin"
    rubato="$binaries/cli/command/rubato"
    [[ -x "$rubato" ]] || refuse "there is no $rubato: build it with bazel build //cli/command:rubato //coordinator //server //worker"
  fi
}

# between FROM TO: a random number, in $number.
between() { number=$(($1 + (RANDOM * 32768 + RANDOM) % ($2 - $1 + 1))); }
tenths() { printf '%d.%d' $(($1 / 10)) $(($1 % 10)); }
# Milliseconds since 1970.
now() { date +%s%3N; }

# settings_of MODE: in $settings.
settings_of() {
  settings=(--set "cluster.servers=$servers" --set "cluster.workers=$workers" --set "cluster.lease_seconds=$lease"
    --set cluster.server_grace_seconds=10 --set checkpoint.every_seconds=1 --set cluster.update_log=true)
  case "$1" in
    sync) settings+=(--set consistency.mode=SYNC) ;;
    async) settings+=(--set consistency.mode=ASYNC) ;;
    ssp:*) settings+=(--set consistency.mode=SSP --set "consistency.staleness_bound=${1#*:}") ;;
  esac
}

# start RUN ARGUMENTS...: a job in the background, $job.
start() {
  "$rubato" train "$root/configs/teacher_mlp.textproto" --binaries "$binaries" --run_directory="$1" "${settings[@]}" \
    "${@:2}" >"$1.out" 2>&1 &
  job=$!
}
runs() { kill -0 "$job" 2>/dev/null; }

# pid PROGRAM WORDS: of the job in $run; nothing if it is not there.
pid() { pgrep -f -- "^[^ ]*/$1 --config $run/job.textproto .*$2" | head -n 1; }
pid_of() {
  case "$1" in
    coordinator) pid coordinator '' ;;
    server-*) pid server "--task_index ${1#*-} " ;;
    worker-*) pid worker "--task_index ${1#*-} .*--role worker" ;;
    evaluator-*) pid worker "--task_index ${1#*-} .*--role evaluator" ;;
  esac
}

# look NAME: one reading of the status: term, step (empty unless the job trains) and whether the task is there, in $term,
# $step and $there ("alive PROCESS"); fails if nobody answers.
look() {
  local text
  text="$(timeout 5 "$rubato" status "$run" 2>/dev/null)" || return 1
  term="$(sed -n 's/^Term \([0-9]*\);.*/\1/p' <<<"$text")"
  step="$(sed -n 's/^training  step \([0-9]*\) .*/\1/p' <<<"$text")"
  there="$(sed -n "s/^${1/-/ }  *\\([a-z]*\\) .* \\([0-9][0-9]*\\)@.*/\\1 \\2/p" <<<"$text" | head -n 1)"
}

# got_over NAME TERM PROCESS BEGAN: waits until the job has, and adds the time to $seconds; fails if it has ended
# meanwhile. PROCESS: empty where the same one is to be there.
got_over() {
  local name="$1" term_before="$2" process="$3" first="" limit=$((120 * timeout_factor))
  local deadline=$((SECONDS + limit))
  while runs; do
    ((SECONDS < deadline)) || fail "$name: the job has not got over it within $limit s: $(tail -n 20 "$run.out")"
    sleep 0.1
    look "$name" || continue
    [[ -n "$step" ]] || continue
    if [[ "$name" == coordinator ]]; then
      [[ -z "$process" ]] || ((${term:-0} > term_before)) || continue
    else
      [[ "$there" == "alive "* && "$there" != "alive ${process:-none}" ]] || continue
    fi
    if [[ -z "$first" ]]; then first="$step"; fi
    ((step == first)) && continue
    seconds+=("$(awk -v ms=$(($(now) - $4)) 'BEGIN { printf "%.2f", ms / 1000 }')")
    return
  done
  return 1
}

# choose: a task that the launcher will start again, in $name: one that was not lost four times within a minute.
choose() {
  local -a names=(coordinator evaluator-0)
  local i time recent
  for ((i = 0; i < servers; ++i)); do names+=("server-$i"); done
  for ((i = 0; i < workers; ++i)); do names+=("worker-$i"); done
  for ((i = 0; i < 100; ++i)); do
    between 0 $((${#names[@]} - 1))
    name="${names[number]}"
    recent=0
    for time in ${lost[$name]:-}; do
      if ((SECONDS - time <= 65)); then recent=$((recent + 1)); fi
    done
    ((recent >= 4)) || return 0
  done
  fail "every task was lost four times within a minute"
}

# blow: one, to a random task. Fails if the job has ended.
blow() {
  local process began term_before pause
  between "$quiet_tenths_min" "$quiet_tenths_max"
  sleep "$(tenths "$number")"
  choose
  look "$name" || { runs || return 1; }
  term_before="${term:-0}"
  process="$(pid_of "$name")"
  [[ -n "$process" ]] || return 0
  lost[$name]+=" $SECONDS"
  began="$(now)"
  between 1 4
  if ((number == 1)); then
    # Up to what is over the lease, so that it is evicted.
    between 3 $((lease * 15))
    pause="$(tenths "$number")"
    kill -STOP "$process" 2>/dev/null || return 0
    sleep "$pause"
    kill -CONT "$process" 2>/dev/null || true
    say "  $name stood still for $pause s"
    process=""
  else
    kill -KILL "$process" 2>/dev/null || return 0
    say "  $name was killed"
  fi
  blows=$((blows + 1))
  got_over "$name" "$term_before" "$process" "$began" || return 1
  say "    got over in ${seconds[-1]} s"
}

# measure MODE: how many examples a second the job trains here, in $rate.
measure() {
  run="$work/speed-$1"
  start "$run" --set training.epochs=10 --set evaluation.target_accuracy=
  wait "$job" || fail "the job without a blow failed: $(tail -n 20 "$run.out")"
  rate="$(awk -v t="$(last_value "$run" t)" -v n=$((10 * train_examples)) 'BEGIN { printf "%d", n / (t > 0.1 ? t : 0.1) }')"
}

distribution() {
  ((${#seconds[@]} > 0)) || return 0
  printf '%s\n' "${seconds[@]}" | sort -n | awk '{ all[NR] = $1 } END {
    printf "median %.2f s, p90 %.2f s, max %.2f s of %d\n", all[int((NR + 1) / 2)], all[int((NR * 9 + 9) / 10)], all[NR], NR }'
}

chaos() {
  local epochs accuracy
  local -A lost=()
  seconds=() blows=0
  settings_of "$1"
  measure "$1"
  epochs=$((rate * (kills + 1) * seconds_of_a_blow / train_examples + 1))
  run="$work/$1"
  say "$1: $rate examples a second without a blow, so $epochs epochs for $kills blows; seed $seed"
  start "$run" --set "training.epochs=$epochs"
  wait_for 60 "$1: training begins" has_step "$run" 1
  while ((blows < kills)) && runs; do blow || break; done
  say "$1: $blows blows; the job goes on by itself"
  local deadline=$((SECONDS + (kills + 2) * seconds_of_a_blow * 3 * timeout_factor + 120))
  while runs; do
    ((SECONDS < deadline)) || fail "$1: the job does not end"
    sleep 0.5
  done
  wait "$job" || fail "$1: the job failed (seed $seed): $(tail -n 30 "$run.out")"
  ((blows == kills)) || fail "$1: the job ended after $blows of $kills blows: too short"
  has_line "$run" '"end":{' '"ok":true' || fail "$1: the record has no good end"
  accuracy="$(grep '"final":true' "$run/metrics.jsonl" | tail -n 1 | grep -o '"accuracy":[0-9.]*' | cut -d: -f2)"
  awk -v got="${accuracy:-0}" 'BEGIN { exit !(got >= 0.9) }' || fail "$1: final accuracy $accuracy is under 0.9 (seed $seed)"
  audit_holds "$run"
  trained_once "$run" $((epochs * train_examples))
  say "$1: accuracy $accuracy, $((epochs * train_examples)) examples trained once, rollbacks: $(grep -c '"rollback":{' "$run/metrics.jsonl" || true); $(distribution)"
  rm -rf "$run"
}

binaries="$root"
parse "$@"
say "seed $seed"
RANDOM="$seed"
modes=("$mode")
if [[ "$mode" == all ]]; then modes=(sync ssp:2 async); fi
for each in "${modes[@]}"; do chaos "$each"; done
say passed
