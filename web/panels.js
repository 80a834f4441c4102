"use strict";
// The page's words and tables. What comes from the data becomes text, never markup.
const Panels = (() => {
  const { html } = Charts;
  const number = (value, digits) => value.toLocaleString("en", { maximumFractionDigits: digits });
  const percent = (value, digits) => `${number(value * 100, digits)} %`;
  const mebibytes = (bytes) => `${number(bytes / 2 ** 20, bytes < 10 * 2 ** 20 ? 1 : 0)} MiB`;
  const plural = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;
  const last = (list) => list[list.length - 1];

  function duration(seconds) {
    if (!(seconds >= 0 && seconds < 1e9)) return "unknown";
    const whole = Math.round(seconds);
    if (whole < 60) return `${whole} s`;
    if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
    return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
  }

  // "0, 1, 2 and 5 more"
  const list = (indices) => (indices.length > 6 ? `${indices.slice(0, 5).join(", ")} and ${indices.length - 5} more` : indices.join(", "));

  // Keeps the element as it is if it says the same already, so that what is selected there stays so.
  function fill(host, key, draw) {
    const text = JSON.stringify(key);
    if (host.shown === text) return;
    host.shown = text;
    host.textContent = "";
    draw();
  }

  function card(host, label, value, detail) {
    const element = html(host, "div", "card");
    html(element, "div", "label", label);
    html(element, "div", "value", value);
    html(element, "div", "detail", detail);
  }

  const isSilent = (status, task) => task.state === "alive" && status.lease > 0 && task.heard > status.lease / 2;

  // What a job is doing, in a word and a shape.
  function phase(run) {
    const end = Runs.ended(run);
    if (end) return end.end.ok ? ["done", "good", "✓"] : ["ended", "bad", "■"];
    if (run.status === null) return run.start ? ["training", "", "▶"] : ["starting", "", "…"];
    const name = run.status.phase.toLowerCase();
    return [name, { done: "good", failed: "bad" }[name] || "", { training: "▶", done: "✓", failed: "■" }[name] || "…"];
  }

  function summary(host, run) {
    const point = last(run.points);
    const { status, start } = run;
    const plan = Runs.plan(run);
    const [epoch, epochs] = [status ? status.epoch : point ? point[1] : 0, start ? start.epochs : 0];
    const cards = [];
    cards.push(["Mode", plan ? Runs.modeName(plan) : "–", plan ? `plan ${plan.generation}, ${plural(plan.members.length, "member")}${status && status.announced ? ", changing now" : ""}` : "no plan yet"]);
    const left = status && status.seconds_left >= 0 && status.phase === "TRAINING" ? `, ${duration(status.seconds_left)} left` : "";
    cards.push(["Step", number(point ? point[2] : 0, 0), epochs > 0 ? `epoch ${epoch.toFixed(2)} of ${number(epochs, 2)}${left}` : `epoch ${epoch.toFixed(2)}`]);
    if (point) cards.push(["Examples per second", number(point[4], 0), `for ${duration(status ? status.t : point[0])}`]);
    for (const { name, column, share } of scores(run)) {
      const evaluation = run.evaluations.findLast((line) => line[column] !== null);
      if (evaluation) cards.push([`Held-out ${name}`, share ? percent(evaluation[column], 2) : number(evaluation[column], 4), `at step ${number(evaluation[2], 0)}`]);
    }
    if (point && point[3] !== null) cards.push(["Training loss", number(point[3], 4), point[5] === null ? "" : `accuracy ${percent(point[5], 1)}`]);
    if (status) cards.push(["Waiting for weights", percent(status.waiting_share, 0), "of the workers' time"]);
    fill(host, cards, () => cards.forEach((values) => card(host, ...values)));
  }

  // What evaluations have, the most important first, as in the report; `target` is of the start line.
  const ACCURACY = { name: "accuracy", column: 4, target: "target_accuracy", share: true };
  const AUC = { name: "AUC", column: 5, target: "target_auc" };
  const R2 = { name: "R²", column: 4, target: "" };
  const RMSE = { name: "RMSE", column: 6, target: "target_rmse" };
  const targetOf = (run, score) => (run.start && run.start[score.target]) || 0;
  function scores(run) {
    const regression = run.start !== null && run.start.loss === "MEAN_SQUARED_ERROR";
    const all = regression ? [R2, RMSE] : run.evaluations.some((point) => point[AUC.column] !== null) ? [AUC, ACCURACY] : [ACCURACY];
    return all.sort((a, b) => (targetOf(run, b) > 0) - (targetOf(run, a) > 0));
  }

  // Who is waited for, with a bar for how often.
  function waits(host, run) {
    const rows = Runs.awaited(run).slice(0, 8).map((entry) => [`worker ${entry.index}`, Math.round(entry.share * 100), plural(entry.waiters.length, "worker"), list(entry.waiters)]);
    fill(host, rows, () => {
      if (rows.length === 0) return void html(host, "p", "hint", "Nobody waits for anybody.");
      const [first] = rows;
      html(host, "p", "headline", first[1] >= 20 ? `The others wait for ${first[0]}.` : "Waits are short.");
      for (const [name, share, count, names] of rows) {
        const row = html(host, "div", "wait-row");
        html(row, "b", "", name);
        const bar = html(row, "span", "bar");
        html(bar, "span").style.width = `${share}%`;
        html(row, "span", "", `${share} %`);
        html(row, "span", "hint", `of readings in the last minute, by ${count}: ${names}`);
      }
    });
  }

  const STATES = { alive: "●", left: "○", evicted: "✕", missing: "?" };
  const stateText = (status, task) => (isSilent(status, task) ? `▲ silent ${task.heard.toFixed(1)} s` : `${STATES[task.state] || "?"} ${task.state}`);

  function table(host, header, rows) {
    fill(host, rows, () => {
      const element = html(host, "table");
      const head = html(html(element, "thead"), "tr");
      for (const title of header) html(head, "th", "", title).scope = "col";
      const body = html(element, "tbody");
      for (const row of rows) {
        const line = html(body, "tr");
        row.forEach((cell, i) => {
          const field = html(line, i === 0 ? "th" : "td", "", cell);
          if (i === 0) field.scope = "row";
        });
      }
    });
  }

  function servers(host, run) {
    const tasks = run.status ? run.status.tasks.filter((task) => task.role === "server") : [];
    const rate = (task, key, format) => (task.rates ? format(task.rates[key]) : "–");
    const tables = tasks.some((task) => task.rows > 0);
    table(host, ["server", "state", "weights and state", ...(tables ? ["rows", "in tables", "rows/s"] : []), "updates/s", "received/s", "sent/s", "queue", "memory"], tasks.map((task) => [
      `server ${task.index}`, stateText(run.status, task), mebibytes(task.bytes),
      ...(tables ? [number(task.rows, 0), mebibytes(task.table_bytes), rate(task, "rows", (v) => number(v, 0))] : []),
      rate(task, "updates", (v) => number(v, 0)), rate(task, "received", mebibytes), rate(task, "sent", mebibytes), String(task.queue), mebibytes(task.resident),
    ]));
  }

  function workers(host, run) {
    const { W } = Runs;
    const recent = Runs.intervals(run.recent.slice(-6));
    const states = new Map((run.status ? run.status.tasks : []).filter((task) => task.role === "worker").map((task) => [task.index, task]));
    const indices = [...new Set([...states.keys(), ...Runs.workerIndices(run)])].sort((a, b) => a - b);
    const seconds = recent.length > 0 ? last(recent)[1] - recent[0][0] : 0;
    const totals = new Map((last(run.recent) || [0, []])[1].map((worker) => [worker[W.index], worker]));
    table(host, ["worker", "state", "step", "steps/s", "examples/s", "staleness", "slowed down", "memory"], indices.map((index) => {
      const task = states.get(index);
      const sum = [0, 0, 0];
      for (const [, , parts] of recent) {
        const part = parts.get(index);
        if (part) [W.steps, W.examples, W.staleness].forEach((column, i) => (sum[i] += part[column]));
      }
      const total = totals.get(index);
      return [`worker ${index}`, task ? stateText(run.status, task) : "–", total ? number(total[W.steps], 0) : "–",
        seconds > 0 ? number(sum[0] / seconds, 1) : "–", seconds > 0 ? number(sum[1] / seconds, 0) : "–", sum[0] > 0 ? (sum[2] / sum[0]).toFixed(2) : "–",
        (task && task.slowed) || "", task && task.resident > 0 ? mebibytes(task.resident) : "–"];
    }));
  }

  // Of a line of the record: [seconds, kind, what, why].
  function entryOf(line) {
    if (line.plan) {
      const { t, generation, first_step, reason } = line.plan;
      return [t, "plan", `plan ${generation}: ${Runs.modeName(line.plan)} from step ${number(first_step, 0)} on`, reason];
    }
    if (line.member) return [line.member.t, line.member.event.toLowerCase(), `${line.member.task} ${{ JOINED: "joined", LEFT: "left", EVICTED: "was evicted" }[line.member.event] || ""}`, line.member.reason];
    if (line.checkpoint) return [line.checkpoint.t, "checkpoint", `${line.checkpoint.name}, ${mebibytes(line.checkpoint.bytes)} in ${line.checkpoint.seconds.toFixed(1)} s`, ""];
    if (line.rollback) return [line.rollback.t, "rollback", line.rollback.step > 0 ? `back to step ${number(line.rollback.step, 0)}` : "back to the beginning", line.rollback.reason];
    if (line.request) return [line.request.t, line.request.refused ? "refused" : "request", `${line.request.by}: ${line.request.request}`, line.request.refused];
    if (line.end) return [line.end.t, "end", line.end.ok ? "the job is done" : "the job has ended", line.end.error];
    return null;
  }

  const SHOWN = 200;
  function log(host, runs, search) {
    const words = search.toLowerCase().split(/\s+/).filter((word) => word !== "");
    fill(host, [runs.map((run) => [run.logged, last(run.log)]), words], () => {
      const entries = runs.flatMap((run) => run.log.map((line) => [run, entryOf(line)])).filter(([, entry]) => entry !== null);
      entries.sort((a, b) => b[1][0] - a[1][0]);
      const found = entries.filter(([run, entry]) => {
        const text = [run.about.name, ...entry.slice(1)].join(" ").toLowerCase();
        return words.every((word) => text.includes(word));
      });
      if (found.length === 0) html(host, "li", "hint", words.length > 0 ? "Nothing is like that." : "Nothing has happened yet.");
      for (const [run, [t, kind, what, why]] of found.slice(0, SHOWN)) {
        const item = html(host, "li", `entry ${kind}`);
        html(item, "span", "when", `${t.toFixed(1)} s`);
        html(item, "span", "kind", kind);
        const text = html(item, "span", "what", runs.length > 1 ? `${run.about.name}: ${what}` : what);
        if (why) html(text, "span", "why", why);
      }
      if (found.length > SHOWN) html(host, "li", "hint", `${found.length - SHOWN} more: search for them.`);
    });
  }

  // What is wrong, and what to do: [what, what to do].
  function findings(run) {
    const result = [];
    const { status } = run;
    const end = Runs.ended(run);
    if (end && !end.end.ok) result.push([`The job has ended: ${end.end.error}`, /^stopped by/.test(end.end.error) ? "rubato train CONFIG --resume goes on with it." : "Look at the last lines of the logs in the run directory; --resume goes on from its last checkpoint."]);
    if (run.points.length > 3 && run.points.slice(-3).every((point) => point[3] === null) && run.points.some((point) => point[3] !== null)) {
      result.push(["The training loss is no finite number any more.", "Lower optimizer.learning_rate, or set training.clip_norm; --resume goes on from the last checkpoint."]);
    }
    if (!status || end) return result;
    for (const task of status.tasks) {
      const name = `${task.role} ${task.index}`;
      if (isSilent(status, task)) result.push([`${name} is silent for ${task.heard.toFixed(0)} s; it is evicted after ${status.lease} s.`, `Look at its host${task.host ? ` (${task.host})` : ""} and at logs/${task.role}-${task.index}.log.`]);
      else if (task.state === "evicted") result.push([`${name} was evicted: ${task.reason}`, "Its launcher starts it again; by hand, start it with the same index."]);
      else if (task.problem) result.push([`${name}: ${task.problem}`, `logs/${task.role}-${task.index}.log has more.`]);
    }
    if (status.waiting_for && status.phase !== "TRAINING") result.push([`The job waits for ${status.waiting_for}.`, status.phase === "STARTING" ? "Start what is missing." : ""]);
    const [first] = Runs.awaited(run);
    const plan = Runs.plan(run);
    const slow = run.status.tasks.find((task) => task.role === "worker" && first && task.index === first.index);
    if (plan && plan.mode === "SYNC" && first && first.share >= 0.5 && run.readings.length >= 5 && status.phase === "TRAINING") {
      result.push([`Steps take as long as worker ${first.index}, for which others wait most of the time${slow && slow.slowed ? ` (it is slowed down: ${slow.slowed})` : ""}.`, "Switch to async or to ssp, or to sync with a quorum; see what its host does besides."]);
    }
    if (status.checkpoint.waiting_for) result.push([`Checkpoint ${status.checkpoint.in_progress} waits for ${status.checkpoint.waiting_for}.`, "Make room on that task's disk, or repair it."]);
    return result;
  }

  function warnings(host, runs) {
    const all = runs.flatMap((run) => findings(run).map(([what, todo]) => [runs.length > 1 ? `${run.about.name}: ${what}` : what, todo]));
    host.hidden = all.length === 0;
    fill(host, all, () => {
      for (const [what, todo] of all) {
        const item = html(host, "p", "note");
        html(item, "b", "", `⚠ ${what}`);
        item.append(` ${todo}`);
      }
    });
  }

  function checkpoint(host, run) {
    if (!run.status) return;
    const { last: name, seconds_since_last: age, in_progress: writing } = run.status.checkpoint;
    const text = `${name ? `Last checkpoint: ${name}, ${duration(age)} ago.` : "No checkpoint yet."}${writing ? ` ${writing} is being written.` : ""}`;
    if (host.textContent !== text) host.textContent = text;
  }

  return { summary, waits, servers, workers, log, warnings, checkpoint, phase, duration, number, percent, scores, targetOf, findings, entryOf };
})();
