"use strict";
// Takes what is new once a second, and draws.
(() => {
  const host = (id) => document.getElementById(id);
  const AXES = [["time", "seconds", 0], ["epochs", "epochs", 1], ["steps", "steps", 2]];
  const [LOSS, SPEED, ACCURACY, STALENESS] = [3, 4, 5, 6];
  const { number, percent } = Panels;
  const plain = (value, exact) => number(value, exact ? 4 : 3);
  const share = (value, exact) => percent(value, exact ? 2 : 1);
  const whole = (value) => number(value, 0);

  let runs = [];
  let live = false;
  let axis = 0;
  // Whose details are shown; null: of the latest that goes on, as a comparison makes its runs.
  let chosen = null;
  let lastId = -1;

  // Runs of one name are one mode with several seeds, as in the report.
  function modesOf() {
    const modes = new Map();
    for (const run of runs) {
      if (!modes.has(run.about.name)) modes.set(run.about.name, { name: run.about.name, index: modes.size, of: [] });
      modes.get(run.about.name).of.push(run);
    }
    return [...modes.values()];
  }

  function curves(modes, kind, column) {
    return modes.map((mode) => ({
      name: mode.name,
      index: mode.index,
      runs: mode.of.map((run) => run[kind].filter((point) => point[column] !== null).map((point) => [point[axis], point[column]])),
    }));
  }

  // Where on the axis a time lies, by a run's own progress.
  function position(run, seconds) {
    if (axis === 0) return seconds;
    const after = run.points.find((point) => point[0] >= seconds) || run.points[run.points.length - 1];
    return after ? after[axis] : null;
  }

  function drawCurves() {
    const modes = modesOf();
    const marks = modes.flatMap((mode) => Runs.switches(mode.of[0]).slice(-12).map((change) => ({ x: position(mode.of[0], change.t), index: mode.index, label: change.mode })));
    // A run that has not been evaluated does not say whether it has an AUC.
    const evaluated = runs.find((run) => Panels.scores(run).some(({ column }) => run.evaluations.some((point) => point[column] !== null)));
    const chart = (id, title, kind, column, yFormat, more = {}) => {
      const drawn = curves(modes, kind, column);
      const ends = drawn.map((mode) => [mode.name, mode.runs.map((points) => points[points.length - 1]).filter((point) => point)])
        .filter(([, points]) => points.length > 0).map(([name, points]) => `${name} ${yFormat(points[0][1], true)}`);
      host(`${id}-title`).textContent = title;
      Charts.lines(host(id), { modes: drawn, xLabel: AXES[axis][1], marks, yFormat, level: null, dots: false, ends: true, label: `${title} over ${AXES[axis][1]}. Now: ${ends.join(", ") || "not measured"}`, ...more });
    };
    if (evaluated) {
      const [score] = Panels.scores(evaluated);
      chart("score", `Held-out ${score.name}`, "evaluations", score.column, score.share ? share : plain,
        { dots: runs.every((run) => run.evaluations.length < 60), level: Panels.targetOf(evaluated, score) || null });
    } else {
      chart("score", "Training accuracy", "points", ACCURACY, share);
    }
    chart("loss", "Training loss", "points", LOSS, plain);
    chart("speed", "Examples per second", "points", SPEED, whole, { floor: 0 });
    chart("stale", "Mean staleness of pushes", "points", STALENESS, plain, { floor: 0 });
    const legend = host("legend");
    legend.hidden = modes.length < 2;
    const names = modes.map((mode) => mode.name).join("\n");
    if (legend.shown === names) return;
    legend.shown = names;
    legend.textContent = "";
    for (const mode of modes) {
      const item = Charts.html(legend, "span");
      const svg = Charts.node(item, "svg", { width: 14, height: 14, "aria-hidden": "true" });
      Charts.shape(svg, mode.index, 7, 7);
      item.append(mode.name);
    }
  }

  function shownIndex() {
    const latest = runs.findLastIndex((run) => !Runs.ended(run));
    return Math.min(chosen ?? Math.max(0, latest), runs.length - 1);
  }

  function drawRunChoice() {
    const select = host("run");
    host("run-label").hidden = runs.length < 2;
    const names = runs.map((run, i) => `${run.about.name}${runs.filter((other) => other.about.name === run.about.name).length > 1 ? ` (${run.about.directory})` : ""}: ${Panels.phase(run)[0]}`);
    const key = [...names, shownIndex()].join("\n");
    if (select.shown === key) return;
    select.shown = key;
    select.textContent = "";
    names.forEach((name, i) => (Charts.html(select, "option", "", name).value = String(i)));
    select.value = String(shownIndex());
  }

  function draw() {
    if (runs.length === 0 || document.hidden) return;
    const run = runs[shownIndex()];
    const [word, kind, sign] = Panels.phase(run);
    document.title = `${run.about.name}: ${word}`;
    host("job").textContent = runs.length > 1 ? Panels.number(runs.length, 0) + " runs" : run.start ? run.start.job : run.about.name;
    host("phase").textContent = `${sign} ${word}`;
    host("phase").className = `tag ${kind || "plain"}`;
    host("directory").textContent = run.about.directory;
    drawRunChoice();
    Panels.warnings(host("warnings"), runs);
    Panels.summary(host("summary"), run);
    drawCurves();
    Lanes.drawMinute(host("lanes"), run);
    Lanes.drawStaleness(host("staleness"), run);
    Panels.waits(host("waits"), run);
    Panels.workers(host("workers"), run);
    Panels.servers(host("servers"), run);
    // Only a running job tells.
    host("servers-card").hidden = host("waits-card").hidden = run.status === null;
    Panels.checkpoint(host("checkpoint"), run);
    Panels.log(host("log"), runs, host("search").value);
    const config = host("config");
    if (config.textContent !== run.about.config) config.textContent = run.about.config;
    if (live) Controls.follow(run);
  }

  function takeAll(data) {
    runs = data.runs.map((news) => {
      const run = Runs.create();
      Runs.add(run, news);
      return run;
    });
    live = data.controls === true;
    host("controls").hidden = !live;
  }

  function take(kind, id, data) {
    if (kind === "all") {
      takeAll(data);
    } else {
      // What came while everything was being told is in that.
      if (id <= lastId) return;
      data.runs.forEach((news, i) => {
        if (runs[i] === undefined) runs[i] = Runs.create();
        Runs.add(runs[i], news);
      });
    }
    lastId = id;
  }

  // That of a comparison has its runs' in it.
  function directoryOfAll() {
    const directories = runs.map((run) => run.about.directory);
    if (directories.length === 1) return directories[0];
    const parents = new Set(directories.map((directory) => directory.replace(/\/[^/]*$/, "")));
    return (parents.size === 1 ? [...parents] : directories).join(" ");
  }

  function show(events) {
    try {
      for (const event of events) {
        const field = (name) => event.split("\n").find((line) => line.startsWith(`${name}: `)).slice(name.length + 2);
        take(field("event"), Number(field("id")), JSON.parse(field("data")));
      }
      // Once for all that has come meanwhile.
      if (events.length > 0) draw();
    } catch (error) {
      // No matter of the connection.
      reportError(error);
      throw error;
    }
  }

  // Events of one stream until it ends, or says nothing.
  async function follow() {
    const abort = new AbortController();
    let silent = 0;
    const watch = setInterval(() => ++silent > 15 && abort.abort(), 1000);
    try {
      const answer = await fetch("events", { headers: Controls.headers(), signal: abort.signal });
      if (!answer.ok) throw new Error((await answer.text()).trim());
      const reader = answer.body.getReader();
      const decoder = new TextDecoder();
      let rest = "";
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        silent = 0;
        host("connection").hidden = true;
        const events = (rest + decoder.decode(value, { stream: true })).split("\n\n");
        rest = events.pop();
        show(events);
      }
    } finally {
      clearInterval(watch);
      // Whatever went wrong: no second connection beside one that goes on.
      abort.abort();
    }
  }

  async function followAlways() {
    for (let wait = 1; ; wait = Math.min(10, wait * 1.5)) {
      const began = performance.now();
      let why = "";
      try {
        await follow();
      } catch (error) {
        why = error instanceof TypeError || error.name === "AbortError" ? "" : ` ${error.message}.`;
      }
      if (performance.now() - began > 5000) wait = 1;
      const over = runs.length > 0 && runs.every((run) => Runs.ended(run));
      host("connection").hidden = false;
      if (!over) host("connection").textContent = `Not connected.${why} Trying again.`;
      else host("connection").textContent = `${live ? "The job has ended" : "Not connected"}; what is here stays as it is, and rubato page ${directoryOfAll()} shows it later.`;
      for (const button of host("controls").querySelectorAll("button")) button.disabled = true;
      // There may be runs to come of a comparison.
      if (over && live) return;
      await new Promise((resolve) => setTimeout(resolve, wait * 1000));
    }
  }

  function axisToggle() {
    AXES.forEach(([name], i) => {
      const button = Charts.html(host("axis"), "button", "", name);
      button.type = "button";
      button.setAttribute("aria-pressed", String(i === axis));
      button.addEventListener("click", () => {
        axis = i;
        for (const other of host("axis").children) other.setAttribute("aria-pressed", String(other === button));
        draw();
      });
    });
  }

  function legendOfParts() {
    for (const [name, , color] of Lanes.PARTS) {
      const item = Charts.html(host("parts"), "span");
      Charts.html(item, "span", `swatch${name.startsWith("waits") ? " hatched" : ""}`).style.backgroundColor = `var(${color})`;
      item.append(name);
    }
  }

  axisToggle();
  legendOfParts();
  host("search").addEventListener("input", draw);
  host("run").addEventListener("change", () => {
    chosen = Number(host("run").value);
    draw();
  });
  document.addEventListener("visibilitychange", draw);
  addEventListener("resize", draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  Controls.start(() => runs[0]);
  const data = host("data").textContent;
  if (data === "") followAlways();
  else {
    take("all", 0, JSON.parse(data));
    draw();
  }
})();
