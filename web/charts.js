"use strict";
// Charts drawn as SVG from plain data. Colours are CSS variables, so that they follow the page's theme.
const Charts = (() => {
  const holder = document.createElement("template");
  holder.innerHTML = "<svg></svg>";
  const NAMESPACE = holder.content.firstChild.namespaceURI;
  const DASHES = ["", "7 3", "2 3", "9 3 2 3", "4 2", "1 4"];

  function node(parent, name, attributes, text) {
    const element = document.createElementNS(NAMESPACE, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text !== undefined) element.textContent = text;
    parent.appendChild(element);
    return element;
  }

  function html(parent, name, className, text) {
    const element = document.createElement(name);
    if (className) element.className = className;
    if (text !== undefined) element.textContent = text;
    parent.appendChild(element);
    return element;
  }

  // One shape for each colour, for who cannot tell these apart.
  const SHAPES = [
    (x, y) => `M${x - 5} ${y}a5 5 0 1 0 10 0a5 5 0 1 0 -10 0Z`,
    (x, y) => `M${x - 4.5} ${y - 4.5}h9v9h-9Z`,
    (x, y) => `M${x} ${y - 6}l5.5 10h-11Z`,
    (x, y) => `M${x} ${y - 6}l6 6l-6 6l-6 -6Z`,
    (x, y) => `M${x} ${y + 6}l5.5 -10h-11Z`,
    (x, y) => `M${x - 5} ${y - 5}l10 10m0 -10l-10 10`,
  ];

  function shape(svg, index, x, y) {
    return node(svg, "path", { d: SHAPES[index % 6](x, y), fill: color(index), stroke: index % 6 === 5 ? color(index) : "var(--card)", "stroke-width": index % 6 === 5 ? 2.5 : 1.5 });
  }

  const color = (index) => `var(--s${index % 6})`;

  function ticks(low, high, count) {
    const rough = (high - low) / count;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 2.5, 5, 10].map((f) => f * power).find((s) => s >= rough * 0.999);
    const result = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-6; ++i) result.push(Number((i * step).toPrecision(12)));
    return result;
  }

  // Draws now and again whenever the host's width changes.
  function responsive(host, draw) {
    let width = 0;
    const redraw = () => {
      const now = Math.max(260, Math.floor(host.clientWidth));
      if (now === width) return;
      width = now;
      host.textContent = "";
      draw(width);
    };
    if (host.observer) host.observer.disconnect();
    host.observer = new ResizeObserver(redraw);
    host.observer.observe(host);
    redraw();
  }

  function interpolate(points, x) {
    if (points.length === 0 || x < points[0][0] || x > points[points.length - 1][0]) return null;
    let i = points.findIndex((point) => point[0] >= x);
    if (i === 0) return points[0][1];
    const [x0, y0] = points[i - 1];
    const [x1, y1] = points[i];
    return x1 === x0 ? y1 : y0 + ((y1 - y0) * (x - x0)) / (x1 - x0);
  }

  // The mean and the spread of several runs where all of them have values: [x, mean, lowest, highest].
  function band(runs) {
    const low = Math.max(...runs.map((points) => points[0][0]));
    const high = Math.min(...runs.map((points) => points[points.length - 1][0]));
    if (!(high > low)) return [];
    const result = [];
    for (let i = 0; i <= 120; ++i) {
      const x = low + ((high - low) * i) / 120;
      const values = runs.map((points) => interpolate(points, x)).filter((y) => y !== null);
      if (values.length < runs.length) continue;
      result.push([x, values.reduce((a, b) => a + b, 0) / values.length, Math.min(...values), Math.max(...values)]);
    }
    return result;
  }

  // Of lists that are too long to be a call's arguments.
  const lowest = (values) => values.reduce((a, b) => Math.min(a, b), Infinity);
  const highest = (values) => values.reduce((a, b) => Math.max(a, b), -Infinity);

  function extent(values, pad) {
    let low = lowest(values);
    let high = highest(values);
    if (low === high) [low, high] = [low - (Math.abs(low) || 1) * 0.05, high + (Math.abs(high) || 1) * 0.05];
    return [low - (high - low) * pad, high + (high - low) * pad];
  }

  function frame(svg, options, box, x, y, xRange, yRange) {
    for (const value of ticks(yRange[0], yRange[1], 5)) {
      if (value < yRange[0] || value > yRange[1]) continue;
      node(svg, "line", { x1: box.left, x2: box.right, y1: y(value), y2: y(value), stroke: "var(--grid)" });
      node(svg, "text", { x: box.left - 8, y: y(value) + 4, "text-anchor": "end" }, options.yFormat(value));
    }
    for (const value of ticks(xRange[0], xRange[1], Math.max(3, (box.right - box.left) / 80))) {
      if (value < xRange[0] || value > xRange[1]) continue;
      node(svg, "text", { x: x(value), y: box.bottom + 18, "text-anchor": "middle" }, String(value));
    }
    node(svg, "line", { x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom, stroke: "var(--line)" });
    node(svg, "text", { x: box.right, y: box.bottom + 36, "text-anchor": "end" }, options.xLabel);
  }

  function path(points, x, y) {
    return points.map(([px, py], i) => `${i ? "L" : "M"}${x(px).toFixed(1)} ${y(py).toFixed(1)}`).join("");
  }

  function drawMode(svg, mode, x, y, options) {
    const runs = mode.runs.filter((points) => points.length > 0);
    const line = { fill: "none", stroke: color(mode.index), "stroke-linejoin": "round", "stroke-dasharray": DASHES[mode.index % 6] };
    if (runs.length > 1) {
      const spread = band(runs);
      if (spread.length > 1) {
        const there = spread.map((p) => [p[0], p[3]]);
        const back = spread.map((p) => [p[0], p[2]]).reverse();
        node(svg, "path", { d: path([...there, ...back], x, y) + "Z", fill: color(mode.index), opacity: 0.16 });
        node(svg, "path", { ...line, d: path(spread, x, y), "stroke-width": 2.2 });
      }
      for (const points of runs) node(svg, "path", { ...line, d: path(points, x, y), "stroke-width": 1, opacity: 0.35 });
    } else if (runs.length === 1) {
      node(svg, "path", { ...line, d: path(runs[0], x, y), "stroke-width": 2.2 });
    }
    if (options.ends) for (const points of runs) shape(svg, mode.index, x(points[points.length - 1][0]), y(points[points.length - 1][1]));
    if (!options.dots) return;
    for (const points of runs) {
      for (const [px, py] of points) node(svg, "circle", { cx: x(px), cy: y(py), r: runs.length > 1 ? 2 : 3, fill: color(mode.index) });
    }
  }

  // Texts stand beside their lines, each in the first row in which it covers none of `texts`, which it joins.
  function drawMarks(svg, options, box, x, xRange, texts) {
    for (const mark of options.marks) {
      if (mark.x === null || mark.x < xRange[0] || mark.x > xRange[1]) continue;
      const at = x(mark.x);
      const line = node(svg, "line", { x1: at, x2: at, y1: box.top, y2: box.bottom, stroke: color(mark.index), "stroke-dasharray": "3 3", opacity: 0.8 });
      node(line, "title", {}, mark.label);
      const text = node(svg, "text", { x: at + 4, y: box.top + 10 }, mark.label);
      if (at + 4 + text.getComputedTextLength() > box.right) {
        text.setAttribute("x", at - 4);
        text.setAttribute("text-anchor", "end");
      }
      for (let row = 1; texts.some((other) => cover(text, other)); ++row) text.setAttribute("y", box.top + 10 + row * 14);
      texts.push(text);
    }
  }

  function cover(text, other) {
    const a = text.getBBox();
    const b = other.getBBox();
    return a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
  }

  function hover(host, svg, options, box, x, xRange) {
    const rule = node(svg, "line", { y1: box.top, y2: box.bottom, stroke: "var(--soft)", "stroke-width": 1, visibility: "hidden" });
    const tip = html(host, "div", "tip");
    tip.hidden = true;
    const hide = () => {
      tip.hidden = true;
      rule.setAttribute("visibility", "hidden");
    };
    const show = (at) => {
      if (at < box.left || at > box.right) return hide();
      const value = xRange[0] + ((xRange[1] - xRange[0]) * (at - box.left)) / (box.right - box.left);
      rule.setAttribute("x1", at);
      rule.setAttribute("x2", at);
      rule.setAttribute("visibility", "visible");
      tip.textContent = "";
      html(tip, "b", "", `${value.toPrecision(4)} ${options.xLabel}`);
      for (const mode of options.modes) {
        const values = mode.runs.map((points) => interpolate(points, value)).filter((y) => y !== null);
        if (values.length === 0) continue;
        const row = html(tip, "div");
        html(row, "span", "swatch").style.background = color(mode.index);
        row.append(`${mode.name}  ${options.yFormat(values.reduce((a, b) => a + b, 0) / values.length, true)}`);
      }
      tip.hidden = false;
      tip.style.top = `${box.top}px`;
      tip.style.left = at > (box.left + box.right) / 2 ? `${at - tip.offsetWidth - 12}px` : `${at + 12}px`;
    };
    // The pointer stays where it is when the chart is drawn again.
    host.onpointermove = (event) => {
      host.pointerAt = event.clientX - svg.getBoundingClientRect().left;
      show(host.pointerAt);
    };
    host.onpointerleave = () => {
      host.pointerAt = undefined;
      hide();
    };
    if (host.pointerAt !== undefined) show(host.pointerAt);
  }

  // options: modes [{name, index, runs: [[[x, y], ...], ...]}], xLabel, yFormat, level (or null), marks, dots, ends (a shape
  // at each line's end), floor (under which the vertical axis does not go).
  function lines(host, options) {
    responsive(host, (width) => {
      const all = options.modes.flatMap((mode) => mode.runs.flat());
      if (all.length === 0) return void html(host, "p", "hint", "Not measured.");
      const box = { left: 58, right: width - 10, top: 10, bottom: 250 };
      const xRange = extent([0, ...all.map((p) => p[0])], 0);
      const yRange = extent([...all.map((p) => p[1]), ...(options.level === null ? [] : [options.level])], 0.05);
      if (options.floor !== undefined) yRange[0] = Math.max(options.floor, yRange[0]);
      const x = (value) => box.left + ((value - xRange[0]) / (xRange[1] - xRange[0])) * (box.right - box.left);
      const y = (value) => box.bottom - ((value - yRange[0]) / (yRange[1] - yRange[0])) * (box.bottom - box.top);
      const svg = node(host, "svg", { height: 292, role: "img", "aria-label": options.label });
      frame(svg, options, box, x, y, xRange, yRange);
      const texts = [];
      if (options.level !== null) {
        node(svg, "line", { x1: box.left, x2: box.right, y1: y(options.level), y2: y(options.level), stroke: "var(--soft)", "stroke-dasharray": "5 4" });
        texts.push(node(svg, "text", { x: box.left + 6, y: y(options.level) - 5 }, `target ${options.yFormat(options.level, true)}`));
      }
      drawMarks(svg, options, box, x, xRange, texts);
      for (const mode of options.modes) drawMode(svg, mode, x, y, options);
      hover(host, svg, options, box, x, xRange);
    });
  }

  // Horizontal bars: rows [{name, index, mean (or null), text (or undefined: the mean's), values, missing}].
  function bars(host, options) {
    responsive(host, (width) => {
      const highest = Math.max(0, ...options.rows.flatMap((row) => [row.mean || 0, ...row.values]));
      const left = 92;
      const texts = options.rows.map((row) => (row.mean === null ? row.missing : row.text || options.format(row.mean)));
      const room = Math.max(84, ...options.rows.map((row, i) => (row.mean === null ? 0 : texts[i].length * 7 + 12)));
      const scale = highest > 0 ? Math.max(0, width - left - room) / highest : 0;
      const svg = node(host, "svg", { height: options.rows.length * 38 + 4, role: "img", "aria-label": options.label });
      options.rows.forEach((row, i) => {
        const top = i * 38 + 6;
        node(svg, "text", { x: left - 10, y: top + 17, "text-anchor": "end", class: "strong" }, row.name);
        const end = left + (row.mean || 0) * scale;
        if (row.mean !== null) node(svg, "rect", { x: left, y: top, width: Math.max(1, end - left), height: 24, rx: 3, fill: color(row.index), opacity: 0.85 });
        if (row.values.length > 1) {
          for (const value of row.values) node(svg, "circle", { cx: left + value * scale, cy: top + 12, r: 3.5, fill: "var(--card)", stroke: "var(--text)" });
        }
        const furthest = Math.max(end, ...row.values.map((value) => left + value * scale + 4));
        node(svg, "text", { x: (row.mean === null ? left : furthest) + 8, y: top + 17, class: "strong" }, texts[i]);
      });
    });
  }

  // Grouped columns: groups are labels, modes [{name, index, values}].
  function columns(host, options) {
    responsive(host, (width) => {
      const box = { left: 46, right: width - 6, top: 10, bottom: 200 };
      const highest = Math.max(1e-9, ...options.modes.flatMap((mode) => mode.values));
      const y = (value) => box.bottom - (value / highest) * (box.bottom - box.top);
      const svg = node(host, "svg", { height: 244, role: "img", "aria-label": options.label });
      for (const value of ticks(0, highest, 4)) {
        node(svg, "line", { x1: box.left, x2: box.right, y1: y(value), y2: y(value), stroke: "var(--grid)" });
        node(svg, "text", { x: box.left - 8, y: y(value) + 4, "text-anchor": "end" }, options.format(value));
      }
      const slot = (box.right - box.left) / options.groups.length;
      const bar = Math.min(34, (slot * 0.78) / options.modes.length);
      options.groups.forEach((label, group) => {
        const middle = box.left + slot * (group + 0.5);
        node(svg, "text", { x: middle, y: box.bottom + 18, "text-anchor": "middle" }, label);
        options.modes.forEach((mode, i) => {
          const value = mode.values[group] || 0;
          if (value <= 0) return;
          const at = middle + (i - options.modes.length / 2) * bar;
          const rect = node(svg, "rect", { x: at + 1, y: y(value), width: Math.max(1, bar - 2), height: box.bottom - y(value), rx: 2, fill: color(mode.index) });
          node(rect, "title", {}, `${mode.name}, staleness ${label}: ${options.format(value)}`);
        });
      });
      node(svg, "line", { x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom, stroke: "var(--line)" });
      node(svg, "text", { x: box.right, y: box.bottom + 38, "text-anchor": "end" }, options.xLabel);
    });
  }

  // Rows of parts that add up to the whole width: rows [{name, parts: [{label, color, value}]}].
  function stacks(host, options) {
    responsive(host, (width) => {
      const left = 150;
      const svg = node(host, "svg", { height: options.rows.length * 32 + 4, role: "img", "aria-label": options.label });
      options.rows.forEach((row, i) => {
        const top = i * 32 + 4;
        const total = row.parts.reduce((sum, part) => sum + part.value, 0);
        node(svg, "text", { x: left - 10, y: top + 16, "text-anchor": "end", class: "strong" }, row.name);
        let at = left;
        for (const part of row.parts) {
          const size = total > 0 ? (part.value / total) * (width - left - 4) : 0;
          if (size <= 0) continue;
          const rect = node(svg, "rect", { x: at, y: top, width: size, height: 23, fill: part.color });
          const share = `${((100 * part.value) / total).toFixed(1)} %`;
          node(rect, "title", {}, `${row.name}, ${part.label}: ${part.value.toFixed(2)} s (${share})`);
          if (size > 52) node(svg, "text", { x: at + 7, y: top + 16, style: "fill:#fff;pointer-events:none" }, share);
          at += size;
        }
      });
    });
  }

  return { lines, bars, columns, stacks, html, node, responsive, ticks, extent, highest, color, shape };
})();
