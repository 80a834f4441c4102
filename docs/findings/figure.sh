#!/usr/bin/env bash
# figure.sh REPORT CHART: writes a chart of a report.html (its id: score, heldout-loss, loss, speed, to-target, throughput,
# staleness, time) to standard output as an SVG file, as the button beside it saves it. Needs Chromium.
set -euo pipefail

report="$1" chart="$2"
browser="$(command -v chromium || command -v chromium-browser)"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
{
  cat "$report"
  cat <<HTML
<script>
addEventListener("load", () => {
  document.getElementById("$chart").closest(".card").style.width = "640px";
  setTimeout(() => {
    const pre = document.createElement("pre");
    pre.id = "figure";
    pre.textContent = btoa(unescape(encodeURIComponent(Downloads.svgOf(document.getElementById("$chart")))));
    document.body.append(pre);
  }, 500);
});
</script>
HTML
} >"$work/report.html"
HOME="$work" "$browser" --headless --no-sandbox --disable-gpu --user-data-dir="$work/profile" --window-size=1400,4000 \
  --blink-settings=preferredColorScheme=1 --virtual-time-budget=5000 --dump-dom "file://$work/report.html" 2>/dev/null |
  sed -n 's#.*<pre id="figure">\([^<]*\)</pre>.*#\1#p' | base64 -d
