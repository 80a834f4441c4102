#!/bin/sh
# Every subject does its work and ends with the right weights; the figures of so short a run mean nothing.
set -eu
"$1" --sizes=4096,65536 --in_flight=1,8 --rounds=1 --seconds=0.02 --cycle_bytes=1048576
"$1" --sizes=4096,65536 --in_flight=1,8 --rounds=1 --seconds=0.02 --cycle_bytes=1048576 --tls
