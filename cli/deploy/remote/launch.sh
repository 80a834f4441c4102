# shellcheck shell=sh disable=SC2154
# Prepares the job's folder, and has the functions that start tasks in it. Given: package, its id; on the standard
# input, the job config. What runs this script carries the job's mark, RUBATO_JOB, in its environment, and so do the tasks.
cd -- "$base" && mkdir -p "jobs/$job/run/logs" "jobs/$job/pids" "jobs/$job/exits" || exit 1
cat >"jobs/$job/job.textproto" || exit 1
started=
again=0

# start NAME PROGRAM ARGUMENTS...: in a session of its own. Its number is in pids/NAME, what it says in run/logs/NAME.log,
# and its exit status, once it has ended, in exits/NAME.
start() {
  name=$1
  program=$2
  shift 2
  [ ! -e "jobs/$job/stopped" ] || fail "the job is being stopped"
  # shellcheck disable=SC2016  # For the shell that is started.
  setsid sh -c '
    trap "" HUP
    # Caught, so that the status is still written when the whole session is asked to stop.
    trap : INT TERM
    folder=$1 name=$2 again=$3
    shift 3
    echo $$ >"$folder/pids/$name"
    while :; do
      "$@"
      status=$?
      # Over 128: a signal ended it.
      if [ "$status" -le 128 ] || [ "$again" -eq 0 ] || [ -e "$folder/stopped" ]; then break; fi
      again=$((again - 1))
      echo "$name ended with exit status $status and is started again ($again more times at most)"
    done
    echo "$status" >"$folder/exits/.$name" && mv "$folder/exits/.$name" "$folder/exits/$name"
  ' sh "jobs/$job" "$name" "$again" "packages/$package/bin/$program" --config "jobs/$job/job.textproto" "$@" \
    </dev/null >>"jobs/$job/run/logs/$name.log" 2>&1 &
  started="$started $name"
}

# start_again NAME PROGRAM ARGUMENTS...: the same for a task whose place nobody else takes. It is started again, up to
# three times, where a signal has ended it and the job is not being stopped.
start_again() {
  again=3
  start "$@"
  again=0
}

# await_sessions: until the tasks are in sessions of their own, where nothing that happens to this one reaches them.
await_sessions() {
  for name in $started; do
    tenths=100
    until [ -s "jobs/$job/pids/$name" ]; do
      tenths=$((tenths - 1))
      [ "$tenths" -gt 0 ] || fail "$name was not started"
      sleep 0.1
    done
  done
}

# await_coordinator SECONDS: prints the address that it listens on.
await_coordinator() {
  tenths=$(($1 * 10))
  while [ ! -s "jobs/$job/coordinator.address" ]; do
    if [ -e "jobs/$job/exits/coordinator" ]; then
      tail -n 15 "jobs/$job/run/logs/coordinator.log" >&2
      exit 3
    fi
    tenths=$((tenths - 1))
    [ "$tenths" -gt 0 ] || fail "the coordinator does not listen"
    sleep 0.1
  done
  cat "jobs/$job/coordinator.address"
}
