#!/usr/bin/env bash
# The units of deploy/systemd, as systemd itself judges them: what they say is understood, and how much they leave open.
# Then a systemd of its own (systemd_machine.sh) runs them as a job, of which a server and the coordinator are killed; that
# needs root, and `bazel test` leaves it out.
# shellcheck source=tests/deploy/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

need_packages systemd
work="$(mktemp -d)"
cgroup="" machine=""
cleanup() {
  local status=$? name
  # Everything in it ends with its first process.
  if [[ -n "$machine" ]]; then
    kill -9 "$machine" 2>/dev/null || true
    wait "$machine" 2>/dev/null || true
  fi
  if [[ -n "$cgroup" ]]; then
    wait_for 10 "the machine's processes are gone" no_processes
    find "$cgroup" -depth -type d -exec rmdir {} +
  fi
  if ((status != 0)); then tail -n 15 "$work/machine.log" "$work"/machine/var/log/tasks/* 2>/dev/null || true; fi
  rm -rf --one-file-system "$work"
  exit "$status"
}
trap cleanup EXIT
gather_programs "$work/bin" "$@"

# Programs that are there, in the place of those that are installed elsewhere.
for unit in deploy/systemd/*.service; do
  sed 's#/usr/lib/rubato/bin/[a-z]* #/bin/true #' "$unit" >"$work/$(basename "$unit")"
done
units=("$work"/*.service)
((${#units[@]} == 5)) || fail "${#units[@]} units instead of 5"

say "systemd-analyze verify"
said="$(systemd-analyze --man=no verify "${units[@]}" 2>&1)" || fail "$said"
# It only warns of what it does not know.
complaints="$(grep -F "$work" <<<"$said" || true)"
[[ -z "$complaints" ]] || fail "$complaints"

say "systemd-analyze security"
for unit in "${units[@]}"; do
  # In tenths; 2.0 of 10 is "OK", without protection it is over 9.
  systemd-analyze --no-pager security --offline=true --threshold=20 "$unit" >"$work/security" ||
    fail "$(tail -n 1 "$work/security")"
  tail -n 1 "$work/security"
done

say "gpus"
for unit in deploy/systemd/*.service; do
  grep -q '^DeviceAllow=char-nvidia' "$unit" || continue
  for setting in Wants After; do
    grep -qx "$setting=nvidia-persistenced.service" "$unit" || fail "$unit: no $setting=nvidia-persistenced.service"
  done
done

say "what is started again"
for unit in deploy/systemd/*.service; do
  case "$unit" in
    */rubato-coordinator.service)
      # Its exit status 1 is its job's.
      expected=("Restart=on-abnormal")
      grep -q '^ExecStart=.* --resume$' "$unit" || fail "$unit: a coordinator that is started again does not resume"
      ;;
    */rubato-program@.service)
      # Somebody's program that fails by itself ends the job.
      expected=("Restart=on-abnormal")
      grep -q '^ExecStopPost=.*SERVICE_RESULT' "$unit" || fail "$unit: nobody ends the job of a program that fails"
      ;;
    *) expected=("Restart=on-failure" "RestartPreventExitStatus=2") ;;
  esac
  for line in "${expected[@]}"; do grep -qx -- "$line" "$unit" || fail "$unit: no $line"; done
done

# Each program knows the options that its unit gives it.
say "options"
for unit in deploy/systemd/*.service; do
  program="$(sed -nE 's#^ExecStart=/usr/lib/rubato/bin/([a-z]+) .*#\1#p' "$unit")"
  [[ -n "$program" ]] || continue  # Somebody's.
  help="$("$work/bin/$program" --help)"
  grep "^ExecStart=" "$unit" | grep -o -- "--[a-z_]*" | while read -r option; do
    grep -q -- "$option" <<<"$help" || fail "$unit: $program has no option $option"
  done
done

job_units=(rubato-coordinator rubato-server@0 rubato-server@1 rubato-worker@0 rubato-worker@1 rubato-evaluator@0)

no_processes() { [[ -z "$(find "$cgroup" -name cgroup.procs -exec cat {} +)" ]]; }

# in_machine COMMAND...
in_machine() { nsenter --target "$(pgrep -P "$machine")" --all "$@"; }

# What the machine's /etc has: users, libraries, names, the units as they are, and the least that systemd begins with.
write_etc() {
  local etc="$work/machine/etc" target
  mkdir -p "$etc/systemd/system/service.d" "$etc/rubato" "$work/machine/var/log/tasks" "$work/machine/var/lib"
  cp -r /etc/passwd /etc/group /etc/nsswitch.conf /etc/ld.so.c* /etc/alternatives "$etc/"
  ln -s ../usr/lib/os-release "$etc/os-release"
  printf '%032x\n' 1 >"$etc/machine-id"
  # The coordinator's name in rubato.conf.
  printf '127.0.0.1 localhost coordinator.example\n' >"$etc/hosts"
  cp deploy/systemd/*.service "$etc/systemd/system/"
  cp deploy/systemd/rubato.conf "$etc/rubato/"
  for target in sysinit basic shutdown multi-user; do
    printf '[Unit]\nDefaultDependencies=no\n' >"$etc/systemd/system/$target.target"
  done
  # There is no journal.
  printf '[Service]\nStandardOutput=append:/var/log/tasks/%%n.log\nStandardError=inherit\n' \
    >"$etc/systemd/system/service.d/log.conf"
  systemctl --quiet --root="$work/machine" enable "${job_units[@]}" || fail "the units cannot be enabled"
  "$work/bin/rubato" config configs/teacher_mlp.textproto --set security.insecure=true "$@" >"$etc/rubato/job.textproto"
}

# cannot_run WHAT: ends the test where the machine does not let it start a systemd.
cannot_run() { skip "the units pass; no systemd of the test's own can be started here: $1"; }
is_up() { [[ "$(in_machine systemctl is-system-running)" =~ running|degraded ]]; }

start_machine() {
  local hierarchy
  hierarchy="$(findmnt --first-only --noheadings --types cgroup2 --output TARGET)" || cannot_run "no cgroups of version 2"
  unshare --cgroup --mount --propagation private --pid --fork --uts --ipc --net \
    mount -t tmpfs tmpfs "$work/machine/var" 2>"$work/machine.log" || cannot_run "$(<"$work/machine.log")"
  mkdir "$hierarchy/rubato-test-$$" 2>"$work/machine.log" || cannot_run "$(<"$work/machine.log")"
  cgroup="$hierarchy/rubato-test-$$"
  tests/deploy/systemd_machine.sh "$work/machine" "$cgroup" "$work/bin" >"$work/machine.log" 2>&1 </dev/null &
  machine=$!
  wait_for 30 "systemd is up" is_up
}

# unit_is UNIT PROPERTY=VALUE...
unit_is() {
  local unit="$1" property
  shift
  for property in "$@"; do
    [[ "$(in_machine systemctl show --property="${property%%=*}" "$unit")" == "$property" ]] || return
  done
}
has_step() { [[ -f "$run/metrics.jsonl" ]] && (($(last_value "$run" step) >= $1)); }

# is_killed UNIT: by SIGKILL, and started again.
is_killed() {
  in_machine systemctl kill --signal=KILL --kill-whom=main "$1"
  wait_for 30 "systemd starts $1 again" unit_is "$1" NRestarts=1 ActiveState=active
}

a_lost_server_and_coordinator_come_back() {
  say "kill -9 of a server and of the coordinator: systemd starts them again"
  local run="$work/machine/var/lib/rubato/run" unit
  write_etc --set run_directory=run --set training.epochs=30 --set checkpoint.every_steps=500
  start_machine
  wait_for 60 "training begins" has_step 1500
  is_killed rubato-server@1
  wait_for 60 "the job goes back" grep -q '"rollback":{' "$run/metrics.jsonl"
  wait_for 60 "and goes on" has_step $(($(last_value "$run" step) + 1000))
  is_killed rubato-coordinator
  wait_for 60 "the job goes on" has_step $(($(last_value "$run" step) + 1000))
  for unit in "${job_units[@]}"; do
    wait_for 120 "$unit ends well" unit_is "$unit" ActiveState=inactive Result=success ExecMainCode=1 ExecMainStatus=0
  done
  grep -q '"end":{.*"ok":true' "$run/metrics.jsonl" || fail "the job did not end well"
  at_least "$(last_value "$run" accuracy)" 0.9 || fail "held-out accuracy $(last_value "$run" accuracy)"
  "$work/bin/rubato" audit "$run" >/dev/null || fail "the audit found a broken invariant"
  say "held-out accuracy $(last_value "$run" accuracy)"
}

# program_job NAME COMMAND: a job in the same machine whose workers are this command, as rubato-program@.
program_job() {
  local etc="$work/machine/etc/rubato" unit
  program_units=(rubato-coordinator rubato-server@0 rubato-server@1 rubato-program@0 rubato-program@1)
  "$work/bin/rubato" config --client deploy/k8s/overlays/program/job.textproto --set "run_directory=$1" --set security.insecure=true \
    >"$etc/job.textproto"
  sed "s#^COMMAND=.*#COMMAND=$2#" deploy/systemd/rubato.conf >"$etc/rubato.conf"
  for unit in "${program_units[@]}"; do in_machine systemctl start --no-block "$unit"; done
}

workers_are_programs() {
  say "workers that are somebody's program"
  local run="$work/machine/var/lib/rubato/program" unit
  # shellcheck disable=SC2016  # For the workers' shell.
  printf '%s\n' 'export LD_LIBRARY_PATH="${RUBATO_LIBRARY%/*}"' \
    'exec /usr/lib/rubato/bin/linear_regression "$RUBATO_COORDINATOR" "$RUBATO_RANK" "$RUBATO_SIDECAR"' \
    >"$work/machine/var/lib/regression.sh"
  program_job program "/bin/sh /var/lib/regression.sh"
  wait_for 60 "the job ends" grep -q '"end":{.*"ok":true' "$run/metrics.jsonl"
  for unit in "${program_units[@]}"; do
    # Units that nothing wants are forgotten when they have ended, unless they failed.
    wait_for 30 "$unit ends well" unit_is "$unit" ActiveState=inactive Result=success
  done
  grep -q 'worker 1 learned y = ' "$work/machine/var/log/tasks/rubato-program@1.service.log" || fail "worker 1 has not learned"

  say "a program that fails ends the job"
  program_job failed "/bin/sh -c false"
  wait_for 60 "the coordinator ends" unit_is rubato-coordinator Result=exit-code ExecMainStatus=1
  grep -q 'worker [01] ended with exit status 1' "$work/machine/var/log/tasks/rubato-coordinator.service.log" ||
    fail "nobody is told which worker has failed"
}

if [[ -n "${TEST_TMPDIR:-}" ]]; then
  say "passed; ./rubato.sh test-deploy runs the units as well"
  exit 0
fi
[[ "$(id -u)" == 0 ]] || skip "the units pass; a systemd of the test's own needs root"
need_packages util-linux iproute2 procps
a_lost_server_and_coordinator_come_back
[[ ! -x "$work/bin/linear_regression" ]] || workers_are_programs
say passed
