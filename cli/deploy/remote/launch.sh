# shellcheck shell=sh disable=SC2154
# Prepares the job's folder, and has the functions that start tasks in it. Given: package, its id; on the standard
# input, the job config. With no package nothing is prepared, for tasks that are only started again. What runs this script
# carries the job's mark, RUBATO_JOB, in its environment, and so do the tasks.
cd -- "$base" || exit 1
if [ -n "$package" ]; then
  mkdir -p "jobs/$job/run/logs" "jobs/$job/pids" "jobs/$job/exits" "jobs/$job/commands" || exit 1
  cat >"jobs/$job/job.textproto" || exit 1
fi
started=

# start NAME PROGRAM ARGUMENTS...: as start_again does. The command is in commands/NAME, a word on each line.
start() {
  name=$1
  program=$2
  shift 2
  printf '%s\n' "packages/$package/bin/$program" --config "jobs/$job/job.textproto" "$@" >"jobs/$job/commands/$name" ||
    exit 1
  start_again "$name"
}

# start_command NAME COMMAND...: the same for a task that is somebody's program, whose words have no line breaks. It gets to
# know where the package has the client, and where the job's credentials are.
start_command() {
  name=$1
  shift
  bin=$base/packages/$package/bin
  if [ -e "$bin/rubato-sidecar" ]; then set -- "RUBATO_SIDECAR=$bin/rubato-sidecar" "$@"; fi
  if [ -d "$folder/run/credentials" ]; then set -- "RUBATO_CREDENTIALS=$folder/run/credentials" "$@"; fi
  if [ -e "$bin/librubato_client.so" ]; then set -- "RUBATO_LIBRARY=$bin/librubato_client.so" "$@"; fi
  printf '%s\n' env "$@" >"jobs/$job/commands/$name" || exit 1
  start_again "$name"
}

# start_again NAME: a task whose command is known, in a session of its own. The session's number is in pids/NAME, what the
# task says in run/logs/NAME.log. A task that a signal ends is started again, unless the job is being stopped, at most five
# times within a minute: at once, then after 0.5 s, 1 s, 2 s and 4 s; each time "NAME STATUS" is added to events. The
# coordinator comes back at the port that it had. Once it has ended for good, its exit status and its session's number are
# in exits/NAME.
start_again() {
  name=$1
  [ ! -e "jobs/$job/stopped" ] || fail "the job is being stopped"
  rm -f "jobs/$job/exits/$name" "jobs/$job/pids/$name"
  # shellcheck disable=SC2016  # For the shell that is started.
  setsid sh -c '
    trap "" HUP
    # Caught, so that the status is still written when the whole session is asked to stop.
    trap : INT TERM
    folder=$1 name=$2
    echo $$ >"$folder/pids/$name"
    set --
    while IFS= read -r word; do set -- "$@" "$word"; done <"$folder/commands/$name"
    lost=
    while :; do
      if [ "$name" = coordinator ] && [ -s "$folder/coordinator.address" ]; then
        address=$(cat "$folder/coordinator.address")
        for word; do
          shift
          case $word in *:0) word=${word%0}${address##*:} ;; esac
          set -- "$@" "$word"
        done
      fi
      "$@"
      status=$?
      # Over 128: a signal ended it.
      if [ "$status" -le 128 ] || [ -e "$folder/stopped" ]; then break; fi
      now=$(date +%s)
      recent=
      times=0
      for time in $lost; do
        [ $((now - time)) -le 60 ] || continue
        recent="$recent $time"
        times=$((times + 1))
      done
      lost="$recent $now"
      case $times in
        0) delay=0 ;;
        1) delay=0.5 ;;
        2) delay=1 ;;
        3) delay=2 ;;
        4) delay=4 ;;
        *) break ;;
      esac
      echo "$name was killed by signal $((status - 128)); it is started again in $delay s"
      echo "$name $status" >>"$folder/events"
      sleep "$delay"
      if [ -e "$folder/stopped" ]; then break; fi
    done
    echo "$status $$" >"$folder/exits/.$name" && mv "$folder/exits/.$name" "$folder/exits/$name"
  ' sh "jobs/$job" "$name" </dev/null >>"jobs/$job/run/logs/$name.log" 2>&1 &
  started="$started $name"
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
