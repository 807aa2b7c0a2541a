// Part 3 of 3: the sections of the page, in the page's order.

const likelihoodName = "Log-likelihood";
const standingName = partial ? "Score: log-likelihood of a complete sample as far away" : likelihoodName;

// ---- the head ------------------------------------------------------------------------------------------------

function setUpTheme() {
  const button = byId("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  let chosen = null;
  const dark = () => (chosen === null ? system.matches : chosen === "dark");
  const label = () => {
    button.textContent = dark() ? "\u25d1 Light" : "\u25d0 Dark";
    button.setAttribute("aria-label", `Use ${dark() ? "light" : "dark"} colours`);
  };
  button.hidden = false;
  button.addEventListener("click", () => {
    chosen = dark() ? "light" : "dark";
    document.documentElement.dataset.theme = chosen;
    label();
  });
  system.addEventListener("change", label);
  label();
}

function setUpSlices() {
  if (sliceCount < 2) return;
  const host = byId("slice-control");
  const where = () => sliceIndices(slice.now).map((index, n) => coordinate(otherModes[n], index)).join(", ");
  const output = html("output", { for: "slice" }, where());
  const slider = html("input", { type: "range", id: "slice", min: 0, max: sliceCount - 1, step: 1, value: slice.now, "aria-label": "Slice shown in all pictures" });
  slider.addEventListener("input", () => {
    slice.now = Number(slider.value);
    output.textContent = where();
    slider.setAttribute("aria-valuetext", where());
    slice.redraws.forEach((redraw) => redraw());
  });
  host.append(html("label", { for: "slice" }, "Slice"), slider, output);
  host.hidden = false;
}

function drawGlance() {
  const order = components.map((_, k) => k).sort((a, b) => components[b].weight - components[a].weight);
  byId("glance").replaceChildren(...order.slice(0, 12).map((k) => {
    // Quantities are shown here each on its own scale: this is a first look, and the cards below have colour bars.
    const own = view.colours === "diverging" && view.kind !== "curve" ? { ...valueScale, low: -reachOf(components[k].mean), high: reachOf(components[k].mean) } : valueScale;
    const art = drawing(components[k].mean, own);
    art.setAttribute("aria-hidden", "true");
    const weight = html("span", { class: "weight" }, `${(100 * components[k].weight).toFixed(0)} %`);
    return html("a", { href: `#component-${k}`, "aria-label": `Component ${k}, weight ${percent(components[k].weight)}` }, art, weight);
  }));
}

function drawConvergence() {
  if (!data.history.length) return;
  const xs = data.history.map((step) => step.iteration);
  lineChart(byId("chart-likelihood"), "log-likelihood", "Log-likelihood per sample", {
    xs, ys: data.history.map((step) => step.log_likelihood), xTitle: "Iteration", yTitle: "Mean log-likelihood",
  });
  lineChart(byId("chart-error"), "error", "Reconstruction error", {
    xs, ys: data.history.map((step) => step.error), xTitle: "Iteration", yTitle: "Error e",
  });
}

// ---- components ----------------------------------------------------------------------------------------------

const entryName = (entry) => (entry.position.length === 1 ? `${entry.position[0] + 1}` : entry.position.map((j) => j + 1).join(", "));

function samplePicture(position, caption) {
  return picture({ values: original(position), name: sampleName(position), caption });
}

function drawComponents() {
  const bars = [];
  if (view.colours !== "grey") bars.push(colourBar(valueScale, valueName));
  const signed = signedScale(1);
  if (view.kind === "matrix" || view.kind === "slices") {
    const bar = colourBar(signed, "Loadings, each on its own scale");
    bar.querySelectorAll(".bar-end").forEach((end, i) => { end.textContent = i ? "+" : "\u2212"; });
    bars.push(bar);
  }
  byId("components-bars").append(...bars);
  document.querySelectorAll("article[data-component]").forEach((card) => {
    const k = Number(card.dataset.component);
    const c = components[k];
    const role = (name) => card.querySelector(`[data-role=${name}]`);
    card.querySelector(".swatch").append(swatch(k));
    card.querySelectorAll("[data-number]").forEach((node) => { node.textContent = format(Number(node.dataset.number), 3); });
    role("mean").append(picture({ values: c.mean, name: `Mean of component ${k}` }));
    const samples = (name, positions) => fillStrip(role(name), positions.map((position) => samplePicture(position, `${stored.index[position]}`)));
    samples("typical", c.typical);
    samples("untypical", c.untypical);
    fillStrip(role("loadings"), c.entries.slice(0, 6).map((entry) => {
      const values = loadingPicture(k, entry);
      return picture({
        values, scale: signedScale(reachOf(values)), caption: percent(entry.share),
        name: `Component ${k}, loading ${entryName(entry)}: ${percent(entry.share)} of the explained variance`,
      });
    }));
    for (const [name, what] of [["typical", "Most typical samples"], ["untypical", "Least typical samples"], ["loadings", "Strongest loadings"]]) {
      role(name).setAttribute("aria-label", `${what} of component ${k}`);
      if (!role(name).children.length) role(name).textContent = "None.";
    }
  });
}

function swatch(group) {
  const mark = svg("path", { d: marker(groupShape(group), 8, 8, 6) });
  mark.style.fill = groupColour(group);
  return svg("svg", { viewBox: "0 0 16 16", class: "mark", "aria-hidden": "true" }, mark);
}

// ---- modes ---------------------------------------------------------------------------------------------------

function setUpModes() {
  const [choice, list] = [byId("modes-component"), byId("modes-list")];
  const SHOWN = 4;
  const show = (k) => list.replaceChildren(...view.shape.map((side, mode) => {
    const axis = view.axes[mode];
    const rank = ranks[mode];
    const loading = components[k].loadings[mode];
    const counted = !(axis && axis.step);
    const block = view.block[mode] || 1;
    const xs = Array.from({ length: side }, (_, i) => (counted ? i * block : axis.start + axis.step * (i * block + (block - 1) / 2)));
    // The strongest first: a column is as strong as it is long.
    const columns = Array.from({ length: rank }, (_, j) => Float64Array.from({ length: side }, (_, i) => loading[i * rank + j]));
    const strength = (column) => column.reduce((sum, v) => sum + v * v, 0);
    columns.sort((a, b) => strength(b) - strength(a));
    const name = axisTitle(axis) || `mode ${mode}`;
    const host = html("div", { class: "pair", "data-mode": mode });
    const [curves, spectrum] = [html("div", { class: "panel" }), html("div", { class: "panel" })];
    host.append(curves, spectrum);
    const few = columns.slice(0, SHOWN);
    modeChart(curves, `loadings-${k}-${mode}`, `Loadings along ${name}`, { curves: few, xs, xTitle: axisTitle(axis) || "Entry", counted });
    curves.append(html("div", { class: "lines" }, few.map((_, j) => {
      const mark = svg("svg", { viewBox: "0 0 16 16", class: "mark", "aria-hidden": "true" }, svg("line", { x1: 1, x2: 15, y1: 8, y2: 8, "stroke-width": 3 }));
      mark.style.stroke = groupColour(j);
      return html("span", { class: "line" }, mark, `${j + 1}`);
    }), rank > SHOWN && html("span", { class: "unit" }, `and ${rank - SHOWN} weaker ones`)));
    const shares = components[k].spectra[mode];
    if (shares.length) {
      const held = shares.slice(0, rank).reduce((sum, share) => sum + share, 0);
      // As far as there is something to see: four times what is kept.
      const first = shares.slice(0, Math.max(24, 4 * rank));
      spectrumChart(spectrum, `spectrum-${k}-${mode}`, `Spectrum along ${name}`, { shares: first, kept: rank });
      spectrum.append(html("p", { class: "about" }, `The model keeps ${rank} of ${shares.length} directions; the first ${rank} hold ${percent(held)} of the variance`
        + (rank < shares.length ? `, the next would add ${percent(shares[rank])}.` : ".")));
    } else {
      spectrum.append(html("p", { class: "about" }, "Not computed: the mode is too long, or the component has no samples on this page."));
    }
    return host;
  }));
  choice.append(...components.map((c, k) => html("option", { value: k }, `${k} (${percent(c.weight)})`)));
  choice.addEventListener("change", () => show(Number(choice.value)));
  show(0);
}

// ---- explorer ------------------------------------------------------------------------------------------------

const explorer = { component: 0, core: new Float64Array(coreSize), matrix: null, shown: 8, loaded: null };

function setUpExplorer() {
  const [choice, sample, status] = [byId("explorer-component"), byId("explorer-sample"), byId("explorer-status")];
  const reach = (view.high - view.low) / 2 || 1;
  const main = framed({ values: components[0].mean, scale: valueScale, name: "The sample that the model makes of this core" }, null);
  const change = picture({ values: compose(0, explorer.core, false), scale: signedScale(reach), name: "Change from the mean", caption: "Change from the mean" });
  const origin = html("div", { id: "explorer-origin" });
  byId("explorer-picture").append(main);
  byId("explorer-change").append(change, origin);
  // A wide picture gets the whole width, with the small ones below it.
  byId("explorer").querySelector(".explorer").classList.toggle("flat", broad);
  const title = () => `explorer-component-${explorer.component}`;
  byId("explorer-under").append(colourBar(valueScale, valueName), saver("explorer", "the explorer's picture", {
    drawn: () => pictureSvg({ values: explorer.matrix, scale: valueScale, name: title() }),
    rows: () => pictureRowsCsv({ values: explorer.matrix }),
  }));

  const update = () => {
    explorer.matrix = compose(explorer.component, explorer.core);
    main.show(explorer.matrix);
    change.show(compose(explorer.component, explorer.core, false));
  };

  const drawSliders = () => {
    const entries = components[explorer.component].entries;
    byId("explorer-more").hidden = entries.length <= explorer.shown;
    byId("explorer-sliders").replaceChildren(...entries.slice(0, explorer.shown).map((entry, n) => {
      const flat = flatIndex(entry.position);
      const value = explorer.core[flat];
      const most = Math.max(4, Math.ceil(Math.abs(value)));
      const id = `slider-${n}`;
      const shown = (v) => v.toFixed(2).replace("-", "\u2212");
      const output = html("output", { for: id }, shown(value));
      const slider = html("input", { type: "range", id, min: -most, max: most, step: 0.05, value, "data-entry": flat });
      const values = loadingPicture(explorer.component, entry);
      const thumb = drawing(values, signedScale(reachOf(values)));
      thumb.setAttribute("aria-hidden", "true");
      const move = (next) => {
        explorer.core[flat] = next;
        output.textContent = shown(next);
        slider.setAttribute("aria-valuetext", `${shown(next)} standard deviations`);
        update();
      };
      slider.addEventListener("input", () => move(Number(slider.value)));
      slider.addEventListener("keydown", (event) => {
        if (event.key !== "0") return;
        slider.value = 0;
        move(0);
      });
      return html("div", { class: "slider" }, thumb,
        html("label", { for: id }, `Entry ${entryName(entry)}`, html("span", { class: "unit" }, percent(entry.share))), slider, output);
    }));
  };

  const start = (core, text) => {
    explorer.core = core;
    drawSliders();
    update();
    status.textContent = text;
  };

  const chooseComponent = (k) => {
    explorer.component = k;
    explorer.loaded = null;
    origin.replaceChildren();
    const members = [];
    stored.component.forEach((of, position) => { if (of === k && members.length < 400) members.push(position); });
    sample.replaceChildren(...members.map((position) => html("option", { value: position }, sampleName(position).replace("Sample ", ""))));
    sample.disabled = byId("explorer-load").disabled = members.length === 0;
    start(new Float64Array(coreSize), `Component ${k}: its mean.`);
  };

  choice.append(...components.map((c, k) => html("option", { value: k }, `${k} (${percent(c.weight)})`)));
  choice.addEventListener("change", () => chooseComponent(Number(choice.value)));
  byId("explorer-reset").addEventListener("click", () => {
    explorer.loaded = null;
    origin.replaceChildren();
    start(new Float64Array(coreSize), `Component ${explorer.component}: its mean.`);
  });
  byId("explorer-load").addEventListener("click", () => {
    const position = Number(sample.value);
    explorer.loaded = position;
    origin.replaceChildren(samplePicture(position, sampleName(position)));
    start(coreOf(position), `The core of ${sampleName(position).replace("Sample", "sample")}: all ${coreSize} entries are set. Its relative error is ${percent(stored.relative_error[position])}.`);
  });
  byId("explorer-more").addEventListener("click", () => {
    explorer.shown += 8;
    drawSliders();
    byId("explorer-sliders").querySelectorAll("input")[explorer.shown - 8].focus();
  });
  chooseComponent(0);
}

// ---- reconstructions -----------------------------------------------------------------------------------------

const difference = (a, b) => (a ? a.map((v, i) => v - b[i]) : null);

function drawReconstructions() {
  const triples = data.reconstructions.map((position) => {
    const [from, to] = [original(position), reconstruction(position)];
    return { position, from, to, rest: difference(from, to) };
  });
  const reaches = triples.filter((t) => t.rest).map((t) => reachOf(t.rest));
  const residual = signedScale(Math.max(...reaches, 1e-300));
  byId("reconstruction-bars").append(...(view.colours === "grey" ? [] : [colourBar(valueScale, valueName)]), colourBar(residual, "Residual"), ...holeKey());
  byId("reconstruction-list").append(...triples.map(({ position, from, to, rest }) => {
    const strip = html("div", { class: "strip three" });
    fillStrip(strip, [
      picture({ values: from, name: `${sampleName(position)}, original`, caption: "original" }),
      picture({ values: to, name: `${sampleName(position)}, reconstruction`, caption: "model" }),
      picture({ values: rest, scale: residual, name: `${sampleName(position)}, residual`, caption: "residual" }),
    ]);
    strip.setAttribute("aria-label", sampleName(position));
    return html("figure", { class: "triple" }, strip, html("figcaption", null, html("b", null, percent(stored.relative_error[position])),
      ` ${sampleName(position).replace("Sample", "sample")}`));
  }));
}

// ---- missing cells -------------------------------------------------------------------------------------------

function drawMissing() {
  const missing = data.missing;
  if (!missing) return;
  const cells = product(data.summary.shape);
  const share = floats(missing.share).map((v) => 100 * v);
  const often = amountScale(Math.max(...share), " %");
  const oftenName = "Samples that lack the cell";
  byId("missing-share").append(picture({ values: share, scale: often, name: "How often each cell is missing", label: oftenName }), colourBar(often, oftenName));
  const lacking = byId("missing-lacking");
  fillStrip(lacking, missing.lacking.map((of) => samplePicture(of.sample, `${of.index}: ${percent(of.missing / cells)}`)));
  lacking.setAttribute("aria-label", "The samples with most missing cells");
  if (!missing.filled.length) return;
  const filled = missing.filled.map((of) => ({ position: of.sample, values: floats(of.values), deviations: floats(of.deviations) }));
  const doubt = amountScale(Math.max(...filled.map((of) => reachOf(of.deviations))));
  const doubtName = "Standard deviation";
  byId("missing-bars").append(...(view.colours === "grey" ? [] : [colourBar(valueScale, valueName)]), colourBar(doubt, doubtName), ...holeKey());
  byId("missing-list").append(...filled.map(({ position, values, deviations }) => {
    const strip = html("div", { class: "strip three" });
    const name = sampleName(position);
    fillStrip(strip, [
      picture({ values: original(position), name: `${name}, as observed`, caption: "observed" }),
      picture({ values, name: `${name}, filled in`, caption: "filled in" }),
      picture({ values: deviations, scale: doubt, name: `${name}, standard deviation of what was filled in`, caption: "deviation", label: doubtName }),
    ]);
    strip.setAttribute("aria-label", name);
    return html("figure", { class: "triple" }, strip, html("figcaption", null, html("b", null, percent(stored.missing[position] / cells)),
      ` missing of ${name.replace("Sample", "sample")}`));
  }));
}

// ---- map -----------------------------------------------------------------------------------------------------

const map = { now: -1, places: null, by: "component", hidden: new Set(), show: null, zoom: 1, centre: null };

function setUpMap() {
  const byLabel = stored.label.length > 0;
  const chart = byId("map-chart");
  const host = html("div", { class: "chart-host map-host", tabindex: 0, role: "group", "aria-label": "Map of the samples. Use the arrow keys to step to the nearest sample in a direction." });
  const legend = html("div", { class: "legend", role: "group", "aria-label": "Groups; press to hide or show" });
  const side = byId("map-side");
  const live = html("p", { class: "status", role: "status", "aria-live": "polite" });
  const shown = html("div", { class: "strip three" });
  const facts = html("dl", { class: "small-facts" });
  side.append(live, shown, facts);
  live.textContent = "Point at a sample.";
  const reach = (view.high - view.low) / 2 || 1;
  const choice = html("select", { id: "map-colours" }, html("option", { value: "component" }, "component"), byLabel && html("option", { value: "label" }, "label"));
  const save = saver("map", "the map", {
    drawn: () => host.querySelector("svg"),
    rows: () => [["sample", "component", ...(byLabel ? ["label"] : []), "x", "y", "log-likelihood", "relative error", ...(partial ? ["missing cells"] : [])],
      ...stored.index.map((n, i) => [n, stored.component[i], ...(byLabel ? [labelOf(i)] : []), stored.x[i], stored.y[i], stored.log_likelihood[i], stored.relative_error[i], ...(partial ? [stored.missing[i]] : [])])],
  });
  const find = html("input", { type: "search", id: "map-find", placeholder: "number, name or label", "aria-label": "Find a sample by its number, name or label; Enter finds the next" });
  const zoomer = (text, label, factor) => html("button", { type: "button", class: "zoom", "aria-label": label, title: label, onclick: () => zoomBy(factor) }, text);
  const zoomers = html("div", { class: "zooms" }, zoomer("+", "Zoom in", 1.6), zoomer("\u2212", "Zoom out", 1 / 1.6), zoomer("\u21ba", "Show all", 0));
  chart.append(html("div", { class: "panel-head" }, html("label", null, "Colour by ", choice), html("label", null, "Find ", find), zoomers, save), host, legend);

  const groupOf = (i) => (map.by === "label" ? stored.label[i] : stored.component[i]);
  const visible = (i) => !map.hidden.has(groupOf(i));
  const groups = () => (map.by === "label" ? stored.label_names : components.map((_, k) => `${k}`));

  const draw = (width) => {
    const height = Math.round(Math.min(620, Math.max(320, 0.72 * width)));
    // Both axes have one scale: distances on the map are distances.
    const [x0, x1] = padded(stored.x, 0.03);
    const [y0, y1] = padded(stored.y, 0.03);
    const margin = { left: 14, right: 14, top: 14, bottom: 30 };
    const zoom = map.zoom * Math.min((width - margin.left - margin.right) / (x1 - x0), (height - margin.top - margin.bottom) / (y1 - y0));
    const [cx, cy] = map.centre || [(x0 + x1) / 2, (y0 + y1) / 2];
    const [mx, my] = [width / 2, margin.top + (height - margin.top - margin.bottom) / 2];
    const px = (i) => mx + zoom * (stored.x[i] - cx);
    const py = (i) => my - zoom * (stored.y[i] - cy);
    const radius = stored.count > 1500 ? 2.6 : stored.count > 400 ? 3.4 : 4.4;
    const drawn = svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "chart", role: "img", "aria-label": `Map of ${stored.count} samples coloured by ${map.by}.` });
    const paths = groups().map(() => []);
    for (let i = 0; i < stored.count; i++) paths[groupOf(i)].push(marker(groupShape(groupOf(i)), px(i), py(i), radius));
    drawn.append(...paths.map((parts, group) => {
      const path = svg("path", { d: parts.join(""), class: "points", "data-group": group });
      path.style.fill = groupColour(group);
      if (map.hidden.has(group)) path.style.display = "none";
      return path;
    }));
    const [a, b] = data.map.explained;
    const caption = `\u2192 ${percent(a)}, \u2191 ${percent(b)} of the variance`;
    drawn.append(svg("text", { x: width - margin.right, y: height - 8, class: "title end" }, caption));
    const ring = svg("circle", { r: radius + 5, class: "ring", visibility: "hidden" });
    drawn.append(ring);
    map.places = { px, py, ring, at: (x, y) => [cx + (x - mx) / zoom, cy - (y - my) / zoom], zoom, centre: [cx, cy] };
    host.replaceChildren(drawn);
    if (map.now >= 0) mark(map.now);
  };

  // Zooms around a point of the chart, its middle if none is given; a factor of 0 shows everything again.
  const zoomBy = (factor, x, y) => {
    const [before, was] = [map.places, map.zoom];
    map.zoom = factor ? Math.min(200, Math.max(1, map.zoom * factor)) : 1;
    if (map.zoom === 1) {
      map.centre = null;
    } else if (x !== undefined) {
      // What is under the pointer stays there.
      const [ax, ay] = before.at(x, y);
      const share = was / map.zoom;
      map.centre = [ax + (before.centre[0] - ax) * share, ay + (before.centre[1] - ay) * share];
    } else {
      map.centre = before.centre;
    }
    draw(Math.round(host.clientWidth));
  };

  // The next sample whose number, name or label is what was typed; one that holds it where there is none.
  const search = (text) => {
    const wanted = text.trim().toLowerCase();
    if (!wanted) return;
    const names = (i) => [`${stored.index[i]}`, stored.name[i] || "", labelOf(i) || ""].map((name) => name.toLowerCase());
    const order = Array.from({ length: stored.count }, (_, n) => (Math.max(map.now, -1) + 1 + n) % stored.count).filter(visible);
    const found = order.find((i) => names(i).includes(wanted)) ?? order.find((i) => names(i).slice(1).some((name) => name.includes(wanted)));
    if (found === undefined) {
      live.textContent = `No sample of this page is called \u201c${text.trim()}\u201d.`;
      return;
    }
    if (map.zoom > 1) {
      map.centre = [stored.x[found], stored.y[found]];
      draw(Math.round(host.clientWidth));
    }
    map.show(found);
  };

  const mark = (i) => {
    map.places.ring.setAttribute("cx", map.places.px(i));
    map.places.ring.setAttribute("cy", map.places.py(i));
    map.places.ring.setAttribute("visibility", "visible");
  };

  map.show = (i) => {
    if (i === map.now) return;
    map.now = i;
    mark(i);
    const [from, to] = [original(i), reconstruction(i)];
    fillStrip(shown, [
      picture({ values: from, name: `${sampleName(i)}, original`, caption: "original" }),
      picture({ values: to, name: `${sampleName(i)}, reconstruction`, caption: "model" }),
      picture({ values: difference(from, to), scale: signedScale(reach), name: `${sampleName(i)}, residual`, caption: "residual" }),
    ]);
    live.textContent = sampleName(i);
    const fact = (name, value) => html("div", null, html("dt", null, name), html("dd", null, value));
    facts.replaceChildren(fact("Component", `${stored.component[i]} (${percent(stored.responsibility[i])})`),
      fact(likelihoodName, format(stored.log_likelihood[i])), fact("Relative error", percent(stored.relative_error[i])),
      ...(partial ? [fact("Missing cells", `${stored.missing[i]} of ${product(data.summary.shape)}`)] : []));
  };

  const drawLegend = () => {
    legend.replaceChildren(...groups().map((name, group) => {
      const button = html("button", { type: "button", class: "key", "aria-pressed": "true" }, swatch(group), html("span", null, name));
      button.addEventListener("click", () => {
        if (map.hidden.has(group)) map.hidden.delete(group); else map.hidden.add(group);
        button.setAttribute("aria-pressed", String(!map.hidden.has(group)));
        host.querySelector(`[data-group="${group}"]`).style.display = map.hidden.has(group) ? "none" : "";
      });
      return button;
    }));
  };

  const nearest = (x, y, allowed, cost) => {
    let best = -1;
    let least = Infinity;
    for (let i = 0; i < stored.count; i++) {
      if (!visible(i) || !allowed(i)) continue;
      const distance = cost(map.places.px(i) - x, map.places.py(i) - y);
      if (distance < least) { least = distance; best = i; }
    }
    return best;
  };

  const point = (event) => {
    const area = host.getBoundingClientRect();
    const i = nearest(event.clientX - area.left, event.clientY - area.top, () => true, (dx, dy) => dx * dx + dy * dy);
    if (i >= 0) map.show(i);
  };
  let dragged = null;
  host.addEventListener("pointermove", (event) => {
    if (!dragged || !event.buttons) { point(event); return; }
    const { places, from } = dragged;
    map.centre = [places.centre[0] - (event.clientX - from[0]) / places.zoom, places.centre[1] + (event.clientY - from[1]) / places.zoom];
    draw(Math.round(host.clientWidth));
  });
  host.addEventListener("pointerdown", (event) => {
    point(event);
    dragged = map.zoom > 1 ? { places: map.places, from: [event.clientX, event.clientY] } : null;
  });
  for (const end of ["pointerup", "pointerleave"]) host.addEventListener(end, () => { dragged = null; });
  host.addEventListener("wheel", (event) => {
    // Without Ctrl the wheel moves the page, as everywhere else on it.
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const area = host.getBoundingClientRect();
    zoomBy(event.deltaY < 0 ? 1.25 : 0.8, event.clientX - area.left, event.clientY - area.top);
  }, { passive: false });
  find.addEventListener("keydown", (event) => { if (event.key === "Enter") search(find.value); });
  host.addEventListener("keydown", (event) => {
    const factor = { "+": 1.6, "=": 1.6, "-": 1 / 1.6, 0: 0 }[event.key];
    if (factor !== undefined) { event.preventDefault(); zoomBy(factor); return; }
    const direction = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (!direction) return;
    event.preventDefault();
    if (map.now < 0) { map.show(0); return; }
    const [x, y] = [map.places.px(map.now), map.places.py(map.now)];
    // Along the arrow counts once, across it three times: the next sample in that direction, not the next on the list.
    const along = (dx, dy) => dx * direction[0] + dy * direction[1];
    const i = nearest(x, y, (j) => j !== map.now && along(map.places.px(j) - x, map.places.py(j) - y) > 0.5,
      (dx, dy) => along(dx, dy) + 3 * Math.abs(dx * direction[1] + dy * direction[0]));
    if (i >= 0) map.show(i);
  });
  choice.addEventListener("change", () => {
    map.by = choice.value;
    map.hidden.clear();
    drawLegend();
    draw(Math.round(host.clientWidth));
  });
  drawLegend();
  responsive(host, draw);
  map.show(data.outliers.length ? data.components[0].typical[0] ?? 0 : 0);
}

// ---- outliers and labels -------------------------------------------------------------------------------------

function drawOutliers() {
  histogramChart(byId("outlier-chart"), "log-likelihoods", "Log-likelihoods of all samples", {
    edges: data.histogram.edges, counts: data.histogram.counts, xTitle: standingName, rug: data.outliers.map(standing).filter(Number.isFinite),
  });
  const list = byId("outlier-list");
  fillStrip(list, data.outliers.map((position) => {
    const figure = samplePicture(position, "");
    figure.querySelector("figcaption").append(html("b", null, format(standing(position))), html("br"), sampleName(position), html("br"), `component ${stored.component[position]}`);
    return figure;
  }));
  list.setAttribute("aria-label", "The least likely samples");
}

function shadeTables() {
  document.querySelectorAll("table.counts").forEach((table) => {
    for (const row of table.tBodies[0].rows) {
      const cells = [...row.cells].slice(1);
      const total = cells.reduce((sum, cell) => sum + Number(cell.textContent), 0) || 1;
      cells.forEach((cell) => {
        const share = Number(cell.textContent) / total;
        cell.style.setProperty("--share", `${(share * 70).toFixed(1)}%`);
        cell.classList.toggle("none", share === 0);
        cell.title = `${percent(share)} of the row`;
      });
    }
  });
  document.querySelectorAll("[data-csv]").forEach((node) => {
    const table = byId(node.dataset.csv);
    if (table.tagName !== "TABLE") { drawCounts(table, node); return; }
    node.append(saver(node.dataset.csv, table.caption.textContent, {
      drawn: () => tableSvg(table),
      rows: () => [...table.rows].map((row) => [...row.cells].map((cell) => (cell.tagName === "TD" ? Number(cell.textContent) : cell.textContent))),
    }));
  });
}

// A table too large to be read: one pixel per count, dark where a row has most of its samples.
function drawCounts(host, head) {
  const of = host.id === "confusion" ? data.recognition : data.agreement;
  const [rows, columns] = [of.counts.length, of.labels.length];
  const rowName = (r) => (host.id === "confusion" ? of.labels[r] : `component ${r}`);
  const canvas = html("canvas", { width: columns, height: rows, class: "drawing", role: "img", "aria-label": host.dataset.caption });
  const image = canvas.getContext("2d").createImageData(columns, rows);
  of.counts.forEach((row, r) => {
    const total = row.reduce((sum, n) => sum + n, 0) || 1;
    row.forEach((n, c) => {
      // The square root lets a single confusion be seen beside a full diagonal.
      const from = 3 * Math.round(255 * Math.sqrt(n / total));
      for (let i = 0; i < 3; i++) image.data[4 * (r * columns + c) + i] = tables.sequential[from + i];
      image.data[4 * (r * columns + c) + 3] = 255;
    });
  });
  canvas.getContext("2d").putImageData(image, 0, 0);
  canvas.style.aspectRatio = Math.min(4, Math.max(0.5, columns / rows));
  const readout = html("p", { class: "status", role: "status", "aria-live": "polite" }, "\u00a0");
  canvas.addEventListener("pointermove", (event) => {
    const area = canvas.getBoundingClientRect();
    const place = (at, length, count) => Math.min(count - 1, Math.max(0, Math.floor((count * at) / length)));
    const [r, c] = [place(event.clientY - area.top, area.height, rows), place(event.clientX - area.left, area.width, columns)];
    readout.textContent = `${rowName(r)}, ${of.labels[c]}: ${of.counts[r][c]}`;
  });
  host.append(canvas, readout);
  head.append(saver(host.id, host.dataset.caption, {
    rows: () => [[host.dataset.corner, ...of.labels], ...of.counts.map((row, r) => [rowName(r), ...row])],
  }));
}

function drawMistakes() {
  if (!byId("mistakes")) return;
  byId("mistakes").append(...data.recognition.mistakes.map(({ sample, nearest }) => {
    const strip = html("div", { class: "strip two" });
    const short = (position) => stored.name[position] || `sample ${stored.index[position]}`;
    fillStrip(strip, [samplePicture(sample, short(sample)), samplePicture(nearest, short(nearest))]);
    strip.setAttribute("aria-label", `${sampleName(sample)}, taken for ${sampleName(nearest)}`);
    return html("figure", { class: "triple" }, strip, html("figcaption", null, html("b", null, labelOf(sample)), " taken for ", html("b", null, labelOf(nearest))));
  }));
}

// The table as a chart of squares, for saving; the page itself shows a real table.
function tableSvg(table) {
  const rows = [...table.rows].map((row) => [...row.cells]);
  const [cell, head] = [34, 90];
  const width = head + cell * (rows[0].length - 1) + 10;
  const height = 30 + cell * (rows.length - 1) + 10;
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name);
  const holder = svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "chart" });
  holder.style.color = colour("--ink");
  const short = (text) => (text.length > 12 ? `${text.slice(0, 11)}\u2026` : text);
  rows.forEach((cells, r) => cells.forEach((source, c) => {
    const [x, y] = [c ? head + cell * (c - 1) : 0, r ? 30 + cell * (r - 1) : 0];
    if (r && c) holder.append(svg("rect", { x, y, width: cell - 1, height: cell - 1, fill: "#0072b2", "fill-opacity": parseFloat(source.style.getPropertyValue("--share")) / 100, class: "cell" }));
    const across = c ? x + cell / 2 : head - 8;
    holder.append(svg("text", { x: across, y: y + (r ? 21 : 20), class: c ? "tick middle" : "tick end" }, short(source.textContent)));
  }));
  document.body.append(holder);
  const text = svgText(holder);
  holder.remove();
  return [text, width, height];
}

// ---- start ---------------------------------------------------------------------------------------------------

document.documentElement.classList.toggle("broad", broad);
setUpTheme();
setUpSlices();
drawGlance();
drawConvergence();
drawComponents();
setUpModes();
setUpExplorer();
drawReconstructions();
drawMissing();
setUpMap();
drawOutliers();
shadeTables();
drawMistakes();

// For tests and for the curious in the console.
window.matmixReport = {
  data,
  currentMatrix: () => Array.from(explorer.matrix),
  currentCore: () => Array.from(explorer.core),
  currentComponent: () => explorer.component,
  mapSample: () => (map.now < 0 ? null : stored.index[map.now]),
  mapPlace: (position) => ({ x: map.places.px(position), y: map.places.py(position) }),
  compose: (k, core) => Array.from(compose(k, core)),
  mapZoom: () => map.zoom,
  slice: () => slice.now,
  colours: (name) => Array.from(tables[name]),
  readyAfter: performance.now(),
};
document.documentElement.dataset.ready = "true";
