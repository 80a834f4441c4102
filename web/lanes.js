"use strict";
// Rows of workers: what each did in the last minute, and how stale its pushes were all the time.
const Lanes = (() => {
  const { W } = Runs;
  const MINUTE = 60;
  const PARTS = [["compute", W.compute, "--t-compute"], ["data", W.data, "--t-data"], ["push", W.push, "--t-push"], ["waits for weights", W.wait, "--t-wait"]];
  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  // A canvas as wide as its host, whose drawing has pixels of the screen.
  function canvasOf(host, height, label) {
    let canvas = host.querySelector("canvas");
    if (canvas === null) {
      canvas = Charts.html(host, "canvas");
      canvas.setAttribute("role", "img");
    }
    const width = Math.max(240, host.clientWidth);
    const scale = devicePixelRatio || 1;
    const sizes = [Math.round(width * scale), Math.round(height * scale)];
    if (canvas.width !== sizes[0] || canvas.height !== sizes[1]) [canvas.width, canvas.height] = sizes;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    canvas.setAttribute("aria-label", label);
    const context = canvas.getContext("2d");
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, height);
    context.font = `12px ${getComputedStyle(document.body).fontFamily}`;
    context.textBaseline = "middle";
    return { context, width };
  }

  // Waiting is hatched as well as coloured.
  function hatch(context, color) {
    const tile = document.createElement("canvas");
    tile.width = tile.height = 6;
    const brush = tile.getContext("2d");
    brush.fillStyle = color;
    brush.fillRect(0, 0, 6, 6);
    brush.strokeStyle = style("--card");
    brush.lineWidth = 1.4;
    for (const offset of [-6, 0, 6]) {
      brush.beginPath();
      brush.moveTo(offset, 6);
      brush.lineTo(offset + 6, 0);
      brush.stroke();
    }
    return context.createPattern(tile, "repeat");
  }

  const rowHeight = (count) => (count <= 16 ? 24 : count <= 40 ? 14 : 5);

  // Every row if there is room, otherwise every tenth.
  function rowName(context, index, i, count, y) {
    if (count > 40 && i % 10 !== 0) return;
    context.fillStyle = style("--text");
    context.textAlign = "right";
    context.fillText(count > 40 ? String(index) : `worker ${index}`, count > 40 ? 34 : 66, Math.max(6, y));
  }

  function axis(context, box, y, text) {
    context.fillStyle = style("--soft");
    context.textAlign = "left";
    context.fillText(text[0], box.left, y);
    context.textAlign = "right";
    context.fillText(text[1], box.right, y);
  }

  function drawMinute(host, run) {
    const workers = Runs.workerIndices(run);
    host.classList.toggle("empty", workers.length === 0);
    if (workers.length === 0) return;
    const intervals = Runs.intervals(run.recent);
    const end = run.recent[run.recent.length - 1][0];
    const shares = workers.map((index) => {
      let wait = 0, all = 0;
      for (const [from, , parts] of intervals) {
        const part = parts.get(index);
        if (!part || from < end - MINUTE) continue;
        wait += part[W.wait];
        all += part[W.data] + part[W.compute] + part[W.push] + part[W.wait];
      }
      return all > 0 ? wait / all : 0;
    });
    const size = rowHeight(workers.length);
    const label = `What each worker did in the last minute. ${workers.slice(0, 20).map((index, i) => `Worker ${index} waited for ${Math.round(shares[i] * 100)} % of it`).join(", ")}`;
    const { context, width } = canvasOf(host, workers.length * size + 22, label);
    const named = workers.length <= 40;
    const box = { left: named ? 74 : 42, right: width - (named ? 76 : 6) };
    const x = (t) => box.left + Math.max(0, (t - (end - MINUTE)) / MINUTE) * (box.right - box.left);
    const fills = PARTS.map(([, , name]) => style(name));
    fills[3] = hatch(context, fills[3]);
    workers.forEach((index, i) => {
      const top = i * size + 1;
      const height = size - (size > 10 ? 4 : 1);
      context.fillStyle = style("--grid");
      context.fillRect(box.left, top, box.right - box.left, height);
      for (const [from, to, parts] of intervals) {
        const part = parts.get(index);
        if (!part || to <= end - MINUTE) continue;
        const left = Math.round(x(from));
        const room = Math.round(x(to)) - left;
        // What is not told of stays empty: between two steps, or the end of a step that is told of later.
        const all = Math.max(to - from, PARTS.reduce((sum, [, column]) => sum + part[column], 0));
        let at = top + height;
        PARTS.forEach(([, column], j) => {
          const share = (part[column] / all) * height;
          at -= share;
          context.fillStyle = fills[j];
          context.fillRect(left, at, room, share);
        });
      }
      rowName(context, index, i, workers.length, top + height / 2);
      if (!named) return;
      context.fillStyle = style(shares[i] > 0.3 ? "--text" : "--soft");
      context.textAlign = "left";
      context.fillText(`${Math.round(shares[i] * 100)} % waits`, box.right + 6, top + height / 2);
    });
    axis(context, box, workers.length * size + 12, ["a minute ago", "now"]);
  }

  // From light to dark in every colour of vision: of the same hue, and with the number beside it.
  const channels = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
  function shade(share) {
    const card = channels(style("--card"));
    const full = channels(style("--s0"));
    const mixed = card.map((value, i) => Math.round(value + (full[i] - value) * (0.1 + 0.9 * share)));
    return `rgb(${mixed.join(" ")})`;
  }

  function drawStaleness(host, run) {
    const workers = Runs.workerIndices(run);
    const intervals = Runs.intervals([...run.samples, ...run.recent]).filter(([, , parts]) => parts.size > 0);
    const mean = (parts, index) => {
      const part = parts.get(index);
      return part && part[W.steps] > 0 ? Math.max(0, part[W.staleness] / part[W.steps]) : null;
    };
    const now = workers.map((index) => {
      for (let i = intervals.length - 1; i >= 0; --i) {
        const value = mean(intervals[i][2], index);
        if (value !== null) return value;
      }
      return null;
    });
    const highest = Charts.highest(intervals.flatMap(([, , parts]) => workers.map((index) => mean(parts, index) || 0)));
    const fresh = highest < 0.005;
    host.classList.toggle("empty", workers.length === 0 || fresh);
    host.dataset.empty = workers.length === 0 ? "No worker has made a step yet." : "Every push was computed from the newest weights.";
    if (workers.length === 0 || fresh) return;
    const size = rowHeight(workers.length);
    const label = `Mean staleness of each worker's pushes over time. Now: ${workers.slice(0, 20).map((index, i) => `worker ${index} ${now[i] === null ? "none" : now[i].toFixed(2)}`).join(", ")}`;
    const { context, width } = canvasOf(host, workers.length * size + 22, label);
    const named = workers.length <= 40;
    const box = { left: named ? 74 : 42, right: width - (named ? 76 : 6) };
    const begin = intervals[0][0];
    const span = Math.max(1e-9, intervals[intervals.length - 1][1] - begin);
    const x = (t) => box.left + ((t - begin) / span) * (box.right - box.left);
    // A colour is looked up once.
    const shades = Array.from({ length: 17 }, (_, i) => shade(i / 16));
    workers.forEach((index, i) => {
      const top = i * size + 1;
      const height = size - (size > 10 ? 4 : 1);
      for (const [from, to, parts] of intervals) {
        const value = mean(parts, index);
        if (value === null) continue;
        context.fillStyle = shades[Math.min(16, Math.round((value / highest) * 16))];
        context.fillRect(x(from), top, x(to) - x(from) + 0.5, height);
      }
      rowName(context, index, i, workers.length, top + height / 2);
      if (!named || now[i] === null) return;
      context.fillStyle = style("--text");
      context.textAlign = "left";
      context.fillText(`${now[i].toFixed(2)} now`, box.right + 6, top + height / 2);
    });
    axis(context, box, workers.length * size + 12, [`${begin.toFixed(0)} s`, `strongest: ${highest.toFixed(highest < 10 ? 2 : 0)} versions`]);
  }

  return { drawMinute, drawStaleness, PARTS };
})();
