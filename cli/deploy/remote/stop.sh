# shellcheck shell=sh disable=SC2154
# Ends all processes of the job, and says who does not go. Given: grace, how many seconds they have to end by themselves.
if [ -d "$folder" ]; then : >"$folder/stopped"; fi
signal_all() {
  for process in $(processes); do kill "-$1" "$process" 2>/dev/null; done
}
# await_end SECONDS: until none is left.
await_end() {
  tenths=$(($1 * 10))
  while [ -n "$(processes)" ]; do
    [ "$tenths" -gt 0 ] || return 1
    tenths=$((tenths - 2))
    sleep 0.2
  done
}
signal_all TERM
await_end "$grace" && exit 0
for attempt in 1 2 3 4 5; do
  signal_all KILL
  await_end 1 && exit 0
done
fail "processes that cannot be ended after $attempt attempts: $(processes | tr '\n' ' ')"
