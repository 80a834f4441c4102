"use strict";
// Every chart as an SVG file and every table as a CSV file, from buttons beside them.
const Downloads = (() => {
  const { html, node } = Charts;
  // What a drawing takes from the page's style, and does not say itself.
  const OF_TEXT = ["fill", "font-size", "font-family", "font-weight"];

  const LINE = 20;

  // The page's legend in lines above the drawing; how high they are.
  function addLegend(svg, legend, width) {
    const font = getComputedStyle(legend);
    const entries = [...legend.children].map((entry) => ({
      name: entry.textContent,
      fill: getComputedStyle(entry.querySelector(".swatch")).backgroundColor,
      width: entry.getBoundingClientRect().width + 14,
    }));
    const lines = [[]];
    let x = 0;
    for (const entry of entries) {
      if (x > 0 && x + entry.width > width) {
        lines.push([]);
        x = 0;
      }
      lines[lines.length - 1].push({ ...entry, x });
      x += entry.width;
    }
    const text = { fill: font.color, "font-size": font.fontSize, "font-family": font.fontFamily };
    lines.forEach((line, i) => {
      const y = (i - lines.length) * LINE + 3;
      for (const entry of line) {
        node(svg, "rect", { x: entry.x, y, width: 11, height: 11, rx: 3, fill: entry.fill });
        node(svg, "text", { x: entry.x + 17, y: y + 10, ...text }, entry.name);
      }
    });
    return lines.length * LINE;
  }

  // The chart as it is now, in the colors of the page, as a file that stands alone. Empty if nothing is drawn.
  function svgOf(chart) {
    const drawn = chart.querySelector("svg");
    if (drawn === null) return "";
    const copy = drawn.cloneNode(true);
    const originals = [drawn, ...drawn.querySelectorAll("*")];
    [copy, ...copy.querySelectorAll("*")].forEach((element, i) => {
      const style = getComputedStyle(originals[i]);
      for (const { name, value } of [...element.attributes]) {
        if (value.includes("var(")) element.setAttribute(name, style.getPropertyValue(name));
      }
      if (element.tagName === "text") for (const name of OF_TEXT) element.setAttribute(name, style.getPropertyValue(name));
      element.removeAttribute("class");
    });
    const { width, height } = drawn.getBoundingClientRect();
    const above = chart.dataset.legend ? addLegend(copy, document.getElementById(chart.dataset.legend), width) : 0;
    copy.setAttribute("width", width);
    copy.setAttribute("height", height + above);
    copy.setAttribute("viewBox", `0 ${-above} ${width} ${height + above}`);
    copy.setAttribute("style", `background: ${getComputedStyle(chart.closest(".card")).backgroundColor}`);
    return `${new XMLSerializer().serializeToString(copy)}\n`;
  }

  // RFC 4180, with lines that end as everywhere else.
  function csvOf(table) {
    const quoted = (cell) => {
      const text = cell.textContent.trim();
      return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    };
    return [...table.rows].map((row) => `${[...row.cells].map(quoted).join(",")}\n`).join("");
  }

  function save(text, type, name) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type }));
    link.download = name;
    link.click();
    URL.revokeObjectURL(link.href);
  }

  function button(card, label, title, onClick) {
    let head = card.querySelector(".head");
    if (head === null) {
      head = document.createElement("div");
      head.className = "head";
      card.prepend(head);
    }
    const element = html(head, "button", "download", label);
    element.type = "button";
    element.title = title;
    element.addEventListener("click", onClick);
  }

  // `job` begins the files' names.
  function addButtons(job) {
    const prefix = job.replace(/[^A-Za-z0-9._-]+/g, "-");
    for (const chart of document.querySelectorAll(".chart")) {
      button(chart.closest(".card"), "SVG", "Save the chart as an SVG file", () => save(svgOf(chart), "image/svg+xml", `${prefix}-${chart.id}.svg`));
    }
    for (const table of document.querySelectorAll("table")) {
      const card = table.closest(".card");
      button(card, "CSV", "Save the table as a CSV file", () => save(csvOf(table), "text/csv", `${prefix}-${card.id || "results"}.csv`));
    }
  }

  return { svgOf, csvOf, addButtons };
})();
