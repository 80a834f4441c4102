#!/usr/bin/env node
// Whether a page of a running job that is left open grows: opens it in Chromium, and once a minute collects its garbage and
// prints the heap of its scripts, its DOM nodes and its listeners, and the resident memory of the process that draws it.
//
//   rubato train configs/mnist_mlp_sync.textproto --run_directory=runs/long --page --set training.max_steps=100000000
//   node bench/page_memory.js 'http://127.0.0.1:PORT/#token=...' [--minutes=60] [--every_seconds=60]
//     [--browser=/usr/bin/chromium] [--playwright=data/playwright/node_modules/playwright-core]
//
// The first third of the readings is warm-up: within some minutes the page has as many samples of workers as it keeps, within
// 20 as many points of its curves, which from then on lie between half of that and all of it. Flat: in the median of the
// last third the heap is at most 5 % and 0.25 MiB, nodes and listeners at most 5 % and 40, above the median of the second
// third. Exit status 1: something is not flat, the job stood still, or the page's scripts had an error.
"use strict";
const fs = require("node:fs");
const path = require("node:path");
const { parseArgs } = require("node:util");

const MEBIBYTE = 2 ** 20;
const SHARE = 1.05;
// What is judged, and by how much it may grow besides.
const JUDGED = [["heap_bytes", 0.25 * MEBIBYTE], ["nodes", 40], ["listeners", 40]];

const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)];
}

// The resident bytes of the renderer processes, of which the page is the largest.
async function residentBytes(browserSession) {
  const { processInfo } = await browserSession.send("SystemInfo.getProcessInfo");
  const sizes = processInfo.filter((process) => process.type === "renderer").map(({ id }) => {
    try {
      return 1024 * Number(/^VmRSS:\s+(\d+) kB$/m.exec(fs.readFileSync(`/proc/${id}/status`, "utf8"))[1]);
    } catch {
      return 0; // It has ended meanwhile.
    }
  });
  return Math.max(0, ...sizes);
}

async function read(page, session, browserSession) {
  await session.send("HeapProfiler.collectGarbage");
  const { metrics } = await session.send("Performance.getMetrics");
  const of = (name) => metrics.find((metric) => metric.name === name).value;
  const step = await page.evaluate(() => Number(/STEP\s+([0-9,]+)/i.exec(document.getElementById("summary").innerText)?.[1].replaceAll(",", "") ?? -1));
  const phase = (await page.locator("#phase").innerText()).trim();
  return { heap_bytes: of("JSHeapUsedSize"), nodes: of("Nodes"), listeners: of("JSEventListeners"), resident_bytes: await residentBytes(browserSession), step, phase };
}

// What is not flat.
function findings(readings) {
  const third = Math.floor(readings.length / 3);
  const before = readings.slice(third, -third);
  const after = readings.slice(-third);
  return JUDGED.flatMap(([name, besides]) => {
    const [first, last] = [before, after].map((part) => median(part.map((reading) => reading[name])));
    console.log(`${name}: median ${first} in the second third, ${last} in the last one`);
    return last > first * SHARE + besides ? [`${name} is not flat: ${first} became ${last}`] : [];
  });
}

async function watch(browser, address, options) {
  const page = await browser.newPage({ viewport: { width: 1200, height: 900 } });
  const wrong = [];
  page.on("pageerror", (error) => wrong.push(`script: ${error.stack}`));
  await page.goto(address);
  await page.waitForFunction(() => /training/.test(document.getElementById("phase").innerText));
  const session = await page.context().newCDPSession(page);
  const browserSession = await browser.newBrowserCDPSession();
  await session.send("Performance.enable");
  await session.send("HeapProfiler.enable");
  const readings = [];
  const began = performance.now();
  const count = Math.floor((60 * options.minutes) / options.every_seconds);
  for (let i = 0; i < count && wrong.length === 0; ++i) {
    await sleep(Math.max(0, began + (i + 1) * options.every_seconds * 1000 - performance.now()));
    const reading = await read(page, session, browserSession);
    console.log(JSON.stringify({ seconds: Math.round((performance.now() - began) / 1000), ...reading }));
    if (reading.step <= (readings.at(-1)?.step ?? -1)) wrong.push(`the page stands still at step ${reading.step}: ${reading.phase}`);
    readings.push(reading);
  }
  return wrong.length > 0 ? wrong : findings(readings);
}

function parse() {
  const { values, positionals } = parseArgs({ allowPositionals: true, options: {
    minutes: { type: "string", default: "60" },
    every_seconds: { type: "string", default: "60" },
    browser: { type: "string", default: "/usr/bin/chromium" },
    playwright: { type: "string", default: path.join(__dirname, "../data/playwright/node_modules/playwright-core") },
  } });
  const options = { ...values, minutes: Number(values.minutes), every_seconds: Number(values.every_seconds) };
  if (positionals.length !== 1) throw new Error("the address that rubato train --page has printed is missing");
  if (!(options.every_seconds > 0) || !(60 * options.minutes >= 6 * options.every_seconds)) {
    throw new Error(`--minutes: value ${values.minutes}; allowed: at least six readings, one each --every_seconds=${values.every_seconds}`);
  }
  return [positionals[0], options];
}

async function main() {
  const [address, options] = parse();
  const { chromium } = require(path.resolve(options.playwright));
  const browser = await chromium.launch({ executablePath: options.browser, args: ["--no-sandbox"] });
  try {
    const wrong = await watch(browser, address, options);
    console.log(wrong.length > 0 ? wrong.join("\n") : "flat");
    return wrong.length > 0 ? 1 : 0;
  } finally {
    await browser.close();
  }
}

main().then((status) => process.exit(status), (error) => {
  console.error(`page_memory: ${error.message}`);
  process.exit(1);
});
