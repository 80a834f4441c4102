// Put before the scripts of a page that is shown in a frame: once the page is drawn, tells the window around it what of the
// page is wrong.
"use strict";
const errors = [];
addEventListener("error", (event) => errors.push(event.message));
addEventListener("unhandledrejection", (event) => errors.push(String(event.reason)));

addEventListener("load", () => {
  const shown = (element) => element.getClientRects().length > 0;
  const charts = [...document.querySelectorAll(".chart")].filter(shown);
  // Texts that stand out of their drawing.
  const cut = charts.flatMap((chart) => {
    const box = chart.getBoundingClientRect();
    return [...chart.querySelectorAll("text")].filter((text) => {
      const at = text.getBoundingClientRect();
      return at.width > 0 && (at.left < box.left - 1 || at.right > box.right + 1 || at.top < box.top - 1 || at.bottom > box.bottom + 1);
    }).map((text) => `${chart.id}: ${text.textContent}`);
  });
  // Texts of one drawing that cover each other.
  const covered = charts.flatMap((chart) => {
    const texts = [...chart.querySelectorAll("text")].map((text) => ({ text, at: text.getBoundingClientRect() }));
    return texts.flatMap(({ text, at }, i) => texts.slice(i + 1).filter((other) =>
      at.left < other.at.right - 2 && other.at.left < at.right - 2 && at.top < other.at.bottom - 2 && other.at.top < at.bottom - 2,
    ).map((other) => `${chart.id}: ${text.textContent} and ${other.text.textContent}`));
  });
  // Charts and tables as files: what is not one that stands alone.
  const figures = charts.map((chart) => [chart.id, Downloads.svgOf(chart)]).filter(([, text]) => {
    const root = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
    return root.tagName !== "svg" || text.includes("var(") || text.includes("class=") || !root.querySelector("text").hasAttribute("fill");
  }).map(([id]) => id);
  const tables = [...document.querySelectorAll("table")];
  const files = tables.filter((table) => {
    const lines = Downloads.csvOf(table).split("\n");
    return lines.length !== table.rows.length + 1 || lines.some((line, i) => i < table.rows.length && line.split(",").length < table.rows[i].cells.length);
  }).map((table) => table.closest(".card").id);
  const buttons = document.querySelectorAll("button.download").length;
  const ink = getComputedStyle(document.body);
  parent.postMessage(JSON.stringify({
    errors,
    width: innerWidth,
    dark: matchMedia("(prefers-color-scheme: dark)").matches,
    charts: charts.length,
    empty: charts.filter((chart) => chart.querySelector("svg") === null).map((chart) => chart.id),
    cut,
    covered,
    bad_files: [...figures, ...files],
    without_button: document.querySelectorAll(".chart").length + tables.length - buttons,
    // Wider than the window.
    overflow: Math.max(0, document.documentElement.scrollWidth - innerWidth),
    ink: `${ink.color} on ${ink.backgroundColor}`,
  }), "*");
});
