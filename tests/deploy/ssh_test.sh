#!/usr/bin/env bash
# `rubato deploy ssh` on three hosts with an ssh server each: MNIST in every mode, what is on the wire, a slow line, hosts that
# are lost in the middle, hosts that cannot be used or lack a credential, launchers that are interrupted, and two jobs at
# once. Takes --package FILE, of
# ./rubato.sh package, otherwise the programs of the build are packed; and the names of parts, otherwise all are run.
# shellcheck source=tests/deploy/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
# shellcheck source=tests/deploy/ssh_hosts.sh
source tests/deploy/ssh_hosts.sh

work="$(mktemp -d)"
capture=""
cleanup() {
  local status=$? left
  left="$(job_processes)"
  if [[ -n "$left" ]]; then
    status=1
    echo "left behind: $left" >&2
    # shellcheck disable=SC2086  # One argument per process.
    kill -9 $left
  fi
  if [[ -n "$capture" ]]; then kill "$capture" 2>/dev/null || true; fi
  remove_hosts
  if ((status != 0)); then tail -n 25 "$work"/*.out "$work"/h*/sshd.log 2>/dev/null || true; fi
  rm -rf "$work"
  exit "$status"
}
trap cleanup EXIT

[[ "$(id -u)" == 0 ]] || fail "network namespaces need root"
need_packages openssh-server openssh-client iproute2 binutils python3 tcpdump
[[ -f data/mnist/train-images-idx3-ubyte ]] || fail "MNIST is not there: fetch it with ./rubato.sh fetch-data"
rubato="$root/bazel-bin/cli/command/rubato"
[[ -x "$rubato" ]] || fail "there is no $rubato: build it with ./rubato.sh build"
parts=(modes a_comparison on_the_wire a_slow_line a_lost_worker a_lost_server bad_hosts bad_credentials a_bad_task
  interruptions two_jobs)
wanted=()
while (($# > 0)); do
  case "$1" in
    --package) package="${2:?--package needs a file}" && shift ;;
    --package=*) package="${1#*=}" ;;
    *)
      [[ " ${parts[*]} " == *" $1 "* ]] || fail "unknown argument $1; allowed: --package FILE, ${parts[*]}"
      wanted+=("$1")
      ;;
  esac
  shift
done
if [[ -z "${package:-}" ]]; then
  deploy/make_package.sh --any-libraries bazel-bin "$work" >/dev/null
  package="$(echo "$work"/rubato-*.tar.gz)"
fi
make_hosts

# deploy COMMAND ARGUMENTS...
deploy() { "$rubato" deploy ssh "$@"; }

# The command that starts a job on the hosts of the file, in $command: up_command RUN ARGUMENTS...
up_command() {
  local run="$work/$1"
  shift
  command=("$rubato" deploy ssh up "$work/hosts.textproto" "$@" --package "$package" --identity "$work/key"
    --run_directory "$run" --ssh_option StrictHostKeyChecking=no --ssh_option UserKnownHostsFile=/dev/null)
}
# up RUN ARGUMENTS...: runs it to its end. What it says is in RUN.out.
up() {
  up_command "$@"
  "${command[@]}" >"$work/$1.out" 2>&1
}
# launch RUN ARGUMENTS...: in the background; its process is $launcher.
launch() {
  up_command "$@"
  "${command[@]}" >"$work/$1.out" 2>&1 &
  launcher=$!
}
mnist=(configs/mnist_mlp_sync.textproto --copy data/mnist --set cluster.workers=3 --set cluster.lease_seconds=4)
dynamic=(--set data.dispatch=DYNAMIC --set optimizer.learning_rate=0.02)
teacher=(configs/teacher_mlp.textproto --set cluster.workers=3 --set cluster.lease_seconds=4 --set cluster.evaluators=1)

# fails STATUS RUN ARGUMENTS...: an up that ends with this exit status.
fails() {
  local expected="$1" status=0
  shift
  up "$@" || status=$?
  ((status == expected)) || fail "$1: exit status $status instead of $expected"
}
says() { grep -q -- "$2" "$work/$1.out" || fail "$1 does not say: $2"; }

final_accuracy() {
  grep '"final":true' "$work/$1/metrics.jsonl" | grep -o '"accuracy":[0-9.]*' | cut -d: -f2
}
# program_of JOB PROGRAM [INDEX]: the process of a task, not the shell that it is started from.
program_of() {
  local process
  for process in $(job_processes "$1"); do
    [[ "$(readlink "/proc/$process/exe")" == */"$2" ]] || continue
    [[ -z "${3:-}" ]] || (($(tr '\0' '\n' <"/proc/$process/cmdline" | grep -cx -- "$3") > 0)) || continue
    echo "$process"
  done
}
has_processes() { [[ -n "$(job_processes "$1")" ]]; }
nothing_left() { [[ -z "$(job_processes)" ]] || fail "$1: processes are left: $(job_processes)"; }

# The run record on the coordinator's host, while a job runs.
is_at_step() {
  local record
  record="$(find "$work/h1/its folder/jobs" -path "*/$1-*/run/metrics.jsonl" -newer "$work/mark")"
  [[ -n "$record" ]] && (($(last_value "$(dirname "$record")" step) >= $2))
}
# start RUN JOB STEP ARGUMENTS...: an up in the background, until the job has got to the step.
start() {
  local run="$1" job="$2" step="$3"
  shift 3
  touch "$work/mark"
  launch "$run" "$@" --set "name=$job"
  wait_for 90 "$run: step $step" is_at_step "$job" "$step"
}
ends() {
  local run="$1" expected="$2" status=0
  wait "$launcher" || status=$?
  ((status == expected)) || fail "$run: exit status $status instead of $expected"
}

modes() {
  local mode accuracy options
  write_hosts
  for mode in SYNC SSP ASYNC; do
    say "MNIST in $mode"
    options=(--set "consistency.mode=$mode")
    if [[ "$mode" != SYNC ]]; then options+=("${dynamic[@]}"); fi
    if [[ "$mode" == SSP ]]; then options+=(--set consistency.staleness_bound=2); fi
    up "$mode" "${mnist[@]}" --set training.max_steps=300 "${options[@]}" || fail "$mode"
    accuracy="$(final_accuracy "$mode")"
    at_least "$accuracy" 0.93 || fail "$mode: accuracy $accuracy"
    [[ -s "$work/$mode/report.html" && -s "$work/$mode/checkpoints/final/server-1.manifest" ]] ||
      fail "$mode: the run directory is not whole"
    "$rubato" audit "$work/$mode" >/dev/null || fail "$mode: the audit"
    nothing_left "$mode"
    say "  accuracy $accuracy"
  done
  # One for each host.
  [[ "$(find "$work"/h*/"its folder"/packages -maxdepth 1 -mindepth 1 | wc -l)" == 3 ]] || fail "packages were copied again"
}

a_comparison() {
  say "three modes and a quorum, compared on the hosts"
  local compared="$work/compared"
  "$rubato" compare "${mnist[@]}" --hosts="$work/hosts.textproto" --package "$package" --identity "$work/key" \
    --ssh_option StrictHostKeyChecking=no --ssh_option UserKnownHostsFile=/dev/null --run_directory "$compared" \
    --modes=sync,ssp:2,async --variant "quorum: consistency.quorum=2" --seeds=2 \
    --set training.max_steps=200 --set name=compared "${dynamic[@]}" >"$work/compared.out" 2>&1 || fail "compare"
  local run
  for run in "$compared"/*-seed[12]; do
    at_least "$(final_accuracy "compared/$(basename "$run")")" 0.9 || fail "$run: accuracy"
    "$rubato" audit "$run" >/dev/null || fail "$run: the audit"
  done
  [[ "$(find "$compared" -maxdepth 1 -name '*-seed[12]' | wc -l)" == 8 && -s "$compared/report.html" ]] ||
    fail "the comparison is not whole"
  [[ -z "$(find "$work"/h*/"its folder"/jobs -maxdepth 1 -name 'compared-*')" ]] ||
    fail "folders of runs that were brought are left"
  nothing_left compared
}

# captured NAME ARGUMENTS...: an up, during which all that the hosts say to each other, but for SSH, goes into NAME.pcap.
captured() {
  local name="$1"
  tcpdump -i "$bridge" -B 65536 -Z root -w "$work/$name.pcap" 'tcp and not port 22' 2>"$work/tcpdump.out" &
  capture=$!
  wait_for 20 "tcpdump listens" grep -q '^tcpdump: listening' "$work/tcpdump.out"
  up "$@" || fail "$name"
  kill -INT "$capture"
  wait "$capture" || fail "tcpdump: $(<"$work/tcpdump.out")"
  capture=""
  grep -qx '0 packets dropped by kernel' "$work/tcpdump.out" || fail "not everything was captured: $(<"$work/tcpdump.out")"
}
# Packets that begin with TLS's application data.
encrypted_packets() {
  tcpdump -r "$work/$1.pcap" -n 'tcp[((tcp[12:1] & 0xf0) >> 2):4] & 0xffffff00 = 0x17030300' 2>/dev/null | wc -l
}

on_the_wire() {
  say "weights on the wire: with certificates, as it is by default, and of an insecure job"
  local steps=60 name checkpoint tensor=hidden2.weight
  local -A found=() bytes=() encrypted=() setting=([certified]=false [plain]=true)
  write_hosts
  for name in plain certified; do
    # A rate that changes no bit, so that the weights of the first step are those of every step.
    captured "$name" "${teacher[@]}" --set cluster.servers=2 --set optimizer.learning_rate=1e-30 --set training.epochs= \
      --set "training.max_steps=$steps" --set "security.insecure=${setting[$name]}"
    (($(last_value "$work/$name" examples) == 3 * 32 * steps)) || fail "$name: not $steps steps of 3 workers"
    for checkpoint in step0 final; do
      "$rubato" export "$work/$name" --checkpoint="$checkpoint" --output="$work/$name-$checkpoint.safetensors" >/dev/null
    done
    found[$name]="$(tests/deploy/count_weights.py "$tensor" "$work/$name.pcap" "$work"/{plain,"$name"}-{step0,final}.safetensors)"
    bytes[$name]="$(stat --format=%s "$work/$name.pcap")"
    encrypted[$name]="$(encrypted_packets "$name")"
    rm "$work/$name.pcap"
    say "  $name: ${bytes[$name]} bytes captured, ${encrypted[$name]} packets of TLS; pieces of $tensor: ${found[$name]}"
  done
  # In each step each of the 64 pieces goes to two hosts; a few are cut by the end of a packet.
  ((found[plain] >= 64 * steps)) || fail "the weights are not where they should be seen"
  ((found[certified] == 0)) || fail "weights are in the clear"
  ((encrypted[plain] == 0 && encrypted[certified] > steps)) || fail "it is not TLS that hides them"
  at_least "${bytes[certified]}" "$((bytes[plain] * 9 / 10))" || fail "less was captured with certificates"
  nothing_left on_the_wire
}

a_slow_line() {
  say "a host behind 100 Mbit/s"
  shape 3 100mbit
  local steps=40
  up slow "${mnist[@]}" --set "training.max_steps=$steps" || fail "slow"
  unshape 3
  # 2.7 MB of gradients a step go one way, and as many of weights the other.
  at_least "$(last_value "$work/slow" t)" "$((steps * 27 * 8 / 1000))" || fail "slow: the line was not slow"
  "$rubato" audit "$work/slow" >/dev/null || fail "slow: the audit"
  nothing_left slow
}

a_lost_worker() {
  say "the host of a worker is cut off in the middle"
  start lost_worker lost-worker 20 "${mnist[@]}" --set training.max_steps=500
  cut_off 3
  ends lost_worker 1
  says lost_worker "worker 2 on $(address_of 3) is lost: no heartbeat for 4.0 s"
  says lost_worker "lost contact with $(address_of 3)"
  says lost_worker "may still run on these hosts"
  grep -q '"end":{.*"ok":true' "$work/lost_worker/metrics.jsonl" || fail "the others did not finish the job"
  at_least "$(final_accuracy lost_worker)" 0.9 || fail "accuracy $(final_accuracy lost_worker)"
  "$rubato" audit "$work/lost_worker" >/dev/null || fail "the audit"
  restore 3
  wait_for 30 "down" deploy down "$work/lost_worker" --remove
  nothing_left lost_worker
  [[ -z "$(find "$work"/h*/"its folder"/jobs -maxdepth 1 -name 'lost-worker-*')" ]] || fail "folders are left"
}

a_lost_server() {
  say "a server is killed, and the coordinator: their hosts start them again"
  start lost_server lost-server 150 "${mnist[@]}" --set training.max_steps=1500 --set checkpoint.every_steps=50
  # The server of the second host, which is the only one there.
  kill -9 "$(program_of lost-server server 1)"
  wait_for 60 "the job goes back" grep -q "^the job went back to step " "$work/lost_server.out"
  kill -9 "$(program_of lost-server coordinator)"
  ends lost_server 0
  says lost_server "^server 1 on .* was killed by signal 9; it is started again"
  says lost_server "^the coordinator on .* was killed by signal 9; it is started again"
  at_least "$(final_accuracy lost_server)" 0.93 || fail "accuracy $(final_accuracy lost_server)"
  "$rubato" audit "$work/lost_server" >/dev/null || fail "the audit"
  nothing_left lost_server
}

bad_hosts() {
  say "hosts that cannot be used"
  cp "$work/other_key.pub" "$work/h2/authorized_keys"
  mkdir -p "$work/h3/small"
  mounts 3 -t tmpfs -o size=4m tmpfs "$work/h3/small"
  write_hosts 'coordinator_port: 22'
  sed -i "s#h3/its folder#h3/small#" "$work/hosts.textproto"
  echo "hosts { host: \"${network}99\" workers: 1 }" >>"$work/hosts.textproto"
  fails 1 bad "${mnist[@]}" --set cluster.workers=4
  says bad "4 of 4 hosts cannot be used:"
  says bad "$(address_of 1): port 22 is taken"
  says bad "$(address_of 2): .*Permission denied"
  says bad "$(address_of 3): its disk is full"
  says bad "${network}99: .*\(No route to host\|timed out\)"
  nothing_left bad

  say "a disk that fills up while the package is copied"
  cp "$work/key.pub" "$work/h2/authorized_keys"
  write_hosts
  sed -i "s#h3/its folder#h3/small#" "$work/hosts.textproto"
  fails 1 full "${mnist[@]}" --min_free_mib 0
  says full "$(address_of 3): .*No space left on device"
  nothing_left full
}

bad_credentials() {
  say "a host without a credential, or with another one"
  # Where the config says that they are; the third host sees its own files there.
  local placed="$work/placed" own="$work/h3/placed" kind
  write_hosts
  "$rubato" credentials "${teacher[@]}" --directory="$placed" >/dev/null
  "$rubato" credentials "${teacher[@]}" --set name=other --directory="$work/other" >/dev/null
  mkdir -m 0700 "$own"
  mounts 3 --bind "$own" "$placed"
  # cannot_begin RUN TEXT: worker 2, which is there, for this reason.
  cannot_begin() {
    if up "$1" "${teacher[@]}" --set cluster.servers=2 --set "security.credentials=$placed"; then fail "$1: it has begun"; fi
    says "$1" "worker 2 on $(address_of 3) ended before the job could begin"
    says "$1" "$2"
    nothing_left "$1"
  }
  cannot_begin nothing "$placed has no certificates (ca.crt) to protect a network with; rubato credentials makes them"
  cp "$placed/ca.crt" "$placed/worker-2.crt" "$own"
  cannot_begin no_key "credentials of worker 2: .*$placed/worker-2.key: No such file"
  for kind in crt key; do cp "$placed/worker-1.$kind" "$own/worker-2.$kind"; done
  cannot_begin anothers "$placed/worker-2.crt: is the certificate of worker 1, not of worker 2"
  for kind in crt key; do cp "$work/other/worker-2.$kind" "$own"; done
  cannot_begin other_authority "$placed/worker-2.crt: is not vouched for by this authority"
  cp "$work/other/ca.crt" "$own"
  cannot_begin other_job "$placed/worker-2.crt: is of the job \"other\""
}

a_bad_task() {
  say "a task that cannot begin"
  write_hosts
  fails 1 no_data "${mnist[@]}" --set data.idx.train_images=absent
  says no_data "worker [0-9] on .* ended before the job could begin"
  says no_data "absent: No such file"
  nothing_left no_data
}

interruptions() {
  local signal
  write_hosts
  for signal in INT TERM HUP; do
    say "the launcher gets SIG$signal"
    start "signal_$signal" interrupted 10 "${teacher[@]}" --set training.epochs=1000
    kill "-$signal" "$launcher"
    ends "signal_$signal" 1
    says "signal_$signal" "stopped by a signal"
    grep -q '"end":{.*"ok":false' "$work/signal_$signal/metrics.jsonl" || fail "the run record has no end"
    nothing_left "signal_$signal"
  done

  say "the launcher is killed while it starts the job"
  launch killed "${teacher[@]}" --set training.epochs=1000 --set name=killed
  wait_for 60 "the coordinator" has_processes killed
  kill -9 "$launcher"
  ends killed 137
  deploy down "$work/killed" || fail "down"
  nothing_left killed
}

two_jobs() {
  say "two jobs on the same hosts"
  start first first 10 "${teacher[@]}" --set training.epochs=1000 --detach
  ends first 0
  start second second 10 "${teacher[@]}" --set training.epochs=10
  deploy status "$work/first" >"$work/status.out" || fail "status"
  says status "$(address_of 3): worker-2 running"
  says status "SYNC"
  deploy logs "$work/first" worker-1 --lines 3 >"$work/logs.out" || fail "logs"
  says logs "== worker-1"
  deploy down "$work/first" || fail "down"
  [[ -z "$(job_processes first)" ]] || fail "the first job is not down"
  ends second 0
  says second 'Report: '
  nothing_left second
}

write_hosts
for part in "${wanted[@]:-${parts[@]}}"; do "$part"; done
say passed
