#!/usr/bin/env bash
# The units of deploy/systemd, as systemd itself judges them: what they say is understood, and how much they leave open.
# Then a systemd of its own (systemd_machine.sh) runs them as jobs over TLS, with the credentials of each unit, and a server
# and the coordinator are killed; that needs root, and `bazel test` leaves it out.
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
((${#units[@]} == 6)) || fail "${#units[@]} units instead of 6"

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

# start_of UNIT: its ExecStart=, as one line.
start_of() { sed ':a; /\\$/N; s/\\\n *//; ta' "$1" | grep '^ExecStart='; }

say "what is started again"
for unit in deploy/systemd/*.service; do
  case "$unit" in
    */rubato-coordinator.service)
      # Its exit status 1 is its job's.
      expected=("Restart=on-abnormal")
      start_of "$unit" | grep -q -- '--resume$' || fail "$unit: a coordinator that is started again does not resume"
      ;;
    */rubato-program@.service)
      # Somebody's program that fails by itself ends the job.
      expected=("Restart=on-abnormal" "OnFailure=rubato-program-failed@%i.service")
      ;;
    */rubato-program-failed@.service) expected=("Restart=on-failure") ;;
    *) expected=("Restart=on-failure" "RestartPreventExitStatus=2") ;;
  esac
  for line in "${expected[@]}"; do grep -qx -- "$line" "$unit" || fail "$unit: no $line"; done
done

# unit_credentials UNIT: what the unit is to have, one a line, as sorted.
unit_credentials() {
  local name
  {
    echo ca.crt
    for name in $(unit_identities "$1"); do printf '%s\n' "$name.crt" "$name.key"; done
  } | sort
}
unit_identities() {
  local task="${1#rubato-}"
  case "$task" in
    coordinator) echo coordinator-0 ;;
    program@*) echo "worker-${task#*@}" ;;
    program-failed@*) echo operator ;;
    *) echo "${task/@/-}" ;;
  esac
}

say "credentials"
for unit in deploy/systemd/*.service; do
  name="$(basename "$unit" .service)"
  if [[ "$name" == *@ ]]; then name+="%i"; fi
  [[ "$(sed -n 's/^LoadCredential=//p' "$unit" | sort)" == "$(unit_credentials "$name" | sed 's/.*/&:rubato.&/')" ]] ||
    fail "$unit: LoadCredential= is not of the files of its own task"
done

# Each program knows the options that its unit gives it.
say "options"
for unit in deploy/systemd/*.service; do
  program="$(sed -nE 's#^ExecStart=/usr/lib/rubato/bin/([a-z]+) .*#\1#p' "$unit")"
  [[ -n "$program" ]] || continue  # Somebody's.
  help="$("$work/bin/$program" --help)"
  start_of "$unit" | grep -o -- "--[a-z_]*" | while read -r option; do
    grep -q -- "$option" <<<"$help" || fail "$unit: $program has no option $option"
  done
done

servers=(rubato-server@0 rubato-server@1)
workers=(rubato-worker@0 rubato-worker@1)
others=(rubato-coordinator "${servers[@]}" rubato-evaluator@0)
job_units=("${others[@]}" "${workers[@]}")

no_processes() { [[ -z "$(find "$cgroup" -name cgroup.procs -exec cat {} +)" ]]; }

# in_machine COMMAND...
in_machine() { nsenter --target "$(pgrep -P "$machine")" --all "$@"; }
# on_its_network COMMAND...: with this machine's files.
on_its_network() { nsenter --target "$(pgrep -P "$machine")" --net "$@"; }

# enable UNIT...: as they are when the machine starts, or reads its units again. Others are forgotten when they have ended.
enable() { systemctl --quiet --root="$work/machine" enable "$@" || fail "units cannot be enabled: $*"; }

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
  enable "${others[@]}"
  "$work/bin/rubato" config configs/teacher_mlp.textproto "$@" >"$etc/rubato/job.textproto"
}

store="$work/machine/etc/credstore"
# make_credentials FOLDER ARGUMENTS...: for the machine's job.
make_credentials() {
  local folder="$1"
  shift
  "$work/bin/rubato" credentials "$work/machine/etc/rubato/job.textproto" "$@" --directory="$folder" >/dev/null
}
# install_credentials FOLDER UNIT...: what these need, and nothing else, into the machine's /etc/credstore.
install_credentials() {
  local folder="$1" unit name
  shift
  rm -rf "$store"
  mkdir -m 0700 "$store"
  for unit in "$@"; do
    for name in $(unit_credentials "$unit"); do install -m 0600 "$folder/$name" "$store/rubato.$name"; done
  done
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

# All units end well, 60 s after the run's last step at the latest.
units_end_well() {
  local deadline=$((SECONDS + 60)) unit step before=0
  for unit in "${job_units[@]}"; do
    until unit_is "$unit" ActiveState=inactive Result=success ExecMainCode=1 ExecMainStatus=0; do
      step="$(last_value "$run" step)"
      if ((step > before)); then deadline=$((SECONDS + 60)) before="$step"; fi
      ((SECONDS < deadline)) || fail "$unit has not ended well 60 s after step $step: $(in_machine systemctl status "$unit" || true)"
      sleep 0.2
    done
  done
}

# log_of UNIT
log_of() { echo "$work/machine/var/log/tasks/$1.service.log"; }
listens_on() { sed -nE 's/.* listens on port ([0-9]+)$/127.0.0.1:\1/p' "$(log_of "$1")" | tail -n 1 | grep .; }

has_own_credentials() {
  local unit
  for unit in "$@"; do
    [[ "$(in_machine ls "/run/credentials/$unit.service" | sort)" == "$(unit_credentials "$unit")" ]] ||
      fail "$unit has other credentials: $(in_machine ls "/run/credentials/$unit.service")"
    ! in_machine setpriv --reuid=nobody --regid=nogroup --clear-groups ls "/run/credentials/$unit.service" 2>/dev/null ||
      fail "others see the credentials of $unit"
  done
}

# While there are no workers: what is asked here takes longer than some machines train.
members_alone_are_heard() {
  say "each unit has its own credentials, and who has none is refused"
  local unit address=127.0.0.1:7070 credentials="$work/credentials" said
  for unit in "${servers[@]}"; do wait_for 30 "$unit listens" listens_on "$unit"; done
  has_own_credentials "${others[@]}"
  wait_for 30 "an operator is heard" on_its_network "$work/bin/rubato" status "$address" --credentials="$credentials"
  if said="$(on_its_network "$work/bin/rubato" status "$address" 2>&1)"; then fail "who has no credentials is told: $said"; fi
  grep -qF "nothing answers at $address" <<<"$said" || fail "the refusal is: $said"
  for address in "$address" "$(listens_on rubato-server@0)" "$(listens_on rubato-server@1)"; do
    # shellcheck disable=SC2016  # For the shell that runs it.
    on_its_network bash -c 'source tests/deploy/common.sh; needs_a_certificate "$@"' - "$address" "$credentials" ||
      fail "see above"
  done
}

a_lost_server_and_coordinator_come_back() {
  say "kill -9 of a server and of the coordinator: systemd starts them again"
  local run="$work/machine/var/lib/rubato/run"
  write_etc --set run_directory=run --set training.epochs=30 --set checkpoint.every_steps=500
  make_credentials "$work/credentials"
  install_credentials "$work/credentials" "${job_units[@]}"
  start_machine
  members_alone_are_heard
  enable "${workers[@]}"
  in_machine systemctl daemon-reload
  in_machine systemctl start --no-block "${workers[@]}"
  wait_for 60 "training begins" has_step 1500
  has_own_credentials "${workers[@]}"
  is_killed rubato-server@1
  wait_for 60 "the job goes back" grep -q '"rollback":{' "$run/metrics.jsonl"
  wait_for 60 "and goes on" has_step $(($(last_value "$run" step) + 1000))
  is_killed rubato-coordinator
  wait_for 60 "the job goes on" has_step $(($(last_value "$run" step) + 1000))
  units_end_well
  grep -q '"end":{.*"ok":true' "$run/metrics.jsonl" || fail "the job did not end well"
  at_least "$(last_value "$run" accuracy)" 0.9 || fail "held-out accuracy $(last_value "$run" accuracy)"
  "$work/bin/rubato" audit "$run" >/dev/null || fail "the audit found a broken invariant"
  say "held-out accuracy $(last_value "$run" accuracy)"
}

# refuses UNIT TEXT...: it is not started again, and its log has each text, and the command that helps.
refuses() {
  local unit="$1" text
  shift
  rm -f "$(log_of "$unit")"
  in_machine systemctl start "$unit"
  wait_for 30 "$unit refuses to begin" unit_is "$unit" ActiveState=failed Result=exit-code ExecMainStatus=2
  for text in "$@" "rubato credentials makes them" "from /etc/credstore"; do
    grep -qF -- "$text" "$(log_of "$unit")" || fail "$unit does not say \"$text\": $(<"$(log_of "$unit")")"
  done
  in_machine systemctl reset-failed "$unit"
}

missing_credentials_are_named() {
  say "a host without a credential, or with another one"
  local unit kind run=/run/credentials
  make_credentials "$work/other" --set name=other
  for kind in key crt; do
    mv "$store/rubato.server-0.$kind" "$work/"
    refuses rubato-server@0 "credentials of server 0: " "$run/rubato-server@0.service/server-0.$kind: No such file or directory"
    mv "$work/rubato.server-0.$kind" "$store/"
  done
  for kind in key crt; do cp "$store/rubato.server-1.$kind" "$store/rubato.server-0.$kind"; done
  refuses rubato-server@0 "$run/rubato-server@0.service/server-0.crt: is the certificate of server 1, not of server 0"
  install_credentials "$work/other" rubato-worker@0
  refuses rubato-worker@0 "$run/rubato-worker@0.service/worker-0.crt: is of the job \"other\""
  rm "$store"/*
  for unit in "${job_units[@]}"; do refuses "$unit" "$run/$unit.service has no certificates (ca.crt)"; done
}

# program_job NAME COMMAND SETTINGS...: a job in the same machine whose workers are this command, as rubato-program@.
# Its credentials are in the machine, unless it is insecure.
program_job() {
  local etc="$work/machine/etc/rubato" name="$1" command="$2" unit
  shift 2
  program_units=(rubato-coordinator rubato-server@0 rubato-server@1 rubato-program@0 rubato-program@1)
  "$work/bin/rubato" config --client deploy/k8s/overlays/program/job.textproto --set "run_directory=$name" "$@" \
    >"$etc/job.textproto"
  sed "s#^COMMAND=.*#COMMAND=$command#" deploy/systemd/rubato.conf >"$etc/rubato.conf"
  if grep -q 'insecure: true' "$etc/job.textproto"; then
    rm -rf "$store"
    sed -i 's/^#\(CREDENTIALS=\)$/\1/' "$etc/rubato.conf"
  else
    make_credentials "$work/credentials-of-$name"
    install_credentials "$work/credentials-of-$name" "${program_units[@]}" rubato-program-failed@0
  fi
  for unit in "${program_units[@]}"; do in_machine systemctl start --no-block "$unit"; done
}

# programs_learn NAME SETTINGS...: a job of two of our example.
programs_learn() {
  local run="$work/machine/var/lib/rubato/$1" log unit
  log="$(log_of rubato-program@1)"
  rm -f "$log"
  program_job "$1" "/bin/sh /var/lib/regression.sh" "${@:2}"
  wait_for 60 "the job ends" grep -q '"end":{.*"ok":true' "$run/metrics.jsonl"
  for unit in "${program_units[@]}"; do
    # Units that nothing wants are forgotten when they have ended, unless they failed.
    wait_for 30 "$unit ends well" unit_is "$unit" ActiveState=inactive Result=success
  done
  grep -q 'worker 1 learned y = ' "$log" || fail "worker 1 has not learned"
}

workers_are_programs() {
  say "workers that are somebody's program"
  # shellcheck disable=SC2016  # For the workers' shell.
  printf '%s\n' 'export LD_LIBRARY_PATH="${RUBATO_LIBRARY%/*}"' \
    'exec /usr/lib/rubato/bin/linear_regression "$RUBATO_COORDINATOR" "$RUBATO_RANK" "$RUBATO_SIDECAR"' \
    >"$work/machine/var/lib/regression.sh"
  programs_learn program --set security.insecure=false
  say "and an insecure job of them, without credentials"
  programs_learn insecure --set security.insecure=true

  say "a program that fails ends the job"
  program_job failed "/bin/sh -c false" --set security.insecure=false
  wait_for 60 "the coordinator ends" unit_is rubato-coordinator Result=exit-code ExecMainStatus=1
  grep -q 'worker [01] ended with exit status 1' "$(log_of rubato-coordinator)" || fail "nobody is told which worker has failed"
}

if [[ -n "${TEST_TMPDIR:-}" ]]; then
  say "passed; ./rubato.sh test-deploy runs the units as well"
  exit 0
fi
[[ "$(id -u)" == 0 ]] || skip "the units pass; a systemd of the test's own needs root"
need_packages util-linux iproute2 procps openssl
a_lost_server_and_coordinator_come_back
missing_credentials_are_named
[[ ! -x "$work/bin/linear_regression" ]] || workers_are_programs
say passed
