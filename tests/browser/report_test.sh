#!/usr/bin/env bash
# The HTML report in a real browser, 1400 and 400 pixels wide, light and dark: its scripts make no error, every chart is
# drawn, nothing stands out of it or of the window, no text covers another, and charts and tables can be saved as files. With TEST_UNDECLARED_OUTPUTS_DIR pictures of it are kept.
set -euo pipefail
# shellcheck source=tests/skip.sh
source tests/skip.sh

browser="$(command -v chromium || command -v chromium-browser || true)"
[[ -n "$browser" ]] || skip "there is no Chromium here"
work="$(mktemp -d "${TEST_TMPDIR:-/tmp}/browser.XXXXXX")"

fail() {
  printf 'FAILED: %s\n' "$*" >&2
  exit 1
}

# browse COLORS ARGUMENTS..: COLORS is 0 for a dark and 1 for a light page.
browse() {
  local colors="$1"
  shift
  HOME="$work" timeout 120 "$browser" --headless --no-sandbox --disable-gpu --user-data-dir="$work/profile" \
    --blink-settings=preferredColorScheme="$colors" --hide-scrollbars --virtual-time-budget=10000 "$@" 2>"$work/browser.log"
}

tests/browser/write_report "$work/plain.html"
{
  sed '/<script type="application\/json"/,$d' "$work/plain.html"
  printf '<script>\n'
  cat tests/browser/measure.js
  printf '</script>\n'
  sed -n '/<script type="application\/json"/,$p' "$work/plain.html"
} >"$work/report.html"

# No window is narrower than 500 pixels, but a frame in it may be.
for width in 1400 400; do
  cat >"$work/frame$width.html" <<HTML
<!doctype html>
<meta name="color-scheme" content="light dark">
<body style="margin: 0"><iframe src="report.html" style="border: 0; width: ${width}px; height: 6000px"></iframe>
<script>
addEventListener("message", (event) => {
  document.body.append(Object.assign(document.createElement("pre"), {textContent: event.data}));
});
</script>
HTML
done

# has VERDICT TEXT WHAT
has() { [[ "$1" == *"$2"* ]] || fail "$3: $1"; }

inks=()
for width in 1400 400; do
  for colors in 1 0; do
    place="$width pixels, $([[ "$colors" == 0 ]] && echo dark || echo light)"
    verdict="$(browse "$colors" --window-size=1500,6000 --dump-dom "file://$work/frame$width.html" |
      grep -o '<pre>.*</pre>')" || {
      cat "$work/browser.log" >&2
      fail "$place: the page has told nothing"
    }
    printf '%s: %s\n' "$place" "$verdict"
    has "$verdict" '"errors":[]' "$place: its scripts made errors"
    has "$verdict" "\"width\":$width," "$place: not as wide"
    has "$verdict" "\"dark\":$([[ "$colors" == 0 ]] && echo true || echo false)," "$place: not in these colors"
    has "$verdict" '"empty":[]' "$place: charts are not drawn"
    has "$verdict" '"cut":[]' "$place: texts stand out of their charts"
    has "$verdict" '"covered":[]' "$place: texts of a chart cover each other"
    has "$verdict" '"bad_files":[]' "$place: charts or tables are no good files"
    has "$verdict" '"without_button":0,' "$place: charts or tables cannot be saved"
    has "$verdict" '"overflow":0,' "$place: the page is wider than the window"
    (($(grep -o '"charts":[0-9]*' <<<"$verdict" | cut -d: -f2) >= 9)) || fail "$place: too few charts: $verdict"
    inks+=("$(grep -o '"ink":"[^"]*"' <<<"$verdict")")
    if [[ -n "${TEST_UNDECLARED_OUTPUTS_DIR:-}" ]]; then
      browse "$colors" --window-size="$((width > 500 ? width : 500)),3600" \
        --screenshot="$TEST_UNDECLARED_OUTPUTS_DIR/report-$width-$colors.png" "file://$work/frame$width.html" >/dev/null || true
    fi
  done
done
[[ "${inks[0]}" != "${inks[1]}" && "${inks[2]}" != "${inks[3]}" ]] || fail "light and dark are the same: ${inks[*]}"
echo passed
