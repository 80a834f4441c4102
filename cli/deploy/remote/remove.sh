# shellcheck shell=sh disable=SC2154
# Deletes the job's folder.
rm -rf -- "$folder"
