"use strict";
// The page's numbers and tables. What comes from the data becomes text, never markup.
const Tables = (() => {
  const { html, color } = Charts;
  const percent = (value) => `${(value * 100).toFixed(2)} %`;
  const fixed = (value) => value.toFixed(4);
  const seconds = (value) => `${value.toFixed(1)} s`;
  const milliseconds = (value) => `${(value * 1000).toFixed(1)} ms`;
  const megabytes = (value) => `${(value * 1e-6).toFixed(1)} MB`;
  const or = (value, format, missing) => (value === null ? missing : format(value));
  const plural = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;
  // Which column of an evaluation has it.
  const METRICS = {
    final_auc: { name: "AUC", column: 5, format: fixed },
    final_recall: { name: "recall@k", column: 7, format: percent },
    final_accuracy: { name: "accuracy", column: 4, format: percent },
    final_r2: { name: "R²", column: 4, format: fixed },
    final_rmse: { name: "RMSE", column: 6, format: fixed, lowest: true },
  };
  // What was measured, the most important first; of training where nothing was evaluated.
  function scores(data) {
    if (!data.evaluated) return [{ name: "training accuracy", field: "training_accuracy", format: percent }];
    return data.metrics.map((field) => ({ field, ...METRICS[field] }));
  }
  function targetText({ metric, value }) {
    const { name, format } = METRICS[metric];
    return format === percent ? `${Number((value * 100).toPrecision(4))} % ${name}` : `${name} ${Number(value.toPrecision(4))}`;
  }
  const loss = (data) => (data.evaluated ? { name: "loss", field: "final_loss" } : { name: "training loss", field: "training_loss" });
  const gapFormat = (data) => (data.regression ? fixed : percent);
  const speed = (data) =>
    data.has_examples ? { name: "examples/s", field: "examples_per_second", digits: 0 } : { name: "steps/s", field: "steps_per_second", digits: 1 };
  const runName = (mode, run) => (mode.runs.length > 1 ? `${mode.mode}, seed ${run.seed}` : mode.mode);

  // The rate that was best of those tried, and whether a better one may be beyond.
  function rate(tuning) {
    if (tuning.learning_rate === null) return `${tuning.mode} none`;
    return `${tuning.mode} ${tuning.learning_rate}${tuning.at_edge ? " (at the edge)" : ""}`;
  }

  function facts(data) {
    const runs = data.modes.reduce((sum, mode) => sum + mode.runs.length, 0);
    const { workers, servers, batch_size, train_examples } = data.start || {};
    return [
      ...(data.start ? [plural(workers, "worker"), plural(servers, "server")] : []),
      ...(batch_size > 0 ? [`batches of ${batch_size}`] : []),
      ...(train_examples > 0 ? [`${train_examples} training examples`] : []),
      plural(runs, "run"),
      ...(data.slowed ? [`slowed on purpose: ${data.slowed}`] : []),
      ...(data.tunings.length > 0 ? [`learning rates tuned: ${data.tunings.map(rate).join(", ")}`] : []),
    ].join(" · ");
  }

  // A mode's mean. Where some of its runs missed the target it takes longer than the restricted mean; where all did, there is
  // none.
  function timeToTarget(mode) {
    const { runs, reached } = mode.to_target;
    if (reached === 0) return { mean: null, text: runs > 1 ? `0 of ${runs} reached it` : "not reached" };
    if (reached === runs) return { mean: mode.mean.seconds_to_target, text: seconds(mode.mean.seconds_to_target) };
    const mean = mode.to_target.seconds.restricted_mean;
    return { mean, text: `>${seconds(mean)} (${reached} of ${runs})` };
  }

  // The mode with the least restricted mean, up to where all modes were seen; undefined if no run reached the target.
  function fastest(data) {
    const modes = data.modes.filter((mode) => mode.to_target.reached > 0);
    const time = (mode) => mode.to_target.seconds.restricted_mean;
    return modes.length === 0 ? undefined : modes.reduce((a, b) => (time(b) < time(a) ? b : a));
  }

  function targetNote(host, data) {
    const missed = data.modes.find((mode) => mode.to_target && mode.to_target.reached > 0 && mode.to_target.reached < mode.to_target.runs);
    host.hidden = missed === undefined;
    if (missed) host.textContent = `> where runs missed the target: the mean of what was seen of them up to ${seconds(missed.to_target.seconds.up_to)} (Kaplan-Meier).`;
  }

  // The mode with the best mean of a number; undefined when no mode has it.
  function best(data, field, better) {
    const modes = data.modes.filter((mode) => mode.mean[field] !== null);
    return modes.length === 0 ? undefined : modes.reduce((a, b) => (better(b.mean[field], a.mean[field]) ? b : a));
  }

  function bestCards(host, data) {
    const card = (label, value, detail) => {
      const element = html(host, "div", "card");
      html(element, "div", "label", label);
      html(element, "div", "value", value);
      html(element, "div", "detail", detail);
    };
    const more = (a, b) => a > b;
    const less = (a, b) => a < b;
    const [{ name, field, format, lowest }] = scores(data);
    if (data.target) {
      const label = `Fastest to ${targetText(data.target)}`;
      const mode = fastest(data);
      if (mode) card(label, timeToTarget(mode).text, mode.mode);
      else card(label, "not reached", "by any run");
    }
    const first = best(data, field, lowest ? less : more);
    if (first) card(`${lowest ? "Lowest" : "Highest"} final ${name}`, format(first.mean[field]), first.mode);
    const { name: unit, field: rate, digits } = speed(data);
    const quickest = best(data, rate, more);
    if (quickest) card("Highest throughput", `${quickest.mean[rate].toFixed(digits)} ${unit}`, quickest.mode);
  }

  // A table into `host`; a row's cells are texts, or functions that fill their cell.
  function table(host, className, header, rows) {
    const element = html(host, "table", className);
    const head = html(html(element, "thead"), "tr");
    for (const title of header) html(head, "th", "", title);
    const body = html(element, "tbody");
    for (const row of rows) {
      const line = html(body, "tr", row.className);
      for (const cell of row.cells) {
        if (typeof cell === "function") cell(html(line, "td"));
        else html(line, "td", "", cell);
      }
    }
  }

  function tag(run) {
    const style = { held: "good", broken: "bad" }[run.audit] || "none";
    return (cell) => html(cell, "span", `tag ${run.ok ? style : "bad"}`, run.ok ? run.audit : "failed");
  }

  function results(host, data) {
    const target = data.target !== null;
    const measured = scores(data);
    const { name: rateName, field: rate, digits } = speed(data);
    const numbers = (run, toTarget) => [
      ...measured.map(({ field, format }) => or(run[field], format, "–")),
      or(run[loss(data).field], fixed, "–"),
      ...(data.evaluated ? [or(run.generalization_gap, gapFormat(data), "–")] : []),
      ...(target ? [toTarget] : []),
      run[rate].toFixed(digits),
      seconds(run.seconds),
      run.staleness_mean.toFixed(2),
      String(run.staleness_max),
      `${(run.waiting_share * 100).toFixed(1)} %`,
      megabytes(run.pushed_bytes),
      megabytes(run.pulled_bytes),
      tag(run),
    ];
    const rows = data.modes.flatMap((mode, index) => {
      const named = (cell) => {
        html(cell, "span", "swatch").style.background = color(index);
        cell.append(mode.mode);
      };
      const seeds = mode.runs.length > 1 ? mode.runs : [];
      const ofRun = (run) => numbers(run, or(run.seconds_to_target, seconds, "not reached"));
      const ofMode = numbers(mode.mean, target ? timeToTarget(mode).text : "");
      return [{ cells: [named, ...ofMode] }, ...seeds.map((run) => ({ className: "seed", cells: [`seed ${run.seed}`, ...ofRun(run)] }))];
    });
    table(host, "", ["mode", ...measured.map(({ name }) => name), loss(data).name, ...(data.evaluated ? ["generalization gap"] : []), ...(target ? ["to target"] : []), rateName, "whole run", "staleness", "largest", "waiting", "pushed", "pulled", "audit"], rows);
  }

  // A card with a table of words, which stays hidden when there are no rows.
  function words(card, header, rows) {
    card.hidden = rows.length === 0;
    table(card.querySelector(".scroll"), "words", header, rows.map((cells) => ({ cells })));
  }

  // The means over a mode's runs, of those that had the worker.
  function workersOf(mode) {
    const sums = new Map();
    for (const run of mode.runs) {
      const examples = run.workers.reduce((sum, worker) => sum + worker[6], 0);
      for (const [index, , , , , steps, own, staleness, p50, p90] of run.workers) {
        const { runs, values } = sums.get(index) || { runs: 0, values: [0, 0, 0, 0, 0] };
        const added = [steps, examples > 0 ? own / examples : 0, staleness, p50, p90];
        sums.set(index, { runs: runs + 1, values: values.map((value, i) => value + added[i]) });
      }
    }
    return [...sums].sort((a, b) => a[0] - b[0]).map(([index, { runs, values }]) => ({ index, values: values.map((value) => value / runs) }));
  }

  function workers(card, data) {
    const rows = data.modes.flatMap((mode) => workersOf(mode).map(({ index, values: [steps, share, staleness, p50, p90] }) => [
      mode.mode, String(index), steps.toFixed(0), data.has_examples ? percent(share) : "–", staleness.toFixed(2),
      or(p50 || null, milliseconds, "–"), or(p90 || null, milliseconds, "–"),
    ]));
    words(card, ["mode", "worker", "steps", "share of examples", "staleness", "median step", "90th percentile"], rows);
  }

  function switches(card, data) {
    const rows = data.modes.flatMap((mode) => mode.runs.flatMap((run) => run.switches.map((change) => [
      runName(mode, run), seconds(change.t), change.mode, String(change.first_step), change.reason,
      milliseconds(change.round_trip_seconds), milliseconds(change.stall_seconds), milliseconds(change.slowest_step_seconds),
    ])));
    words(card, ["run", "at", "to", "first step", "asked for by", "round trip", "longest stall", "slowest worker's step"], rows);
  }

  function trouble(card, data) {
    const reason = (text) => (cell) => {
      cell.className = "reason";
      cell.textContent = text;
    };
    const rows = data.modes.flatMap((mode) => [
      ...mode.skipped.map((text) => [mode.mode, "", "skipped", reason(text)]),
      ...mode.runs.flatMap((run) => [
        ...run.rollbacks.map((line) => [runName(mode, run), seconds(line.t), line.step > 0 ? `back to step ${line.step}` : "back to the beginning", reason(line.reason)]),
        ...run.evictions.map((line) => [runName(mode, run), seconds(line.t), `${line.task} evicted`, reason(line.reason)]),
        ...(run.ok ? [] : [[runName(mode, run), seconds(run.seconds), "job failed", reason(run.error)]]),
      ]),
    ]);
    words(card, ["run", "at", "event", "reason"], rows);
  }

  function checkpoints(card, data) {
    const rows = data.modes.flatMap((mode) => mode.runs.flatMap((run) => run.checkpoints.map((line) => [
      runName(mode, run), seconds(line.t), line.name, line.epoch.toFixed(2), megabytes(line.bytes), seconds(line.seconds),
    ])));
    words(card, ["run", "at", "checkpoint", "epoch", "size", "took"], rows);
  }

  return { facts, scores, bestCards, results, workers, switches, checkpoints, trouble, table, timeToTarget, targetNote };
})();
