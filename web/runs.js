"use strict";
// What the page knows of its runs: keeps what is new beside what was told before, and no more than can be drawn.
const Runs = (() => {
  // As RunFeed has them, so that a page that is left open for days has what one has that is opened now.
  const POINTS = 1200;
  const SAMPLES = 160;
  const RECENT = 64;
  const LOG = 1000;
  const READINGS = 60;
  // Columns of a point: seconds, epochs, steps, loss; then the score of an evaluation, or the speed, the accuracy and the
  // staleness of progress.
  const STEP = 2;
  const PLACES = 3;
  // Of a worker in a sample: its index and totals.
  const W = { index: 0, steps: 1, examples: 2, data: 3, compute: 4, push: 5, wait: 6, staleness: 7 };

  const curve = () => ({ points: [], stride: 1, weight: 0 });
  const create = () => ({ about: null, start: null, curves: { points: curve(), evaluations: curve() }, samples: [], recent: [], stride: 1, seen: 0, log: [], status: null, readings: [], logged: 0,
    get points() { return this.curves.points.points; },
    get evaluations() { return this.curves.evaluations.points; } });

  // One point for two neighbours, which stand for so many.
  const merged = (a, n, b, m) => b.map((value, i) => {
    if (i < PLACES || a[i] === null) return value;
    return value === null ? a[i] : (a[i] * n + value * m) / (n + m);
  });

  function addPoint(to, point) {
    const { points } = to;
    if (points.length > 0 && to.weight < to.stride) {
      points[points.length - 1] = merged(points[points.length - 1], to.weight++, point, 1);
      return;
    }
    points.push(point);
    to.weight = 1;
    if (points.length <= POINTS) return;
    const half = [];
    for (let i = 0; i + 1 < points.length; i += 2) half.push(merged(points[i], to.stride, points[i + 1], i + 2 < points.length ? to.stride : to.weight));
    if (points.length % 2 === 1) half.push(points[points.length - 1]);
    else to.weight += to.stride;
    to.points = half;
    to.stride *= 2;
  }

  function addSample(run, sample) {
    run.recent.push(sample);
    if (run.recent.length <= RECENT) return;
    const oldest = run.recent.shift();
    if (run.seen++ % run.stride === 0) run.samples.push(oldest);
    if (run.samples.length <= SAMPLES) return;
    run.samples = run.samples.filter((_, i) => i % 2 === 0);
    run.stride *= 2;
  }

  // What was thinned out already goes on as it is.
  function begin(run, all) {
    for (const kind of ["points", "evaluations"]) Object.assign(run.curves[kind], { points: all[kind], stride: all.stride[kind], weight: all.stride[kind] });
    run.stride = all.stride.workers;
    run.samples = all.workers.slice(0, -RECENT);
    run.recent = all.workers.slice(-RECENT);
  }

  // Who waits for whom in a status: pairs [worker, awaited worker].
  function waitsOf(status) {
    const pairs = new Map();
    const add = (worker, text) => {
      for (const [, index] of text.matchAll(/worker (\d+)/g)) if (Number(index) !== worker) pairs.set(`${worker} ${index}`, [worker, Number(index)]);
    };
    for (const task of status.tasks) {
      for (const [worker, , text] of task.held || []) add(worker, text);
      if (task.role === "worker" && task.waiting_for) add(task.index, task.waiting_for.replace(/^.*waits for /, ""));
    }
    return [...pairs.values()];
  }

  // Rates of servers are between two of their heartbeats, which come more rarely than statuses.
  function addStatus(run, status) {
    const before = new Map((run.status ? run.status.tasks : []).map((task) => [`${task.role} ${task.index}`, task]));
    for (const task of status.tasks) {
      if (task.role !== "server") continue;
      task.at = status.t - task.heard;
      const earlier = before.get(`${task.role} ${task.index}`);
      if (!earlier || task.updates < earlier.updates) continue;
      const seconds = task.at - earlier.at;
      if (seconds < 0.2) {
        task.at = earlier.at;
        task.rates = earlier.rates;
        continue;
      }
      const rate = (key) => (task[key] - earlier[key]) / seconds;
      task.rates = { updates: rate("updates"), received: rate("received"), sent: rate("sent"), rows: rate("rows_applied") };
    }
    run.status = status;
    if (status.phase !== "TRAINING") return;
    run.readings.push(waitsOf(status));
    if (run.readings.length > READINGS) run.readings.shift();
  }

  // Both what everything and what news are.
  function add(run, news) {
    if (news.about) run.about = news.about;
    if (news.start) run.start = news.start;
    for (const line of news.log) {
      const { rollback } = line;
      if (!rollback) continue;
      const stays = (point) => point[STEP] < rollback.step && point[0] <= rollback.t;
      for (const one of Object.values(run.curves)) Object.assign(one, { points: one.points.filter(stays), weight: one.stride });
    }
    if (news.stride) {
      begin(run, news);
    } else {
      for (const kind of ["points", "evaluations"]) for (const point of news[kind]) addPoint(run.curves[kind], point);
      for (const sample of news.workers) addSample(run, sample);
    }
    run.log.push(...news.log);
    run.logged += news.log.length;
    if (run.log.length > LOG) run.log.splice(0, run.log.length - LOG);
    if (news.status) addStatus(run, news.status);
  }

  // What lies between samples: [from, to, Map of index to totals' differences], of workers that are in both.
  function intervals(samples) {
    const result = [];
    for (let i = 1; i < samples.length; ++i) {
      const before = new Map(samples[i - 1][1].map((worker) => [worker[W.index], worker]));
      const workers = new Map();
      for (const worker of samples[i][1]) {
        const earlier = before.get(worker[W.index]);
        // Counts begin again with a process.
        if (!earlier || worker[W.steps] < earlier[W.steps] || worker[W.compute] < earlier[W.compute]) continue;
        workers.set(worker[W.index], worker.map((value, j) => (j === 0 ? value : value - earlier[j])));
      }
      result.push([samples[i - 1][0], samples[i][0], workers]);
    }
    return result;
  }

  const workerIndices = (run) => {
    const last = run.recent[run.recent.length - 1];
    return last ? last[1].map((worker) => worker[W.index]).sort((a, b) => a - b) : [];
  };

  function modeName(plan) {
    if (plan.mode === "SSP") return `SSP(${plan.staleness_bound})`;
    return plan.mode + (plan.quorum > 0 ? `, quorum ${plan.quorum}` : "") + (plan.sync_every > 0 ? `, an exchange every ${plan.sync_every} batches` : "");
  }

  // Plans that changed the mode, without the first one: [{t, mode, reason}].
  function switches(run) {
    const plans = run.log.filter((line) => line.plan).map((line) => line.plan);
    return plans.filter((plan, i) => plan.generation > 1 && (i === 0 || modeName(plans[i - 1]) !== modeName(plan)))
      .map((plan) => ({ t: plan.t, mode: modeName(plan), reason: plan.reason }));
  }

  // The awaited, those most waited for first: [{index, share of the readings, waiters: [index..]}].
  function awaited(run) {
    const of = new Map();
    for (const pairs of run.readings) {
      for (const index of new Set(pairs.map((pair) => pair[1]))) {
        const entry = of.get(index) || { index, readings: 0, waiters: new Map() };
        ++entry.readings;
        for (const [worker, other] of pairs) if (other === index) entry.waiters.set(worker, (entry.waiters.get(worker) || 0) + 1);
        of.set(index, entry);
      }
    }
    return [...of.values()].map((entry) => ({
      index: entry.index,
      share: entry.readings / run.readings.length,
      waiters: [...entry.waiters.keys()].sort((a, b) => a - b),
    })).sort((a, b) => b.share - a.share || b.waiters.length - a.waiters.length);
  }

  // The end, unless the run was resumed after it.
  const ended = (run) => {
    const last = run.log[run.log.length - 1];
    return last && last.end ? last : undefined;
  };
  // The plan that holds, as the status or the record has it; null before the first.
  const plan = (run) => (run.status && run.status.plan) || (run.log.findLast((line) => line.plan) || { plan: null }).plan;

  return { create, add, intervals, workerIndices, modeName, switches, awaited, ended, plan, W };
})();
