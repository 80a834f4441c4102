#!/usr/bin/env bash
# The doctor finds nothing wrong with a machine that runs these tests, measures the data path to another doctor, and says by
# its exit status when there is a problem.
# shellcheck source=tests/e2e/common.sh
source tests/e2e/common.sh

"$rubato" doctor --serve --listen=127.0.0.1:0 >"$work/serve.txt" &
peer=$!
wait_for 10 "the peer listens" grep -q "Answers on port" "$work/serve.txt"
port="$(grep -o '[0-9]\+' "$work/serve.txt" | head -n 1)"
config="$root/configs/teacher_mlp.textproto"
"$rubato" doctor --config="$config" --set "run_directory=$work/run" --port=0 --peer="127.0.0.1:$port" |
  tee "$work/good.txt" || fail "a problem was found on a good machine"
for subject in versions config data cpu device memory "shared memory" "open files" clock disk loopback "peer 127.0.0.1"; do
  grep -Eq "^(ok|warning) +$subject" "$work/good.txt" || fail "nothing is said of: $subject"
done
[[ ! -e "$work/run" ]] || fail "the run directory was made"

# The port is taken, the peer is gone, the config is bad: each is a problem with a next step.
status=0
"$rubato" doctor --port="$port" >"$work/port.txt" || status=$?
((status == 1)) || fail "exit status $status for a port that is taken"
grep -q "^PROBLEM  port $port" "$work/port.txt" || fail "the port that is taken is not named"
kill -INT "$peer"
wait "$peer" || fail "the peer did not end well"
if "$rubato" doctor --port=0 --peer="127.0.0.1:$port" >"$work/peer.txt"; then fail "a peer that is gone is no problem"; fi
grep -A1 "^PROBLEM  peer 127.0.0.1:$port" "$work/peer.txt" | finds -- "-> start .rubato doctor --serve. there" ||
  fail "no next step for a peer that is gone"
if "$rubato" doctor --port=0 --config="$config" --set training.batch_size=0 >"$work/config.txt"; then
  fail "a bad config is no problem"
fi
grep -q "training.batch_size: value 0" "$work/config.txt" || fail "the bad field is not named"
say passed
