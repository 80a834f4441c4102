#!/usr/bin/env bash
# The units of deploy/systemd, as systemd itself judges them: what they say is understood, and how much they leave open.
# shellcheck source=tests/deploy/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

need_packages systemd
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
gather_programs "$work/bin" "$@"

# Programs that are there, in the place of those that are installed elsewhere.
for unit in deploy/systemd/*.service; do
  sed 's#/usr/lib/rubato/bin/[a-z]*#/bin/true#' "$unit" >"$work/$(basename "$unit")"
done
units=("$work"/*.service)
((${#units[@]} == 4)) || fail "${#units[@]} units instead of 4"

say "systemd-analyze verify"
said="$(systemd-analyze --man=no verify "${units[@]}" 2>&1)" || fail "$said"
# It only warns of what it does not know.
complaints="$(grep -F "$work" <<<"$said" || true)"
[[ -z "$complaints" ]] || fail "$complaints"

say "systemd-analyze security"
for unit in "${units[@]}"; do
  # In tenths; 2.0 of 10 is "OK", without protection it is over 9.
  systemd-analyze --no-pager security --offline=true --threshold=20 "$unit" >"$work/security" ||
    fail "$(tail -n 1 "$work/security")"
  tail -n 1 "$work/security"
done

say "gpus"
for unit in deploy/systemd/*.service; do
  grep -q '^DeviceAllow=char-nvidia' "$unit" || continue
  for setting in Wants After; do
    grep -qx "$setting=nvidia-persistenced.service" "$unit" || fail "$unit: no $setting=nvidia-persistenced.service"
  done
done

say "what is started again"
for unit in deploy/systemd/*.service; do
  if [[ "$unit" == */rubato-coordinator.service ]]; then
    # Its exit status 1 is its job's.
    expected=("Restart=on-abnormal")
    grep -q '^ExecStart=.* --resume$' "$unit" || fail "$unit: a coordinator that is started again does not resume"
  else
    expected=("Restart=on-failure" "RestartPreventExitStatus=2")
  fi
  for line in "${expected[@]}"; do grep -qx -- "$line" "$unit" || fail "$unit: no $line"; done
done

# Each program knows the options that its unit gives it.
say "options"
for unit in deploy/systemd/*.service; do
  program="$(sed -nE 's#^ExecStart=/usr/lib/rubato/bin/([a-z]+) .*#\1#p' "$unit")"
  help="$("$work/bin/$program" --help)"
  grep "^ExecStart=" "$unit" | grep -o -- "--[a-z_]*" | while read -r option; do
    grep -q -- "$option" <<<"$help" || fail "$unit: $program has no option $option"
  done
done
say passed
