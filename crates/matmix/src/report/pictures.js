// Part 1 of 3: the data of the page, the model's arithmetic, and samples as pictures.

const data = JSON.parse(document.getElementById("matmix-data").textContent);
const view = data.view;
const ranks = data.summary.ranks;
const product = (numbers) => numbers.reduce((a, b) => a * b, 1);
const sampleSize = product(view.shape);
const coreSize = product(ranks);

// ---- numbers -------------------------------------------------------------------------------------------------

function bytes(base64) {
  const text = atob(base64);
  const out = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) out[i] = text.charCodeAt(i);
  return out;
}

function floats(base64) {
  // Little-endian on both sides: every machine that runs a browser today is.
  return new Float64Array(new Float32Array(bytes(base64).buffer));
}

// Numbers as people read them: four digits, a real minus sign, no exponent where none is needed.
function format(x, digits = 4) {
  if (Number.isNaN(x)) return "not observed";
  if (!Number.isFinite(x)) return x > 0 ? "\u221e" : "\u2212\u221e";
  if (x === 0) return "0";
  const size = Math.abs(x);
  let text;
  if (size >= 1e7 || size < 1e-4) {
    text = x.toExponential(2);
  } else {
    const decimals = Math.max(0, digits - 1 - Math.floor(Math.log10(size)));
    text = x.toLocaleString("en", { minimumFractionDigits: 0, maximumFractionDigits: decimals });
    text = text.replaceAll(",", "\u202f");
  }
  return text.replace("-", "\u2212");
}

const percent = (share, digits = 1) => `${(100 * share).toFixed(digits)} %`;

// ---- the model -----------------------------------------------------------------------------------------------

const components = data.components.map((c) => ({
  ...c,
  mean: floats(c.mean),
  loadings: c.loadings.map(floats),
}));

const stored = {
  ...data.samples,
  count: data.samples.index.length,
};
for (const name of ["responsibility", "log_likelihood", "score", "error", "relative_error", "core", "x", "y", "low", "high"]) {
  stored[name] = floats(data.samples[name]);
}
stored.pixels = bytes(data.samples.pixels);
stored.holes = bytes(data.samples.holes);
const partial = stored.missing.length > 0;

// What samples are compared by: densities of different numbers of cells do not compare.
const standing = (position) => stored.score[position];

// B ×_1 U^(1) … ×_D U^(D), plus the mean unless only the change is wanted: one mode after the other, in doubles.
function compose(k, core, withMean = true) {
  let tensor = core;
  const sides = [...ranks];
  components[k].loadings.forEach((loading, mode) => {
    const side = view.shape[mode];
    const rank = sides[mode];
    const outer = product(sides.slice(0, mode));
    const inner = product(sides.slice(mode + 1));
    const out = new Float64Array(outer * side * inner);
    for (let o = 0; o < outer; o++) {
      for (let i = 0; i < side; i++) {
        const at = (o * side + i) * inner;
        for (let j = 0; j < rank; j++) {
          const u = loading[i * rank + j];
          if (u === 0) continue;
          const from = (o * rank + j) * inner;
          for (let n = 0; n < inner; n++) out[at + n] += u * tensor[from + n];
        }
      }
    }
    sides[mode] = side;
    tensor = out;
  });
  if (withMean) for (let i = 0; i < sampleSize; i++) tensor[i] += components[k].mean[i];
  return tensor;
}

const coreOf = (position) => stored.core.slice(position * coreSize, (position + 1) * coreSize);
const reconstruction = (position) => compose(stored.component[position], coreOf(position));

// The elements of a stored sample, NaN where they were not observed, or null where the page had no room for them.
function original(position) {
  if (position >= stored.pictures) return null;
  const low = stored.low[position];
  const step = (stored.high[position] - low) / 255;
  const from = position * sampleSize;
  const out = new Float64Array(sampleSize);
  const observed = (bit) => !partial || !((stored.holes[bit >> 3] >> (bit & 7)) & 1);
  for (let i = 0; i < sampleSize; i++) out[i] = observed(from + i) ? low + step * stored.pixels[from + i] : NaN;
  return out;
}

function flatIndex(position) {
  return position.reduce((flat, j, mode) => flat * ranks[mode] + j, 0);
}

function loadingPicture(k, entry) {
  const core = new Float64Array(coreSize);
  core[flatIndex(entry.position)] = 1;
  return compose(k, core, false);
}

const labelOf = (position) => (stored.label.length ? stored.label_names[stored.label[position]] : null);

function sampleName(position) {
  const label = labelOf(position);
  const name = stored.name.length ? ` (${stored.name[position]})` : "";
  return `Sample ${stored.index[position]}${name}${label === null ? "" : `, label ${label}`}`;
}

// ---- colours -------------------------------------------------------------------------------------------------

// Control points of two perceptual maps, interpolated to 256 steps. The first follows viridis (Smith and van der
// Walt, public domain); the second was drawn for this page: blue and red whose lightness falls alike from a neutral middle.
const SEQUENTIAL = ["440154", "482878", "3e4a89", "31688e", "26828e", "1f9e89", "35b779", "6ece58", "b5de2b", "fde725"];
const DIVERGING = ["0a2463", "1f5a9e", "5b9bc9", "b3d4e5", "f5f4f1", "f3c9ae", "dd8457", "b0402d", "661016"];

function colourTable(stops) {
  const rgb = stops.map((hex) => [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16)));
  const table = new Uint8ClampedArray(256 * 3);
  for (let i = 0; i < 256; i++) {
    const at = (i / 255) * (rgb.length - 1);
    const stop = Math.min(Math.floor(at), rgb.length - 2);
    for (let c = 0; c < 3; c++) {
      table[3 * i + c] = Math.round(rgb[stop][c] + (at - stop) * (rgb[stop + 1][c] - rgb[stop][c]));
    }
  }
  return table;
}

const tables = {
  grey: colourTable(["000000", "ffffff"]),
  sequential: colourTable(SEQUENTIAL),
  diverging: colourTable(DIVERGING),
};

function shade(value, low, high) {
  const t = high > low ? (value - low) / (high - low) : 0.5;
  return Math.round(255 * Math.min(1, Math.max(0, t)));
}

// How a kind of value is shown: the samples' own scale, or a signed scale that is symmetric about zero.
const valueScale = { table: view.colours, low: view.low, high: view.high };
const signedScale = (reach) => ({ table: "diverging", low: -reach, high: reach, signed: true });
const reachOf = (values) => values.reduce((most, v) => (Number.isFinite(v) ? Math.max(most, Math.abs(v)) : most), 0) || 1;
// From nothing up, for shares and deviations; without a unit of its own it has that of the values.
const amountScale = (most, unit) => ({ table: "sequential", low: 0, high: most, unit });

// What was not observed has a colour that no table has, and a pattern for whoever cannot tell it by that.
const HOLE = [[236, 96, 176], [255, 176, 220]];

// ---- layout --------------------------------------------------------------------------------------------------

const strides = view.shape.map((_, mode) => product(view.shape.slice(mode + 1)));
const pictureRows = view.shape[view.row_mode];
const pictureColumns = view.kind === "curve" ? 1 : view.shape[view.column_mode];
const otherModes = view.shape.map((_, mode) => mode).filter((mode) => mode !== view.row_mode && mode !== view.column_mode);
const sliceCount = view.kind === "slices" ? product(otherModes.map((mode) => view.shape[mode])) : 1;
// Pictures much wider than high, and curves, are shown fewer to a row.
const broad = view.kind === "curve" || pictureColumns > 1.4 * pictureRows;
const slice = { now: Math.floor(sliceCount / 2), redraws: new Set() };

// The indices of a slice in the modes that are not on the picture.
function sliceIndices(number) {
  const indices = [];
  for (const mode of [...otherModes].reverse()) {
    indices.unshift(number % view.shape[mode]);
    number = Math.floor(number / view.shape[mode]);
  }
  return indices;
}

function elementIndex(row, column, number = slice.now) {
  let at = row * strides[view.row_mode];
  if (view.kind !== "curve") at += column * strides[view.column_mode];
  if (view.kind === "slices") {
    sliceIndices(number).forEach((index, n) => { at += index * strides[otherModes[n]]; });
  }
  return at;
}

function coordinate(mode, index) {
  const axis = view.axes[mode];
  const block = view.block[mode] || 1;
  const entry = index * block + (block - 1) / 2;
  if (!axis || !axis.step) return `${(axis && axis.name) || `mode ${mode}`} ${format(entry)}`;
  return `${axis.name} ${format(axis.start + axis.step * entry)}${axis.unit ? ` ${axis.unit}` : ""}`;
}

const axisTitle = (axis) => (axis ? [axis.name, axis.unit && `(${axis.unit})`].filter(Boolean).join(" ") : "");

function paint(canvas, values, scale) {
  const context = canvas.getContext("2d");
  const image = context.createImageData(pictureColumns, pictureRows);
  const table = tables[scale.table];
  let at = 0;
  const offset = elementIndex(0, 0);
  const channel = view.kind === "colour" ? strides[otherModes[0]] : 0;
  const isHole = (index) => Number.isNaN(values[index]) || Number.isNaN(values[index + channel]) || Number.isNaN(values[index + 2 * channel]);
  for (let row = 0; row < pictureRows; row++) {
    for (let column = 0; column < pictureColumns; column++) {
      const index = offset + row * strides[view.row_mode] + column * strides[view.column_mode];
      if (partial && isHole(index)) {
        for (let c = 0; c < 3; c++) image.data[at + c] = HOLE[(row + column) % 2][c];
      } else if (view.kind === "colour") {
        for (let c = 0; c < 3; c++) image.data[at + c] = shade(values[index + c * channel], scale.low, scale.high);
      } else {
        const from = 3 * shade(values[index], scale.low, scale.high);
        for (let c = 0; c < 3; c++) image.data[at + c] = table[from + c];
      }
      image.data[at + 3] = 255;
      at += 4;
    }
  }
  context.putImageData(image, 0, 0);
}

// ---- elements ------------------------------------------------------------------------------------------------

function element(namespace, tag, attributes, children) {
  const node = namespace ? document.createElementNS(namespace, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

const html = (tag, attributes, ...children) => element(null, tag, attributes, children);
const svg = (tag, attributes, ...children) => element("http://www.w3.org/2000/svg", tag, attributes, children);
const byId = (id) => document.getElementById(id);

// The observed runs of a curve as lines, and its holes as bands from `top` to `bottom`.
function curveParts(values, x, y, top, bottom, line) {
  const parts = [];
  let from = 0;
  while (from < values.length) {
    const hole = Number.isNaN(values[from]);
    let end = from + 1;
    while (end < values.length && Number.isNaN(values[end]) === hole) end += 1;
    if (hole) {
      const [left, right] = [x(from - 0.5), x(end - 0.5)];
      parts.unshift(svg("rect", { x: left.toFixed(2), width: (right - left).toFixed(2), y: top, height: bottom - top, class: "hole" }));
    } else {
      // One value alone is a dash.
      const places = end - from > 1 ? Array.from({ length: end - from }, (_, n) => from + n) : [from - 0.3, from + 0.3];
      const points = places.map((i) => `${x(i).toFixed(2)},${y(values[Math.round(i)]).toFixed(2)}`).join(" ");
      parts.push(svg("polyline", { points, class: line }));
    }
    from = end;
  }
  return parts;
}

// A curve as a small drawing without axes; the lens draws it with them.
function curveSvg(values, scale, width = 120, height = 60) {
  const x = (i) => (width * i) / Math.max(1, values.length - 1);
  const y = (v) => height - 2 - ((height - 4) * (v - scale.low)) / (scale.high - scale.low || 1);
  const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "curve", preserveAspectRatio: "none" });
  if (scale.low < 0 && scale.high > 0) {
    drawing.append(svg("line", { x1: 0, x2: width, y1: y(0), y2: y(0), class: "zero" }));
  }
  drawing.append(...curveParts(values, x, y, 0, height, scale.signed ? "signed" : "plain"));
  return drawing;
}

// The bare drawing of a sample-shaped array. It follows the slice slider and can be given new values.
function drawing(values, scale) {
  if (view.kind === "curve") {
    const holder = html("span", { class: "drawing" }, curveSvg(values, scale));
    holder.show = (next, nextScale = scale) => holder.replaceChildren(curveSvg(next, nextScale));
    return holder;
  }
  const canvas = html("canvas", { width: pictureColumns, height: pictureRows, class: "drawing" });
  const natural = pictureColumns / pictureRows;
  // Pixels of photographs are square; a spectrogram of 16 × 2000 would be a line if its were.
  canvas.style.aspectRatio = view.colours === "grey" ? natural : Math.min(1.6, Math.max(0.75, natural));
  let shown = [values, scale];
  const redraw = () => paint(canvas, ...shown);
  canvas.show = (next, nextScale = scale) => { shown = [next, nextScale]; redraw(); };
  if (sliceCount > 1) slice.redraws.add(redraw);
  redraw();
  return canvas;
}

// A picture with a caption: click or Enter opens it in the lens.
function picture({ values, scale = valueScale, name, caption = "", label = null }) {
  if (!values) {
    const text = "The page had no room for this sample's elements.";
    return html("figure", { class: "picture" }, html("div", { class: "missing", role: "img", "aria-label": `${name}: ${text}`, title: text }, "–"),
      html("figcaption", null, caption));
  }
  const art = drawing(values, scale);
  art.setAttribute("aria-hidden", "true");
  const button = html("button", { type: "button", class: "frame", "aria-label": `${name}. Enlarge`, title: name }, art);
  const figure = html("figure", { class: "picture" }, button, html("figcaption", null, caption));
  figure.spec = { values, scale, name, label };
  button.addEventListener("click", () => openLens(figure.spec));
  figure.show = (next, changes = {}) => {
    Object.assign(figure.spec, { values: next }, changes);
    art.show(next, figure.spec.scale);
    button.setAttribute("aria-label", `${figure.spec.name}. Enlarge`);
    button.title = figure.spec.name;
  };
  return figure;
}

// Pictures side by side are one stop for the Tab key; the arrow keys move between them.
function fillStrip(host, pictures) {
  host.replaceChildren(...pictures);
  host.setAttribute("role", "group");
  const buttons = [...host.querySelectorAll("button.frame")];
  buttons.forEach((button, i) => { button.tabIndex = i ? -1 : 0; });
  host.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const at = buttons.indexOf(document.activeElement);
    if (!step || at < 0) return;
    event.preventDefault();
    const next = buttons[(at + step + buttons.length) % buttons.length];
    buttons.forEach((button) => { button.tabIndex = button === next ? 0 : -1; });
    next.focus();
  });
}

// A colour bar with its end values and what they are.
function colourBar(scale, label) {
  const unit = scale.unit ?? (view.value && view.value.unit ? ` ${view.value.unit}` : "");
  if (view.kind === "curve") {
    return html("p", { class: "colour-bar" }, `${label}: from ${format(scale.low)} to ${format(scale.high)}${unit}`);
  }
  if (view.kind === "colour" && scale.signed) {
    return html("p", { class: "colour-bar" }, `${label}: mid-grey is zero, full range ±${format(scale.high)}${unit} in each channel`);
  }
  const canvas = html("canvas", { width: 256, height: 1, "aria-hidden": "true" });
  const context = canvas.getContext("2d");
  const image = context.createImageData(256, 1);
  for (let i = 0; i < 256; i++) {
    for (let c = 0; c < 3; c++) image.data[4 * i + c] = tables[scale.table][3 * i + c];
    image.data[4 * i + 3] = 255;
  }
  context.putImageData(image, 0, 0);
  return html("p", { class: "colour-bar" }, html("span", { class: "bar-label" }, label),
    html("span", { class: "bar-end" }, format(scale.low)), canvas, html("span", { class: "bar-end" }, `${format(scale.high)}${unit}`));
}

const valueName = axisTitle(view.value) || "Value";
const changeName = `Change of ${axisTitle(view.value) || "value"}`;

// What the colour of missing cells means; nothing where none is missing.
function holeKey() {
  if (!partial) return [];
  const canvas = html("canvas", { width: 4, height: 2, class: "hole-key", "aria-hidden": "true" });
  const context = canvas.getContext("2d");
  for (let i = 0; i < 8; i++) {
    context.fillStyle = `rgb(${HOLE[((i >> 2) + i) % 2].join(" ")})`;
    context.fillRect(i % 4, i >> 2, 1, 1);
  }
  return [html("p", { class: "colour-bar" }, canvas, html("span", { class: "bar-label" }, "not observed"))];
}
