# shellcheck shell=sh disable=SC2154,SC2045
# Says what happens to the tasks, a line each, in the order in which it did, until all have ended. Given: tasks, how many
# there are.
#   again NUMBER TASK STATUS   it was started again after it ended so; numbered from 1
#   exit TASK STATUS SESSION   it has ended
#   gone TASK SESSION          nobody knows how it ended: the host was started again
cd -- "$folder" && [ -d exits ] || exit 1
running=$(processes)
for file in pids/*; do
  name=${file#pids/}
  if [ ! -s "$file" ] || [ -e "exits/$name" ]; then continue; fi
  session=$(cat "$file")
  if printf '%s\n' "$running" | grep -qx "$session" || kill -0 "$session" 2>/dev/null; then continue; fi
  echo "gone $name $session"
done
seen='|'
told=0
while :; do
  events=0
  [ ! -e events ] || events=$(wc -l <events)
  while [ "$told" -lt "$events" ]; do
    told=$((told + 1))
    echo "again $told $(sed -n "${told}p" events)"
  done
  ended=0
  for name in $(ls -tr exits); do
    ended=$((ended + 1))
    line="$name $(cat "exits/$name" 2>/dev/null)"
    case $seen in *"|$line|"*) continue ;; esac
    echo "exit $line"
    seen="$seen$line|"
  done
  [ "$ended" -lt "$tasks" ] || break
  # Fails, and so ends this, when nobody listens any more.
  echo alive || exit 1
  sleep 0.5
done
