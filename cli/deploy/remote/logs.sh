# shellcheck shell=sh disable=SC2154
# Prints the ends of logs. Given: lines, of each; names, of the tasks.
for name in $names; do
  echo "== $name"
  tail -n "$lines" -- "$folder/run/logs/$name.log" || exit 1
done
