# shellcheck shell=bash disable=SC2154  # root and work are the test's.
# Sourced by slurm_test.sh: a Slurm cluster of three nodes with two (pretended) GPUs each, all on this machine, with
# sockets, ports, keys and logs of its own in $work.

slurm_daemons=()

# Three unused ports and more behind each.
free_port() {
  local port
  for ((port = 20000 + RANDOM % 20000; ; ++port)); do
    if ! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
      echo "$port"
      return
    fi
  done
}

write_slurm_conf() {
  local host node
  host="$(hostname)"
  cat >"$work/slurm.conf" <<CONF
ClusterName=rubato-test
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$(free_port)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$work/munge/socket,cred_expire=5
CryptoType=crypto/munge
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool-%n
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd-%n.pid
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/slurmd-%n.log
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=batch_sched_delay=0,sched_interval=1
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
ReturnToService=2
MpiDefault=none
KillWait=30
GresTypes=gpu
CONF
  for node in 1 2 3; do
    echo "NodeName=n$node NodeHostname=$host NodeAddr=127.0.0.1 Port=$(free_port) CPUs=4 RealMemory=4000 Gres=gpu:2"
    # Devices as good as any: Slurm counts them, and nothing opens them.
    mknod "$work/gpu$node-0" c 1 3
    mknod "$work/gpu$node-1" c 1 3
    echo "NodeName=n$node Name=gpu File=$work/gpu$node-[0-1]" >>"$work/gres.conf"
  done >>"$work/slurm.conf"
  echo "PartitionName=main Nodes=n[1-3] Default=YES MaxTime=INFINITE State=UP" >>"$work/slurm.conf"
}

# start_daemon NAME COMMAND...
start_daemon() {
  local name="$1"
  shift
  "$@" >"$work/$name.out" 2>&1 &
  slurm_daemons+=($!)
}

start_slurm() {
  export SLURM_CONF="$work/slurm.conf"
  mkdir -p "$work/state" "$work/munge"
  write_slurm_conf
  dd if=/dev/urandom of="$work/munge/key" bs=1 count=1024 status=none
  chmod 0400 "$work/munge/key"
  chmod 0755 "$work/munge"
  chown -R munge: "$work/munge"
  # mktemp's folder is its owner's alone.
  chmod 0755 "$work"
  start_daemon munged setpriv --reuid=munge --regid=munge --clear-groups munged --foreground \
    --socket="$work/munge/socket" --key-file="$work/munge/key" --pid-file="$work/munge/pid" \
    --log-file="$work/munge/log" --seed-file="$work/munge/seed"
  wait_for 10 "munged listens" test -S "$work/munge/socket"
  start_daemon slurmctld slurmctld -D
  for node in n1 n2 n3; do start_daemon "slurmd-$node" slurmd -D -N "$node"; done
  wait_for 30 "three nodes are idle" nodes_are_idle
}

nodes_are_idle() { [[ "$(sinfo --noheader --Node --format=%t | sort | uniq -c | awk '{ print $1, $2 }')" == "3 idle" ]]; }
queue_is_empty() { [[ -z "$(squeue --noheader)" ]]; }

stop_slurm() {
  scancel --user=root 2>/dev/null || true
  for ((i = 0; i < 60; ++i)); do
    queue_is_empty 2>/dev/null && break
    sleep 0.5
  done
  # munged last: the others speak through it.
  local index
  for ((index = ${#slurm_daemons[@]} - 1; index >= 0; --index)); do
    kill "${slurm_daemons[index]}" 2>/dev/null || true
    wait "${slurm_daemons[index]}" 2>/dev/null || true
  done
}
