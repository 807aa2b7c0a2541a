// Part 2 of 3: charts as inline SVG, saving them, and the lens.

// Okabe and Ito's colours, which colour-blind readers can tell apart (black last, and drawn in the text's colour); past
// eight groups the marker shapes tell them apart as well.
const PALETTE = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#b3a500", "currentColor"];
const groupColour = (group) => PALETTE[group % 8];
const groupShape = (group) => ((group % 8) + Math.floor(group / 8)) % 6;

// A marker as a path around (x, y): circle, square, triangle, diamond, cross, star of three.
function marker(shape, x, y, r) {
  const at = (dx, dy) => `${(x + r * dx).toFixed(1)} ${(y + r * dy).toFixed(1)}`;
  switch (shape) {
    case 0: return `M${at(-1, 0)}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0Z`;
    case 1: return `M${at(-0.85, -0.85)}L${at(0.85, -0.85)}L${at(0.85, 0.85)}L${at(-0.85, 0.85)}Z`;
    case 2: return `M${at(0, -1.15)}L${at(1.05, 0.8)}L${at(-1.05, 0.8)}Z`;
    case 3: return `M${at(0, -1.25)}L${at(1.1, 0)}L${at(0, 1.25)}L${at(-1.1, 0)}Z`;
    case 4: return `M${at(-0.35, -1.1)}L${at(0.35, -1.1)}L${at(0.35, -0.35)}L${at(1.1, -0.35)}L${at(1.1, 0.35)}L${at(0.35, 0.35)}L${at(0.35, 1.1)}`
      + `L${at(-0.35, 1.1)}L${at(-0.35, 0.35)}L${at(-1.1, 0.35)}L${at(-1.1, -0.35)}L${at(-0.35, -0.35)}Z`;
    default: return `M${at(0, 1.15)}L${at(1.05, -0.8)}L${at(-1.05, -0.8)}Z`;
  }
}

// ---- saving --------------------------------------------------------------------------------------------------

function download(name, type, content) {
  const address = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  const link = html("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

// Text for a spreadsheet; a cell that it would take for a formula is made plain text.
function csvText(rows) {
  const cell = (value) => {
    // What was not observed is an empty cell.
    if (typeof value === "number") return Number.isNaN(value) ? "" : String(value);
    const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return rows.map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";
}

const PAINTED = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "fill-opacity", "stroke-opacity", "font-family", "font-size", "font-weight", "text-anchor", "color"];

// The drawing as a file of its own: what the style sheet says is written into it.
function svgText(source) {
  const copy = source.cloneNode(true);
  const from = [source, ...source.querySelectorAll("*")];
  [copy, ...copy.querySelectorAll("*")].forEach((node, i) => {
    const style = getComputedStyle(from[i]);
    for (const name of PAINTED) node.setAttribute(name, style.getPropertyValue(name));
    node.removeAttribute("class");
    node.removeAttribute("tabindex");
  });
  const { width, height } = source.viewBox.baseVal;
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  const backdrop = getComputedStyle(document.body).backgroundColor;
  copy.prepend(svg("rect", { width: "100%", height: "100%", fill: backdrop }));
  return new XMLSerializer().serializeToString(copy);
}

function savePng(name, text, width, height) {
  const image = new Image();
  image.onload = () => {
    const canvas = html("canvas", { width: 2 * width, height: 2 * height });
    canvas.getContext("2d").drawImage(image, 0, 0, 2 * width, 2 * height);
    canvas.toBlob((blob) => download(`${name}.png`, "image/png", blob));
  };
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
}

// Buttons that save: `drawing()` returns the SVG element, or SVG text and its size; `rows()` the numbers.
function saver(name, title, { drawn, rows }) {
  const button = (kind, action) => html("button", { type: "button", class: "save", "aria-label": `Save ${title} as ${kind}`, onclick: action }, kind);
  const file = `matmix-${name}`;
  const text = () => { const node = drawn(); return node instanceof SVGElement ? [svgText(node), node.viewBox.baseVal.width, node.viewBox.baseVal.height] : node; };
  return html("span", { class: "savers" },
    drawn && button("SVG", () => download(`${file}.svg`, "image/svg+xml", text()[0])),
    drawn && button("PNG", () => savePng(file, ...text())),
    button("CSV", () => download(`${file}.csv`, "text/csv", csvText(rows()))));
}

// A sample's picture as SVG text: pixels as an image inside, scaled without smoothing.
function pictureSvg(spec) {
  if (view.kind === "curve") return curveChart(spec, 640);
  const canvas = html("canvas", { width: pictureColumns, height: pictureRows });
  paint(canvas, spec.values, spec.scale);
  const zoom = Math.max(1, Math.round(560 / Math.max(pictureColumns, pictureRows)));
  const [width, height] = [zoom * pictureColumns, zoom * pictureRows];
  const big = html("canvas", { width, height });
  const context = big.getContext("2d");
  context.imageSmoothingEnabled = false;
  context.drawImage(canvas, 0, 0, width, height);
  const text = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">`
    + `<image width="${width}" height="${height}" href="${big.toDataURL()}" />` + "<" + "/svg>";
  return [text, width, height];
}

function pictureRowsCsv(spec) {
  if (view.kind === "curve") return [["entry", "value"], ...Array.from(spec.values, (v, i) => [i, v])];
  const rows = [];
  const number = view.kind === "slices" ? [slice.now] : view.kind === "colour" ? [0, 1, 2] : [0];
  for (const part of number) {
    if (view.kind === "colour") rows.push([`channel ${part + 1}`]);
    for (let row = 0; row < pictureRows; row++) {
      const shift = view.kind === "colour" ? part * strides[otherModes[0]] : 0;
      rows.push(Array.from({ length: pictureColumns }, (_, column) => spec.values[elementIndex(row, column) + shift]));
    }
  }
  return rows;
}

// ---- axes ----------------------------------------------------------------------------------------------------

function ticks(low, high, count) {
  const rough = (high - low) / count || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough);
  const out = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i++) out.push(i * step);
  return out;
}

// As many digits as it takes to tell neighbouring ticks apart.
function tickLabels(marks) {
  const step = marks.length > 1 ? marks[1] - marks[0] : 1;
  const most = Math.max(...marks.map(Math.abs));
  const digits = most > 0 ? Math.ceil(Math.log10(most / step)) + 1 : 4;
  return marks.map((t) => format(t, Math.max(4, digits)));
}

const linear = (low, high, from, to) => (v) => from + ((to - from) * (v - low)) / (high - low || 1);

// An empty chart with axes. Returns the SVG and the two scales.
function frame({ width, height, x: [x0, x1], y: [y0, y1], xTitle, yTitle, alt, whole = false }) {
  const marks = ticks(y0, y1, Math.max(2, height / 60));
  const labels = tickLabels(marks);
  const left = 32 + 7 * Math.max(...labels.map((label) => label.length), 3);
  const box = { left, right: width - 10, top: 12, bottom: height - 40 };
  const x = linear(x0, x1, box.left, box.right);
  const y = linear(y0, y1, box.bottom, box.top);
  const chart = svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "chart", role: "img", "aria-label": alt });
  marks.forEach((t, i) => {
    chart.append(svg("line", { x1: box.left, x2: box.right, y1: y(t), y2: y(t), class: "grid" }),
      svg("text", { x: box.left - 8, y: y(t) + 4, class: "tick end" }, labels[i]));
  });
  for (const t of ticks(x0, x1, Math.max(2, width / 110))) {
    if (whole && !Number.isInteger(t)) continue;
    chart.append(svg("text", { x: x(t), y: box.bottom + 18, class: "tick middle" }, format(t)));
  }
  chart.append(svg("line", { x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom, class: "axis" }),
    svg("text", { x: (box.left + box.right) / 2, y: height - 5, class: "title middle" }, xTitle),
    svg("text", { x: 13, y: (box.top + box.bottom) / 2, class: "title middle", transform: `rotate(-90 13 ${(box.top + box.bottom) / 2})` }, yTitle));
  return { chart, x, y, box };
}

// Draws now and whenever the host's width changes, so that text keeps its size on any screen.
function responsive(host, draw) {
  let last = 0;
  const update = () => {
    const width = Math.round(Math.max(260, host.clientWidth));
    if (width !== last) { last = width; draw(width); }
  };
  new ResizeObserver(update).observe(host);
  update();
}

function padded(values, share = 0.06) {
  const low = Math.min(...values);
  const high = Math.max(...values);
  // Rounding errors are not a curve: a range below a millionth of the values is drawn as a line.
  const room = Math.max((high - low) * share, 1e-6 * Math.max(Math.abs(low), Math.abs(high))) || share;
  return [low - room, high + room];
}

// ---- charts --------------------------------------------------------------------------------------------------

// A chart in a panel: heading with savers, the drawing, and a tip that follows the pointer or the arrow keys.
function panel(host, name, title, { draw, rows, count, read }) {
  const canvas = html("div", { class: "chart-host", tabindex: 0, role: "group", "aria-label": `${title}. Use the arrow keys to read values.` });
  const tip = html("div", { class: "tip", hidden: true });
  const live = html("p", { class: "visually-hidden", role: "status", "aria-live": "polite" });
  host.append(html("div", { class: "panel-head" }, html("h3", null, title), saver(name, title, { drawn: () => canvas.querySelector("svg"), rows })),
    html("div", { class: "chart-box" }, canvas, tip), live);
  let places = null;
  let now = -1;
  const hide = () => { tip.hidden = true; places.mark(-1); };
  const show = (i, aloud) => {
    now = Math.max(0, Math.min(count - 1, i));
    const { x, y } = places.mark(now);
    tip.textContent = read(now);
    tip.hidden = false;
    const room = canvas.clientWidth - tip.offsetWidth;
    tip.style.left = `${Math.max(0, Math.min(room, x - tip.offsetWidth / 2))}px`;
    tip.style.top = `${Math.max(0, y - tip.offsetHeight - 12)}px`;
    if (aloud) live.textContent = tip.textContent;
  };
  responsive(canvas, (width) => {
    places = draw(width);
    canvas.replaceChildren(places.chart);
  });
  canvas.addEventListener("pointermove", (event) => show(places.nearest(event.clientX - canvas.getBoundingClientRect().left), false));
  canvas.addEventListener("pointerleave", hide);
  canvas.addEventListener("blur", hide);
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1, Home: -count, End: count }[event.key];
    if (!step) return;
    event.preventDefault();
    show(now + step, true);
  });
}

function lineChart(host, name, title, { xs, ys, xTitle, yTitle }) {
  const known = ys.map((v, i) => (Number.isFinite(v) ? i : -1)).filter((i) => i >= 0);
  const read = (n) => `${xTitle} ${xs[known[n]]}: ${format(ys[known[n]], 6)}`;
  panel(host, name, title, {
    rows: () => [[xTitle, yTitle], ...xs.map((x, i) => [x, ys[i]])],
    count: known.length,
    read,
    draw: (width) => {
      const last = known[known.length - 1];
      const { chart, x, y, box } = frame({
        width, height: 260, x: [xs[0], Math.max(xs[0] + 1, xs[xs.length - 1])], y: padded(known.map((i) => ys[i])), xTitle, yTitle, whole: true,
        alt: `${title}: from ${format(ys[known[0]])} at ${xTitle.toLowerCase()} ${xs[known[0]]} to ${format(ys[last])} at ${xs[last]}.`,
      });
      const rule = svg("line", { y1: box.top, y2: box.bottom, class: "rule", visibility: "hidden" });
      const dot = svg("circle", { r: 4.5, class: "dot", visibility: "hidden" });
      chart.append(rule, svg("polyline", { class: "series", points: known.map((i) => `${x(xs[i]).toFixed(1)},${y(ys[i]).toFixed(1)}`).join(" ") }), dot);
      return {
        chart,
        nearest: (px) => known.reduce((best, i, n) => (Math.abs(x(xs[i]) - px) < Math.abs(x(xs[known[best]]) - px) ? n : best), 0),
        mark: (n) => {
          for (const node of [rule, dot]) node.setAttribute("visibility", n < 0 ? "hidden" : "visible");
          if (n < 0) return null;
          const [px, py] = [x(xs[known[n]]), y(ys[known[n]])];
          rule.setAttribute("x1", px); rule.setAttribute("x2", px);
          dot.setAttribute("cx", px); dot.setAttribute("cy", py);
          return { x: px, y: py };
        },
      };
    },
  });
}

function histogramChart(host, name, title, { edges, counts, xTitle, rug }) {
  const total = counts.reduce((a, b) => a + b, 0);
  panel(host, name, title, {
    rows: () => [["from", "to", "samples"], ...counts.map((c, i) => [edges[i], edges[i + 1], c])],
    count: counts.length,
    read: (i) => `${format(edges[i])} to ${format(edges[i + 1])}: ${counts[i]} samples`,
    draw: (width) => {
      const { chart, x, y, box } = frame({
        width, height: 240, x: [edges[0], edges[edges.length - 1]], y: [0, Math.max(...counts) * 1.08], xTitle, yTitle: "Samples",
        alt: `${title}: ${total} samples between ${format(edges[0])} and ${format(edges[edges.length - 1])}.`,
      });
      const bars = counts.map((c, i) => svg("rect", { x: x(edges[i]) + 0.5, width: Math.max(0.5, x(edges[i + 1]) - x(edges[i]) - 1), y: y(c), height: box.bottom - y(c), class: "column" }));
      chart.append(...bars, ...rug.map((v) => svg("line", { x1: x(v), x2: x(v), y1: box.bottom, y2: box.bottom + 6, class: "rug" })));
      return {
        chart,
        nearest: (px) => counts.findIndex((_, i) => px <= x(edges[i + 1]) || i === counts.length - 1),
        mark: (n) => {
          bars.forEach((bar, i) => bar.classList.toggle("marked", i === n));
          return n < 0 ? null : { x: (x(edges[n]) + x(edges[n + 1])) / 2, y: y(counts[n]) };
        },
      };
    },
  });
}

// Several curves over the entries of a mode, each in its colour, told apart in the legend below.
function modeChart(host, name, title, { curves, xs, xTitle, counted }) {
  const read = (n) => `${xTitle} ${format(xs[n])}: ${curves.map((curve) => format(curve[n], 3)).join(", ")}`;
  panel(host, name, title, {
    rows: () => [[xTitle, ...curves.map((_, j) => `loading ${j + 1}`)], ...xs.map((x, i) => [x, ...curves.map((curve) => curve[i])])],
    count: xs.length,
    read,
    draw: (width) => {
      const { chart, x, y, box } = frame({
        width, height: 240, x: [xs[0], xs[xs.length - 1]], y: padded(curves.flatMap((curve) => [...curve, 0])), xTitle, yTitle: "Loading", whole: counted,
        alt: `${title}: ${curves.length} curves over ${xs.length} entries.`,
      });
      chart.append(svg("line", { x1: box.left, x2: box.right, y1: y(0), y2: y(0), class: "zero" }));
      const rule = svg("line", { y1: box.top, y2: box.bottom, class: "rule", visibility: "hidden" });
      chart.append(rule, ...curves.map((curve, j) => {
        const line = svg("polyline", { class: "series", points: Array.from(curve, (v, i) => `${x(xs[i]).toFixed(1)},${y(v).toFixed(1)}`).join(" ") });
        line.style.stroke = groupColour(j);
        return line;
      }));
      return {
        chart,
        nearest: (px) => xs.reduce((best, at, n) => (Math.abs(x(at) - px) < Math.abs(x(xs[best]) - px) ? n : best), 0),
        mark: (n) => {
          rule.setAttribute("visibility", n < 0 ? "hidden" : "visible");
          if (n < 0) return null;
          rule.setAttribute("x1", x(xs[n])); rule.setAttribute("x2", x(xs[n]));
          return { x: x(xs[n]), y: box.top + 10 };
        },
      };
    },
  });
}

// Shares of the variance along the directions of a mode; those that the model keeps are filled.
function spectrumChart(host, name, title, { shares, kept }) {
  panel(host, name, title, {
    rows: () => [["direction", "share of the variance", "kept"], ...shares.map((share, i) => [i + 1, share, i < kept ? "yes" : "no"])],
    count: shares.length,
    read: (i) => `Direction ${i + 1}: ${percent(shares[i])}${i < kept ? ", kept" : ""}`,
    draw: (width) => {
      const { chart, x, y, box } = frame({
        width, height: 240, x: [0.5, shares.length + 0.5], y: [0, Math.max(...shares) * 108], xTitle: "Direction", yTitle: "% of the variance", whole: true,
        alt: `${title}: ${kept} of ${shares.length} directions are kept.`,
      });
      const bars = shares.map((share, i) => svg("rect", {
        x: x(i + 0.5) + 0.5, width: Math.max(0.5, x(i + 1.5) - x(i + 0.5) - 1), y: y(100 * share), height: box.bottom - y(100 * share), class: i < kept ? "column kept" : "column left",
      }));
      chart.append(...bars);
      return {
        chart,
        nearest: (px) => Math.max(0, shares.findIndex((_, i) => px <= x(i + 1.5) || i === shares.length - 1)),
        mark: (n) => {
          bars.forEach((bar, i) => bar.classList.toggle("marked", i === n));
          return n < 0 ? null : { x: x(n + 1), y: y(100 * shares[n]) };
        },
      };
    },
  });
}

// A curve with its axes, for the lens, the explorer and saving.
function curveChart(spec, width, height = 300) {
  const axis = view.axes[view.row_mode];
  const place = (i) => (axis && axis.step ? axis.start + axis.step * i * (view.block[0] || 1) : i);
  const { chart, x, y, box } = frame({
    width, height, x: [place(0), place(spec.values.length - 1)], y: [spec.scale.low, spec.scale.high],
    xTitle: axisTitle(axis) || "Entry", yTitle: spec.label || (spec.scale.signed ? changeName : valueName), alt: spec.name,
  });
  if (spec.scale.low < 0 && spec.scale.high > 0) chart.append(svg("line", { x1: x(place(0)), x2: x(place(spec.values.length - 1)), y1: y(0), y2: y(0), class: "zero" }));
  chart.append(...curveParts(spec.values, (i) => x(place(i)), y, box.top, box.bottom, spec.scale.signed ? "series signed" : "series"));
  return chart;
}

// ---- the lens ------------------------------------------------------------------------------------------------

// A picture with its axes, where they have names, and the value under the pointer.
function framed(spec, readout) {
  if (view.kind === "curve") {
    const holder = html("div", { class: "framed" });
    responsive(holder, (width) => holder.replaceChildren(curveChart(spec, width)));
    holder.show = (values) => { spec.values = values; holder.replaceChildren(curveChart(spec, Math.max(260, holder.clientWidth))); };
    return holder;
  }
  const art = drawing(spec.values, spec.scale);
  art.setAttribute("role", "img");
  art.setAttribute("aria-label", spec.name);
  const end = (mode, index) => coordinate(mode, index).replace(`${(view.axes[mode] && view.axes[mode].name) || `mode ${mode}`} `, "");
  const named = view.axes.length > 0;
  const [down, across] = [view.row_mode, view.column_mode];
  const holder = html("div", { class: named ? "framed named" : "framed" },
    named && html("div", { class: "axis-down" }, html("span", null, end(down, 0)), html("b", null, axisTitle(view.axes[down])), html("span", null, end(down, pictureRows - 1))),
    art,
    named && html("div", { class: "axis-across" }, html("span", null, end(across, 0)), html("b", null, axisTitle(view.axes[across])), html("span", null, end(across, pictureColumns - 1))));
  holder.style.setProperty("--aspect", art.style.aspectRatio.split("/")[0]);
  holder.show = (values) => { spec.values = values; art.show(values, spec.scale); };
  if (readout) {
    art.addEventListener("pointermove", (event) => {
      const area = art.getBoundingClientRect();
      const column = Math.min(pictureColumns - 1, Math.max(0, Math.floor((pictureColumns * (event.clientX - area.left)) / area.width)));
      const row = Math.min(pictureRows - 1, Math.max(0, Math.floor((pictureRows * (event.clientY - area.top)) / area.height)));
      const at = elementIndex(row, column);
      const values = view.kind === "colour" ? [0, 1, 2].map((c) => spec.values[at + c * strides[otherModes[0]]]) : [spec.values[at]];
      readout.textContent = `${coordinate(down, row)}, ${coordinate(across, column)}: ${values.map((v) => format(v)).join(", ")}`;
    });
  }
  return holder;
}

function openLens(spec) {
  const lens = byId("lens");
  const readout = html("p", { class: "status" }, view.kind === "curve" ? "" : "Point at the picture to read values.");
  const file = spec.name.toLowerCase().replace(/[^a-z0-9]+/g, "-").slice(0, 60);
  lens.replaceChildren(
    html("div", { class: "panel-head" }, html("h3", { id: "lens-title" }, spec.name),
      html("button", { type: "button", class: "quiet", onclick: () => lens.close() }, "Close")),
    framed({ ...spec }, readout), colourBar(spec.scale, spec.label || (spec.scale.signed ? changeName : valueName)), readout,
    saver(file, spec.name, { drawn: () => pictureSvg(spec), rows: () => pictureRowsCsv(spec) }));
  lens.showModal();
}
