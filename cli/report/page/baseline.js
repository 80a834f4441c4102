"use strict";
// Each mode against the baseline, over pairs of runs with the same seed: a table, and intervals as dots with whiskers.
const Baseline = (() => {
  const { html, node, responsive, ticks, extent, color } = Charts;
  const isShare = (result) => result.quantity.endsWith("accuracy");
  const isRatio = (result) => result.kind === "ratio";
  // What is drawn and written: shares as points of a hundred.
  const scaled = (result, value) => (isShare(result) ? value * 100 : value);

  function format(result, value) {
    if (isRatio(result)) return `×${value.toFixed(3)}`;
    const digits = Math.abs(scaled(result, value)).toFixed(isShare(result) ? 2 : 4);
    return `${value < 0 ? "−" : "+"}${digits}`;
  }

  function probability(result) {
    if (result.p_holm === null || !result.enough_pairs) return "–";
    return result.p_holm < 0.001 ? "< 0.001" : result.p_holm.toFixed(3);
  }

  // Rows [{name, index, at, low, high, text}] on one axis, with a line where there is no difference.
  function whiskers(host, options) {
    responsive(host, (width) => {
      const box = { left: 8, right: width - 8, top: 4, bottom: 4 + options.rows.length * 40 };
      const [low, high] = extent([options.none, ...options.rows.flatMap((row) => [row.low, row.high])], 0.08);
      const x = (value) => box.left + ((value - low) / (high - low)) * (box.right - box.left);
      const svg = node(host, "svg", { height: box.bottom + 42, role: "img", "aria-label": options.label });
      for (const value of ticks(low, high, Math.max(2, width / 90))) {
        if (value < low || value > high) continue;
        node(svg, "line", { x1: x(value), x2: x(value), y1: box.top, y2: box.bottom, stroke: "var(--grid)" });
        node(svg, "text", { x: x(value), y: box.bottom + 16, "text-anchor": "middle" }, String(value));
      }
      node(svg, "line", { x1: x(options.none), x2: x(options.none), y1: box.top, y2: box.bottom, stroke: "var(--soft)", "stroke-dasharray": "5 4" });
      node(svg, "text", { x: box.right, y: box.bottom + 34, "text-anchor": "end" }, options.xLabel);
      options.rows.forEach((row, i) => {
        const y = box.top + i * 40 + 27;
        const group = node(svg, "g", { stroke: color(row.index), "stroke-width": 2 });
        node(group, "line", { x1: x(row.low), x2: x(row.high), y1: y, y2: y });
        for (const end of [row.low, row.high]) node(group, "line", { x1: x(end), x2: x(end), y1: y - 5, y2: y + 5 });
        node(group, "circle", { cx: x(row.at), cy: y, r: 4.5, fill: color(row.index), stroke: "var(--card)" });
        node(group, "title", {}, row.text);
        // Readable where it stands on a line of the axis.
        node(svg, "text", { x: box.left, y: y - 11, class: "strong", stroke: "var(--card)", "stroke-width": 4, "paint-order": "stroke" }, row.name);
      });
    });
  }

  function drawIntervals(host, against, indexOf) {
    const measured = against.results.filter((result) => result.low !== null);
    for (const quantity of new Set(measured.map((result) => result.quantity))) {
      const results = measured.filter((result) => result.quantity === quantity);
      const [first] = results;
      const figure = html(host, "div");
      html(figure, "p", "hint", first.label);
      const value = (result, field) => scaled(result, result[field]);
      whiskers(html(figure, "div", "chart"), {
        rows: results.map((result) => ({
          name: result.mode,
          index: indexOf(result.mode),
          at: value(result, "estimate"),
          low: value(result, "low"),
          high: value(result, "high"),
          text: `${result.mode}: ${format(result, result.estimate)} (${format(result, result.low)} to ${format(result, result.high)})`,
        })),
        none: isRatio(first) ? 1 : 0,
        xLabel: isRatio(first) ? `times that of ${against.baseline}` : `${isShare(first) ? "points" : "difference"}, + is more than ${against.baseline}`,
        label: `${first.label} against ${against.baseline}, 95 % intervals`,
      });
    }
  }

  function fillTable(host, against, indexOf) {
    const rows = against.results.map((result) => ({
      cells: [
        (cell) => {
          html(cell, "span", "swatch").style.background = color(indexOf(result.mode));
          cell.append(result.mode);
        },
        result.label,
        result.estimate === null ? "–" : `${format(result, result.estimate)}${isShare(result) ? " points" : ""}`,
        result.low === null ? "–" : `${format(result, result.low)} to ${format(result, result.high)}`,
        probability(result),
        String(result.pairs),
      ],
    }));
    if (rows.length > 0) Tables.table(host, "", ["mode", "quantity", "difference", "95 % interval", "p (Holm)", "pairs"], rows);
  }

  // Fills the card, which stays hidden when there is nothing to compare with.
  function show(card, data) {
    const against = data.against_baseline;
    card.hidden = against === null;
    if (against === null) return;
    const indexOf = (name) => data.modes.findIndex((mode) => mode.mode === name);
    card.querySelector("h2").textContent = `Against ${against.baseline}, run by run with the same seed`;
    for (const note of against.notes) html(card.querySelector(".notes"), "p", "hint", note);
    drawIntervals(card.querySelector(".intervals"), against, indexOf);
    fillTable(card.querySelector(".scroll"), against, indexOf);
  }

  return { show };
})();
