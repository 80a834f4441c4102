# shellcheck shell=sh disable=SC2154,SC2045
# Says "exit <task> <status>" for each task that ends, until all have, in the order in which they did. Given: tasks, how
# many there are.
cd -- "$folder/exits" || exit 1
seen=' '
count=0
while [ "$count" -lt "$tasks" ]; do
  for name in $(ls -tr); do
    case $seen in *" $name "*) continue ;; esac
    echo "exit $name $(cat "$name")"
    seen="$seen$name "
    count=$((count + 1))
  done
  # Fails, and so ends this, when nobody listens any more.
  echo alive || exit 1
  sleep 0.5
done
