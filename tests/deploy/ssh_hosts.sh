# shellcheck shell=bash
# Sourced by ssh_test.sh: three hosts as network namespaces on a bridge, each with processes, a name and an ssh server of
# its own. They share the disk, on which each has a folder, $work/hN, and nothing else. Needs root.

prefix=rbt$((BASHPID % 10000))
bridge="$prefix"
network=10.214.$((BASHPID % 200)).
hosts=(1 2 3)
declare -A server_of=()

address_of() { printf '%s%s' "$network" "$((10 + $1))"; }
inside() {
  local host="$1"
  shift
  ip netns exec "$prefix-h$host" "$@"
}

add_host() {
  local host="$1"
  mkdir -p "$work/h$host"
  cp "$work/key.pub" "$work/h$host/authorized_keys"
  ip netns add "$prefix-h$host"
  ip link add "$prefix-$host" type veth peer name eth0 netns "$prefix-h$host"
  ip link set "$prefix-$host" master "$bridge" up
  inside "$host" ip address add "$(address_of "$host")/24" dev eth0
  inside "$host" ip link set eth0 up
  inside "$host" ip link set lo up
  # Not by `inside`: what is in the background is then the host's own first process, which takes all others with it.
  ip netns exec "$prefix-h$host" unshare -umpf --kill-child --mount-proc sh -c "hostname h$host; /usr/sbin/sshd -f /dev/null \
    -o ListenAddress=$(address_of "$host") -o HostKey=$work/host_key -o PidFile=none -o StrictModes=no -o UsePAM=no \
    -o AuthorizedKeysFile=$work/h$host/authorized_keys -o MaxStartups=100 -E $work/h$host/sshd.log
    while :; do sleep 1000; done" &
  server_of[$host]=$!
}

make_hosts() {
  local host
  mkdir -p /run/sshd
  ssh-keygen -q -t ed25519 -N '' -f "$work/key"
  ssh-keygen -q -t ed25519 -N '' -f "$work/other_key"
  ssh-keygen -q -t ed25519 -N '' -f "$work/host_key"
  ip link add "$bridge" type bridge
  ip address add "${network}1/24" dev "$bridge"
  ip link set "$bridge" up
  for host in "${hosts[@]}"; do add_host "$host"; done
}

remove_hosts() {
  local host
  for host in "${hosts[@]}"; do
    # Its processes end with the first one of them.
    if [[ -n "${server_of[$host]:-}" ]]; then
      kill -9 "${server_of[$host]}" 2>/dev/null || true
      wait "${server_of[$host]}" 2>/dev/null || true
    fi
    ip netns delete "$prefix-h$host" 2>/dev/null || true
  done
  ip link delete "$bridge" 2>/dev/null || true
}

# mounts HOST ARGUMENTS...: mounts what the host alone sees.
mounts() {
  local host="$1"
  shift
  nsenter -t "$(pgrep -P "${server_of[$host]}")" -m mount "$@"
}

cut_off() { ip link set "$prefix-$1" down; }
restore() { ip link set "$prefix-$1" up; }

# shape HOST RATE: both directions.
shape() {
  local direction
  for direction in "ip netns exec $prefix-h$1 tc qdisc add dev eth0" "tc qdisc add dev $prefix-$1"; do
    # shellcheck disable=SC2086  # Words.
    $direction root tbf rate "$2" burst 128kb latency 200ms
  done
}
unshape() {
  inside "$1" tc qdisc del dev eth0 root
  tc qdisc del dev "$prefix-$1" root
}

# Processes on the hosts: those of the jobs whose names begin with $1, of all jobs without one.
job_processes() {
  local host process
  for host in "${hosts[@]}"; do
    for process in $(ip netns pids "$prefix-h$host" 2>/dev/null || true); do
      if grep -qzE "^RUBATO_JOB=${1:-}" "/proc/$process/environ" 2>/dev/null; then echo "$process"; fi
    done
  done
}

# The hosts file, in $work/hosts.textproto: its arguments are lines that are put into it.
write_hosts() {
  local host roles
  {
    printf '%s\n' "$@"
    for host in "${hosts[@]}"; do
      roles="workers: 1"
      if ((host == 1)); then roles="coordinator: true servers: 1 workers: 1 evaluators: 1"; fi
      if ((host == 2)); then roles="servers: 1 workers: 1"; fi
      printf 'hosts { host: "%s" user: "root" directory: "%s/h%s/its folder" %s }\n' "$(address_of "$host")" "$work" \
        "$host" "$roles"
    done
  } >"$work/hosts.textproto"
}
