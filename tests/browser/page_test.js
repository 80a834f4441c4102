// Drives a page of runs with playwright-core, as page_test.sh says.
//
//   node page_test.js PLAYWRIGHT BROWSER PICTURES job ADDRESS#token=...
//   node page_test.js PLAYWRIGHT BROWSER PICTURES file PAGE
"use strict";
const assert = require("node:assert");
const path = require("node:path");

const [playwright, executablePath, pictures, kind, place] = process.argv.slice(2);
const { chromium } = require(path.resolve(playwright));
const TIMEOUT = 30000 * Number(process.env.RUBATO_TEST_TIMEOUT_FACTOR || 2);

// A page that notes what is wrong with it: errors of its scripts, and requests to anybody but its server.
async function open(browser, address, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1000, height: 900 }, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(TIMEOUT);
  page.wrong = [];
  const own = new URL(address);
  page.on("pageerror", (error) => page.wrong.push(`script: ${error.stack}`));
  page.on("request", (request) => {
    const url = new URL(request.url());
    if (url.protocol !== "data:" && url.protocol !== "blob:" && url.host !== own.host) page.wrong.push(`request: ${url}`);
  });
  await page.goto(address);
  return page;
}

const textOf = (page, id) => page.locator(`#${id}`).innerText();
const until = (page, id, pattern) => page.waitForFunction(([id, source]) => new RegExp(source).test(document.getElementById(id).innerText), [id, pattern.source]);
const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

async function press(page, button) {
  await page.click(`#${button}`);
  await page.waitForSelector("#confirm[open]");
  await page.click("#confirm-yes");
  await page.waitForSelector("#confirm", { state: "hidden" });
}

// The mean of the last points of a curve.
const rateOf = (page) => page.evaluate(() => Number(document.querySelector("#speed svg").getAttribute("aria-label").match(/([0-9,]+)$/)[1].replaceAll(",", "")));

async function medianRate(page) {
  const rates = [];
  for (let i = 0; i < 5; ++i) {
    rates.push(await rateOf(page));
    await sleep(1000);
  }
  return rates.sort((a, b) => a - b)[2];
}

async function withoutToken(browser, address) {
  const page = await open(browser, address.replace(/#.*/, ""));
  await until(page, "phase", /training/);
  for (const button of ["switch", "checkpoint-now", "trace", "stop"]) {
    await page.evaluate(() => (document.getElementById("said").textContent = ""));
    await press(page, button);
    await until(page, "said", /Refused: the operator's token is missing/);
  }
  // Who then gives the whole address to this tab has it.
  await page.evaluate((hash) => (location.hash = hash), new URL(address).hash);
  await page.waitForFunction(() => "Authorization" in Controls.headers() && location.hash === "");
  assert.deepEqual(page.wrong, []);
  await page.context().close();
}

async function watchMoving(page) {
  await until(page, "waits", /The others wait for worker 1/);
  await until(page, "warnings", /worker 1/);
  const path = () => page.locator("#loss svg path").first().getAttribute("d");
  const before = await path();
  await sleep(2500);
  assert.notEqual(await path(), before, "the loss does not move");
}

// Every control can be reached by its name and by keys.
async function checkNames(page) {
  for (const name of ["Switch", "Checkpoint now", "Trace 5 s", "Stop"]) assert.equal(await page.getByRole("button", { name, exact: true }).count(), 1, name);
  assert.equal(await page.getByRole("radio", { name: "ssp" }).count(), 1);
  assert.ok((await page.getByRole("img").count()) >= 5, "charts have no names");
  const unnamed = await page.evaluate(() => [...document.querySelectorAll("svg[role=img], canvas[role=img]")].filter((image) => !image.getAttribute("aria-label")).length);
  assert.equal(unnamed, 0);
  await page.keyboard.press("/");
  assert.equal(await page.evaluate(() => document.activeElement.id), "search");
  await page.keyboard.type("nothing is like this");
  await until(page, "log", /Nothing is like that/);
  await page.fill("#search", "");
}

async function switchToAsync(page) {
  const before = await medianRate(page);
  assert.ok(await page.isChecked("input[name=mode][value=SYNC]"), "the job's mode is not the one that is chosen");
  await page.check("input[name=mode][value=ASYNC]");
  await press(page, "switch");
  await until(page, "said", /Switched: plan 2: ASYNC from step [0-9,]+ on/);
  await until(page, "summary", /ASYNC/);
  await until(page, "log", /operator at 127\.0\.0\.1: switch to async/);
  await page.waitForFunction(() => document.querySelector("#loss svg").textContent.includes("ASYNC"));
  await sleep(4000);
  const after = await medianRate(page);
  console.log(`examples per second: ${before} in SYNC, ${after} in ASYNC`);
  assert.ok(after > 1.5 * before, `the rate does not rise: ${before} before, ${after} after`);
}

async function refuseNonsense(page) {
  await page.check("input[name=mode][value=SSP]");
  await page.fill("#bound", "0");
  await press(page, "switch");
  await until(page, "said", /Refused: switch to ssp: staleness_bound: value 0; allowed: 1 to/);
}

async function traceAndCheckpoint(page) {
  await press(page, "checkpoint-now");
  await until(page, "said", /Checkpoint step[0-9]+ is written/);
  await press(page, "trace");
  await page.waitForSelector("#open-trace:not([hidden])");
  await page.click("#open-trace");
  await page.waitForSelector("#trace-dialog[open]");
  const canvas = page.locator("#trace-canvas");
  const drawn = () => canvas.evaluate((element) => element.toDataURL());
  const whole = await drawn();
  await canvas.press("+");
  assert.notEqual(await drawn(), whole, "the trace does not come closer");
  await page.screenshot({ path: path.join(pictures, "trace.png") });
  await page.keyboard.press("Escape");
  await page.waitForSelector("#trace-dialog", { state: "hidden" });
}

// Pictures at three widths, light and dark; nothing is wider than the window, and nothing stands out of its chart.
async function takePictures(browser, address, name) {
  const backgrounds = new Set();
  for (const width of [400, 1000, 1800]) {
    for (const colorScheme of ["light", "dark"]) {
      const page = await open(browser, address, { viewport: { width, height: 900 }, colorScheme });
      await page.waitForSelector("#loss svg path");
      await sleep(1500);
      const found = await page.evaluate(() => ({
        wider: document.documentElement.scrollWidth - innerWidth,
        background: getComputedStyle(document.body).backgroundColor,
        cut: [...document.querySelectorAll(".chart")].flatMap((chart) => {
          const box = chart.getBoundingClientRect();
          return [...chart.querySelectorAll("text")].filter((text) => {
            const at = text.getBoundingClientRect();
            return at.width > 0 && (at.left < box.left - 1 || at.right > box.right + 1);
          }).map((text) => `${chart.id}: ${text.textContent}`);
        }),
      }));
      assert.ok(found.wider <= 0, `${width} ${colorScheme}: wider than the window by ${found.wider}`);
      assert.deepEqual(found.cut, [], `${width} ${colorScheme}: ${found.cut.join("; ")}`);
      assert.deepEqual(page.wrong, []);
      backgrounds.add(`${colorScheme} ${found.background}`);
      await page.screenshot({ path: path.join(pictures, `${name}-${width}-${colorScheme}.png`), fullPage: true });
      await page.context().close();
    }
  }
  assert.equal(backgrounds.size, 2, [...backgrounds].join());
}

// As if the page had been open for days.
async function checkThatItDoesNotGrow(page) {
  const sizes = await page.evaluate(() => {
    const run = Runs.create();
    const workers = Array.from({ length: 100 }, (_, index) => [index, 0, 0, 0, 0, 0, 0, 0]);
    for (let t = 1; t <= 20000; ++t) {
      const plan = { t, generation: t, mode: "SYNC", first_step: t, members: [], reason: "again" };
      Runs.add(run, { points: [[t, t, t, 1, 1, 1, 0]], evaluations: [[t, t, t, 1, 1]], workers: [[t, workers]], log: [{ plan }], status: null });
    }
    return [run.points.length, run.evaluations.length, run.samples.length + run.recent.length, run.log.length, run.points[run.points.length - 1][0]];
  });
  assert.ok(sizes[0] <= 1200 && sizes[0] >= 600 && sizes[1] <= 1200 && sizes[2] <= 224 && sizes[3] === 1000 && sizes[4] === 20000, sizes.join());
}

// More than a call takes as arguments: many runs, many workers.
async function checkMany(page) {
  const sizes = await page.evaluate(() => {
    const values = Array.from({ length: 400000 }, (_, i) => i);
    const run = Runs.create();
    const workers = (t) => Array.from({ length: 1024 }, (_, index) => [index, t, t, t, t, t, t, 2 * t]);
    run.recent = Array.from({ length: 224 }, (_, t) => [t, workers(t)]);
    const host = document.createElement("div");
    Lanes.drawStaleness(host, run);
    return [...Charts.extent(values, 0), host.querySelector("canvas").getAttribute("aria-label")];
  });
  assert.deepEqual(sizes.slice(0, 2), [0, 399999]);
  assert.match(sizes[2], /worker 0 2\.00/);
}

// A run that was resumed after its end goes on; a log that has come anew is drawn anew, however long the one before was.
async function checkThatItGoesOn(page) {
  const [ended, before, after] = await page.evaluate(() => {
    const run = Runs.create();
    const news = (...log) => ({ about: { name: "run", directory: "runs/run", config: "" }, points: [], evaluations: [], workers: [], log });
    const host = document.createElement("ul");
    const drawn = () => {
      Panels.log(host, [run], "");
      return host.textContent;
    };
    Runs.add(run, news({ end: { t: 1, ok: false, error: "stopped by somebody" } }));
    const states = [Boolean(Runs.ended(run))];
    const first = drawn();
    Runs.add(run, news({ plan: { t: 2, generation: 2, mode: "SYNC", first_step: 5, members: [], reason: "resumed" } }));
    states.push(Boolean(Runs.ended(run)));
    [run.log, run.logged] = [[{ end: { t: 3, ok: true, error: "" } }], 1];
    return [states, first, drawn()];
  });
  assert.deepEqual(ended, [true, false]);
  assert.match(before, /stopped by somebody/);
  assert.match(after, /the job is done/);
}

async function testJob(browser) {
  await withoutToken(browser, place);
  const page = await open(browser, place);
  await until(page, "phase", /training/);
  assert.equal(new URL(page.url()).hash, "", "the token stays in the address bar");
  await watchMoving(page);
  await checkNames(page);
  await takePictures(browser, place, "sync");
  await switchToAsync(page);
  await refuseNonsense(page);
  await traceAndCheckpoint(page);
  await takePictures(browser, place, "async");
  await checkThatItDoesNotGrow(page);
  await checkMany(page);
  await checkThatItGoesOn(page);
  await press(page, "stop");
  await until(page, "phase", /ended/);
  await until(page, "warnings", /stopped by the operator at 127\.0\.0\.1/);
  await until(page, "connection", /The job has ended/);
  assert.deepEqual(page.wrong, []);
}

async function testFile(browser) {
  const address = `file://${path.resolve(place)}`;
  const page = await open(browser, address);
  await until(page, "job", /2 runs/);
  await until(page, "log", /operator at 127\.0\.0\.1: switch to async/);
  assert.equal(await page.isVisible("#controls"), false);
  await page.getByRole("button", { name: "steps" }).click();
  assert.match(await page.locator("#loss svg").getAttribute("aria-label"), /over steps/);
  assert.equal(await page.locator("#legend span").count(), 2);
  // What a run is called is text.
  assert.match(await textOf(page, "legend"), /<img>again/);
  assert.equal(await page.locator("img").count(), 0);
  assert.deepEqual(page.wrong, []);
  await takePictures(browser, address, "ended");
}

(async () => {
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
  try {
    await (kind === "job" ? testJob(browser) : testFile(browser));
  } catch (error) {
    for (const context of browser.contexts()) {
      for (const page of context.pages()) await page.screenshot({ path: path.join(pictures, "failed.png"), fullPage: true }).catch(() => {});
    }
    throw error;
  } finally {
    await browser.close();
  }
})().catch((error) => {
  console.error(error);
  process.exit(1);
});
