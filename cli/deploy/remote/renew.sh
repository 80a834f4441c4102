# shellcheck shell=sh disable=SC2154
# Makes the folder of a job of which nothing runs any more ready for another start, which goes on with what is in it.
# Given: journal, not empty where the coordinator was, whose journal must be there.
if [ -n "$journal" ] && [ ! -s "$folder/run/journal" ]; then
  fail "$folder/run holds no journal of a job to go on with"
fi
rm -rf -- "$folder/stopped" "$folder/exits" "$folder/pids" "$folder/commands" "$folder/events" \
  "$folder/coordinator.address"
