"use strict";
// A trace of a few seconds, drawn: a row for each track of each task, on the coordinator's clock. Wheel and keys move it.
const Trace = (() => {
  const host = (id) => document.getElementById(id);
  const ROW = 16;
  const LEFT = 150;
  const COLORS = { data: "--t-data", compute: "--t-compute", push: "--t-push", exchange: "--t-push", pull: "--t-wait", barrier: "--t-wait", queue: "--s3", apply: "--s2", reduce: "--s2", receive: "--s5", answer: "--s5", store: "--s1" };
  let rows = [];
  let tasks = [];
  let range = [0, 1];
  let whole = [0, 1];

  // As cli/trace does: a clock is corrected unless it differs by less than was measured.
  function correction(data) {
    const { clock_offset_microseconds: offset, clock_error_microseconds: error } = data.otherData;
    return offset === undefined || Math.abs(offset) <= (error || 0) ? 0 : offset;
  }

  function tracksOf(task) {
    const names = new Map();
    const spans = new Map();
    for (const event of task.data.traceEvents) {
      if (event.ph === "M" && event.name === "thread_name") names.set(event.tid, event.args.name);
      if (event.ph !== "X" || event.cat === "step") continue;
      if (!spans.has(event.tid)) spans.set(event.tid, []);
      spans.get(event.tid).push({ name: event.name, cat: event.cat, from: event.ts + task.shift, to: event.ts + task.shift + event.dur });
    }
    return [...spans].sort((a, b) => a[0] - b[0]).map(([tid, list]) => ({ task: task.name, name: names.get(tid) || "", spans: list.sort((a, b) => a.from - b.from) }));
  }

  function draw() {
    const canvas = host("trace-canvas");
    const width = Math.max(300, canvas.parentElement.clientWidth);
    const height = rows.length * ROW + 24;
    const scale = devicePixelRatio || 1;
    [canvas.width, canvas.height] = [Math.round(width * scale), Math.round(height * scale)];
    canvas.style.height = `${height}px`;
    const context = canvas.getContext("2d");
    context.scale(scale, scale);
    const style = getComputedStyle(document.documentElement);
    const colors = new Map(Object.entries(COLORS).map(([cat, name]) => [cat, style.getPropertyValue(name).trim()]));
    const text = style.getPropertyValue("--text").trim();
    const x = (t) => LEFT + ((t - range[0]) / (range[1] - range[0])) * (width - LEFT);
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    rows.forEach((row, i) => {
      const top = i * ROW;
      let drawn = LEFT;
      for (const span of row.spans) {
        if (span.to < range[0] || span.from > range[1]) continue;
        const left = Math.max(LEFT, x(span.from));
        const right = Math.max(left + 0.6, x(span.to));
        // Behind what is there already.
        if (right - drawn < 0.3) continue;
        drawn = right;
        context.fillStyle = colors.get(span.cat) || style.getPropertyValue("--soft").trim();
        context.fillRect(left, top + 1, right - left, ROW - 2);
        if (right - left < 60) continue;
        context.fillStyle = "#fff";
        context.fillText(span.name, left + 4, top + ROW / 2, right - left - 8);
      }
      context.fillStyle = text;
      context.fillText(`${row.task} ${row.name}`, 2, top + ROW / 2, LEFT - 8);
    });
    context.fillStyle = style.getPropertyValue("--soft").trim();
    // From the first span on.
    for (const value of Charts.ticks((range[0] - whole[0]) / 1000, (range[1] - whole[0]) / 1000, Math.max(2, (width - LEFT) / 110))) {
      const at = whole[0] + value * 1000;
      if (at < range[0] || at > range[1]) continue;
      context.fillText(`${value} ms`, x(at), rows.length * ROW + 12);
    }
  }

  function move(shift, factor, at = 0.5) {
    const span = Math.min(whole[1] - whole[0], Math.max(50, (range[1] - range[0]) * factor));
    const middle = range[0] + (range[1] - range[0]) * at;
    const from = Math.min(Math.max(whole[0], middle - span * at + shift * span), whole[1] - span);
    range = [from, from + span];
    draw();
  }

  function spanAt(event) {
    const canvas = host("trace-canvas");
    const box = canvas.getBoundingClientRect();
    const row = rows[Math.floor((event.clientY - box.top) / ROW)];
    const t = range[0] + ((event.clientX - box.left - LEFT) / (box.width - LEFT)) * (range[1] - range[0]);
    return row && row.spans.find((span) => span.from <= t && span.to >= t);
  }

  function listen() {
    const canvas = host("trace-canvas");
    canvas.onwheel = (event) => {
      event.preventDefault();
      const at = Math.min(1, Math.max(0, (event.offsetX - LEFT) / (canvas.clientWidth - LEFT)));
      if (event.shiftKey) move(Math.sign(event.deltaY) * 0.15, 1);
      else move(0, event.deltaY > 0 ? 1.25 : 0.8, at);
    };
    canvas.onpointermove = (event) => {
      const span = spanAt(event);
      host("trace-said").textContent = span ? `${span.cat}: ${span.name}, ${((span.to - span.from) / 1000).toFixed(3)} ms` : "";
    };
    canvas.onkeydown = (event) => {
      const keys = { ArrowLeft: [-0.2, 1], ArrowRight: [0.2, 1], "+": [0, 0.7], "=": [0, 0.7], "-": [0, 1.4], Home: [-1e9, 1], End: [1e9, 1], 0: [0, 1e9] };
      if (!keys[event.key]) return;
      event.preventDefault();
      move(...keys[event.key]);
    };
    for (const [id, move_by] of [["trace-in", [0, 0.6]], ["trace-out", [0, 1.7]], ["trace-left", [-0.3, 1]], ["trace-right", [0.3, 1]]]) host(id).onclick = () => move(...move_by);
  }

  // For Perfetto and chrome://tracing.
  function save(id) {
    const traceEvents = tasks.flatMap((task, pid) => task.data.traceEvents.map((event) => ({ ...event, pid, ...(event.ts === undefined ? {} : { ts: event.ts + task.shift }) })));
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([JSON.stringify({ traceEvents })], { type: "application/json" }));
    link.download = `trace-${id}.json`;
    link.click();
    URL.revokeObjectURL(link.href);
  }

  async function open(id, names, headers) {
    const missing = [];
    tasks = [];
    for (const name of names) {
      const answer = await fetch(`trace/${id}/${name}.json`, { headers });
      if (answer.ok) tasks.push({ name: name.replace("-", " "), data: await answer.json() });
      else missing.push(name);
    }
    if (tasks.length === 0) return Controls.say("No trace is in the coordinator's run directory: rubato deploy ssh trace brings them from other hosts.", "bad");
    const epochs = tasks.map((task) => task.data.otherData.epoch_unix_microseconds + correction(task.data));
    const first = Math.min(...epochs);
    tasks.forEach((task, i) => (task.shift = epochs[i] - first));
    rows = tasks.flatMap(tracksOf);
    const spans = rows.flatMap((row) => [row.spans[0].from, row.spans[row.spans.length - 1].to]);
    whole = [spans.reduce((a, b) => Math.min(a, b)), spans.reduce((a, b) => Math.max(a, b))];
    range = [...whole];
    host("trace-title").textContent = `Trace ${id}${missing.length > 0 ? `, without ${missing.join(", ")}` : ""}`;
    host("trace-save").onclick = () => save(id);
    // It may be large.
    host("trace-dialog").onclose = () => ([tasks, rows] = [[], []]);
    host("trace-dialog").showModal();
    listen();
    draw();
    host("trace-canvas").focus();
  }

  return { open };
})();
