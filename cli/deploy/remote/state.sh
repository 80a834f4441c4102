# shellcheck shell=sh disable=SC2154
# Says "<task> running <process>" or "<task> ended <exit status>" for each task that was started here.
[ -d "$folder/pids" ] || exit 0
cd -- "$folder" || exit 1
for file in pids/*; do
  [ -e "$file" ] || continue
  name=${file#pids/}
  process=$(cat "$file")
  if [ -e "exits/$name" ]; then
    echo "$name ended $(cut -d" " -f1 "exits/$name")"
  elif processes | grep -qx "$process"; then
    echo "$name running $process"
  else
    echo "$name killed"
  fi
done
