"use strict";
// Fills the page from the data in the element "data".
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const modes = data.modes.map((mode, index) => ({ ...mode, name: mode.mode, index }));
  const host = (id) => document.getElementById(id);
  const number = (value, digits) => value.toLocaleString("en", { maximumFractionDigits: digits });

  // Columns of a point: seconds, epochs, steps, loss; then what Tables.scores names of an evaluation, or the speed, the
  // accuracy and the staleness of progress.
  const AXES = [["time", "seconds", 0], ["epochs", "epochs", 1], ["steps", "steps", 2]];
  const LOSS = 3;
  const SPEED = 4;
  const TRAINING_ACCURACY = 5;
  const STALENESS = 6;
  const any = (kind, wanted) => modes.some((mode) => mode.runs.some((run) => run[kind].some(wanted)));
  // Clients need not tell of epochs, examples and accuracy.
  const hasEpochs = any("progress", (point) => point[1] > 0) || any("evaluations", (point) => point[1] > 0);
  // In sync alone it is 0 throughout.
  const hasStaleness = any("progress", (point) => point[STALENESS] > 0);
  const hasScore = data.evaluated || any("progress", (point) => point[TRAINING_ACCURACY] !== null);

  function curves(kind, column, axis) {
    return modes.map((mode) => ({
      name: mode.name,
      index: mode.index,
      runs: mode.runs.map((run) => run[kind].filter((p) => p[column] !== null).map((p) => [p[axis], p[column]])),
    }));
  }

  // Where on an axis a time lies, by a run's own progress.
  function position(run, seconds, axis) {
    if (axis === 0) return seconds;
    const after = run.progress.find((point) => point[0] >= seconds) || run.progress[run.progress.length - 1];
    return after ? after[axis] : null;
  }

  function marks(axis) {
    return modes.flatMap((mode) => {
      const run = mode.runs[0];
      if (!run) return [];
      return run.switches.map((change) => ({ x: position(run, change.t, axis), index: mode.index, label: change.mode }));
    });
  }

  // The other one is there with two classes, or in a regression.
  const [first, second] = Tables.scores(data);
  const scoreTitle = ({ name }) => (data.evaluated ? `Held-out ${name}` : "Training accuracy");

  function drawCurves(axis) {
    const shared = { xLabel: AXES[axis][1], marks: marks(axis) };
    const percent = (value, exact) => `${number(value * 100, exact ? 2 : 1)} %`;
    const plain = (value, exact) => number(value, exact ? 4 : 3);
    if (data.evaluated) {
      const drawScore = (id, score) => {
        const isTarget = data.target !== null && data.target.metric === score.field;
        Charts.lines(host(id), { ...shared, modes: curves("evaluations", score.column, axis), yFormat: score.field === "final_accuracy" ? percent : plain,
          dots: true, level: isTarget ? data.target.value : null, label: scoreTitle(score) });
      };
      drawScore("score", first);
      if (second) drawScore("second-score", second);
      Charts.lines(host("heldout-loss"), { ...shared, modes: curves("evaluations", LOSS, axis), yFormat: plain, dots: true, level: null,
        label: "Held-out loss" });
    } else if (hasScore) {
      Charts.lines(host("score"), { ...shared, modes: curves("progress", TRAINING_ACCURACY, axis), yFormat: percent, dots: false, level: null,
        label: scoreTitle(first) });
    }
    Charts.lines(host("loss"), { ...shared, modes: curves("progress", LOSS, axis), yFormat: plain, dots: false, level: null,
      label: "Training loss" });
    if (data.has_examples) {
      Charts.lines(host("speed"), { ...shared, modes: curves("progress", SPEED, axis), yFormat: (value) => number(value, 0), dots: false, level: null,
        label: "Examples per second" });
    }
    if (hasStaleness) {
      Charts.lines(host("staleness-over-time"), { ...shared, modes: curves("progress", STALENESS, axis), yFormat: plain, dots: false, level: null,
        label: "Mean staleness of pushes" });
    }
  }

  function axisToggle() {
    const toggle = host("axis");
    AXES.forEach(([name], axis) => {
      if (name === "epochs" && !hasEpochs) return;
      const button = Charts.html(toggle, "button", "", name);
      button.type = "button";
      button.setAttribute("aria-pressed", String(axis === 0));
      button.addEventListener("click", () => {
        for (const other of toggle.children) other.setAttribute("aria-pressed", String(other === button));
        drawCurves(axis);
      });
    });
  }

  function legend(id, entries) {
    for (const [name, color] of entries) {
      const item = Charts.html(host(id), "span");
      Charts.html(item, "span", "swatch").style.background = color;
      item.append(name);
    }
  }

  function drawBars() {
    const rows = (field, missing) => modes.map((mode) => ({
      name: mode.name,
      index: mode.index,
      mean: mode.mean[field],
      values: mode.runs.map((run) => run[field]).filter((value) => value !== null),
      missing,
    }));
    if (data.target !== null) {
      const toTarget = rows("seconds_to_target", "").map((row, i) => {
        const { mean, text } = Tables.timeToTarget(data.modes[i]);
        return { ...row, mean, text, missing: text };
      });
      Charts.bars(host("to-target"), { rows: toTarget, format: (v) => `${number(v, 1)} s`, label: "Time to target" });
    }
    const speed = data.has_examples ? { field: "examples_per_second", digits: 0, unit: "" } : { field: "steps_per_second", digits: 1, unit: " steps" };
    Charts.bars(host("throughput"), { rows: rows(speed.field, "-"), format: (v) => `${number(v, speed.digits)}${speed.unit} / s`, label: "Throughput" });
  }

  function drawStaleness() {
    const counts = modes.map((mode) => {
      const total = [];
      for (const run of mode.runs) run.staleness.forEach((n, i) => (total[i] = (total[i] || 0) + n));
      return total;
    });
    const used = Math.max(0, ...counts.map((total) => total.reduce((last, n, i) => (n > 0 ? i : last), 0)));
    const buckets = Math.max(0, ...counts.map((total) => total.length));
    const width = Math.ceil((used + 1) / 12);
    const groups = [];
    for (let low = 0; low <= used; low += width) {
      const high = Math.min(low + width - 1, used);
      const open = high === buckets - 1 && buckets > 1;
      groups.push(width === 1 ? `${low}${open ? "+" : ""}` : `${low}–${high}${open ? "+" : ""}`);
    }
    const values = counts.map((total) => {
      const all = total.reduce((a, b) => a + b, 0);
      return groups.map((_, g) => (all > 0 ? total.slice(g * width, (g + 1) * width).reduce((a, b) => a + b, 0) / all : 0));
    });
    Charts.columns(host("staleness"), { groups, modes: modes.map((mode, i) => ({ ...mode, values: values[i] })), xLabel: "staleness",
      format: (v) => `${number(v * 100, 1)} %`, label: "Staleness of pushes" });
  }

  const PARTS = [["data", "var(--t-data)"], ["compute", "var(--t-compute)"], ["push", "var(--t-push)"], ["pull wait", "var(--t-wait)"]];

  function drawTime() {
    const rows = modes.flatMap((mode) => {
      const sums = new Map();
      for (const run of mode.runs) {
        for (const [index, ...seconds] of run.workers) {
          const sum = sums.get(index) || [0, 0, 0, 0];
          sums.set(index, sum.map((value, i) => value + seconds[i] / mode.runs.length));
        }
      }
      return [...sums].sort((a, b) => a[0] - b[0]).map(([index, seconds]) => ({
        name: `${mode.name}, worker ${index}`,
        parts: PARTS.map(([label, color], i) => ({ label, color, value: seconds[i] })),
      }));
    });
    Charts.stacks(host("time"), { rows, label: "Where the workers' time went" });
  }

  function fillTables() {
    document.title = `${data.job} – Rubato`;
    host("job").textContent = data.job;
    host("facts").textContent = Tables.facts(data);
    host("generated").hidden = data.data !== "generated";
    host("chosen-afterwards").hidden = !data.chosen_afterwards;
    host("score-title").textContent = scoreTitle(first);
    host("score-card").hidden = !hasScore;
    host("second-score-card").hidden = !second;
    if (second) host("second-score-title").textContent = scoreTitle(second);
    host("heldout-loss-card").hidden = !data.evaluated;
    host("speed-card").hidden = !data.has_examples;
    host("staleness-over-time-card").hidden = !hasStaleness;
    host("to-target-card").hidden = data.target === null;
    host("config").hidden = data.config === "";
    host("config").querySelector("pre").textContent = data.config;
    Tables.bestCards(host("best"), data);
    Tables.results(host("results"), data);
    Tables.targetNote(host("target-note"), data);
    Baseline.show(host("baseline"), data);
    Tables.workers(host("workers"), data);
    Tables.switches(host("switches"), data);
    Tables.checkpoints(host("checkpoints"), data);
    Tables.trouble(host("trouble"), data);
  }

  fillTables();
  legend("modes-legend", modes.map((mode) => [mode.name, Charts.color(mode.index)]));
  legend("time-legend", PARTS);
  axisToggle();
  drawCurves(0);
  drawBars();
  drawStaleness();
  drawTime();
  Downloads.addButtons(data.job);
})();
