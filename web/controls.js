"use strict";
// What an operator does here: asks once, shows the token, and says what became of it.
const Controls = (() => {
  const TOKEN = "rubato-token";
  const host = (id) => document.getElementById(id);

  // From the address that was printed, of which no server ever hears what stands behind "#"; kept for this tab alone. Who
  // gives that address to a tab that shows the page already does not load it again.
  function takeToken() {
    const found = /^#token=([0-9a-f]{64})$/.exec(location.hash);
    if (!found) return;
    sessionStorage.setItem(TOKEN, found[1]);
    history.replaceState(null, "", location.pathname);
  }

  function headers() {
    const token = sessionStorage.getItem(TOKEN);
    return token === null ? {} : { Authorization: `Bearer ${token}` };
  }

  // A line that is read out; the last one stays.
  function say(text, kind = "") {
    const line = host("said");
    line.textContent = text;
    line.className = kind;
  }

  async function post(path, body, what) {
    const asking = `Asking: ${what} …`;
    say(asking);
    try {
      const answer = await fetch(path, { method: "POST", headers: { ...headers(), "Content-Type": "application/json" }, body: JSON.stringify(body) });
      const text = (await answer.text()).trim();
      // What became of it may have been told already.
      if (!answer.ok) say(`Refused: ${text}.`, "bad");
      else if (host("said").textContent === asking) say(`Asked: ${what}.`);
      return answer.ok;
    } catch {
      say(`The job does not answer; not asked: ${what}.`, "bad");
      return false;
    }
  }

  // Whether the person means it.
  function confirmed(question, detail, verb) {
    const dialog = host("confirm");
    host("confirm-question").textContent = question;
    host("confirm-detail").textContent = detail;
    host("confirm-yes").textContent = verb;
    dialog.returnValue = "";
    dialog.showModal();
    return new Promise((resolve) => {
      dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true });
    });
  }

  async function act(question, detail, verb, path, body, what) {
    if (await confirmed(question, detail, verb)) return post(path, body, what);
    return false;
  }

  const modes = () => [...document.querySelectorAll("input[name=mode]")];
  const chosen = () => modes().find((input) => input.checked).value;

  // Until somebody chooses another mode, that of the job is chosen.
  let shown = null;
  function showMode(plan) {
    if (plan === null || shown === Runs.modeName(plan)) return;
    shown = Runs.modeName(plan);
    for (const input of modes()) input.checked = input.value === plan.mode;
    if (plan.mode === "SSP") host("bound").value = plan.staleness_bound;
    showBound();
  }

  function showBound() {
    host("bound-label").hidden = chosen() !== "SSP";
  }

  async function switchMode() {
    const mode = chosen();
    const bound = Number(host("bound").value);
    const name = mode === "SSP" ? `ssp:${bound}` : mode.toLowerCase();
    const body = mode === "SSP" ? { mode, staleness_bound: bound } : { mode };
    await act(`Switch to ${name}?`, "The job goes on; no update is lost, and workers stand still for less than a step.", "Switch", "switch", body, `switch to ${name}`);
  }

  let awaitsCheckpoint = false;
  async function checkpoint() {
    if (await act("Write a checkpoint now?", "Training goes on meanwhile.", "Write", "checkpoint", {}, "checkpoint")) awaitsCheckpoint = true;
  }

  let awaitedTrace = null;

  async function trace(run) {
    const asked = await act("Record a trace?", "For five seconds every server and worker writes down what it does.", "Record", "trace", { seconds: 5 }, "trace of 5 s");
    if (asked && run()) awaitedTrace = new Set(run().status.tasks.map((task) => (task.trace ? task.trace[0] : "")));
  }

  // A trace that is there when all have written it.
  function followTrace(run) {
    if (awaitedTrace === null || !run.status) return;
    const tasks = run.status.tasks.filter((task) => task.role !== "evaluator" && task.state === "alive");
    const id = tasks.map((task) => (task.trace ? task.trace[0] : "")).find((value) => value !== "" && !awaitedTrace.has(value));
    if (id === undefined || tasks.some((task) => !task.trace || task.trace[0] !== id)) return;
    awaitedTrace = null;
    const failed = tasks.filter((task) => task.trace[1]).map((task) => `${task.role} ${task.index}: ${task.trace[1]}`);
    say(failed.length > 0 ? `The trace is there, but not of ${failed.join("; ")}.` : "The trace is there.");
    const open = host("open-trace");
    open.hidden = false;
    open.onclick = () => Trace.open(id, tasks.map((task) => `${task.role}-${task.index}`), headers());
  }

  // What the record says of requests since the page was opened.
  let told = null;
  function follow(run) {
    followTrace(run);
    showMode(Runs.plan(run));
    const news = run.logged - (told === null ? run.logged : told);
    told = run.logged;
    for (const line of news > 0 ? run.log.slice(-news) : []) {
      if (line.request && line.request.refused) say(`Refused: ${line.request.request}: ${line.request.refused}.`, "bad");
      else if (line.plan && line.plan.reason === "operator") say(`Switched: ${Panels.entryOf(line)[2]}.`);
      else if (line.checkpoint && awaitsCheckpoint) {
        awaitsCheckpoint = false;
        say(`Checkpoint ${line.checkpoint.name} is written.`);
      }
    }
    const training = run.status !== null && run.status.phase === "TRAINING";
    for (const button of host("controls").querySelectorAll("button")) button.disabled = button.dataset.training !== undefined && !training;
  }

  function start(run) {
    takeToken();
    addEventListener("hashchange", takeToken);
    host("switch").addEventListener("click", switchMode);
    host("checkpoint-now").addEventListener("click", checkpoint);
    host("trace").addEventListener("click", () => trace(run));
    host("stop").addEventListener("click", () => act("Stop the job?", "It writes a checkpoint first, from which --resume goes on.", "Stop", "stop", {}, "stop"));
    for (const input of modes()) input.addEventListener("change", showBound);
    document.addEventListener("keydown", (event) => {
      if (event.key !== "/" || /^(INPUT|TEXTAREA)$/.test(event.target.tagName) || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      host("search").focus();
    });
  }

  return { start, follow, headers, say };
})();
