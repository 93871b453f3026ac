// The page of cellrisk: it asks the server, shows what comes back, and computes no risk itself.
"use strict";

const page = {
  server: null, // what /api/state says
  source: null, // the file that is loaded, with its columns
  table: null, // the counted table, and what was chosen for it
  positions: null, // every slider position of what is shown
  shown: null, // of which sensitive column, mechanism, neighbours and measure these are
  shipped: new Map(), // positions that were shipped before, by what was asked
  epsilon: 1, // what the slider shows; kept when the mechanism changes
  limit: null, // the largest risk accepted
  admissible: null, // what the server says of that limit
  ...{ map: null, compared: null, riskiest: null }, // the last answers to these
  order: { column: "risk", descending: true },
  seed: 1,
};

// Plotly carries the style sheet of its maps and adds it when it loads. The page has no maps, and its
// Content-Security-Policy allows no style elements: leave them out before the browser has to refuse them.
function leaveOutStyleElements() {
  const [head, append] = [document.head, document.head.appendChild];
  head.appendChild = (node) => (node instanceof HTMLStyleElement ? node : append.call(head, node));
}

// ---------------------------------------------------------------- numbers and words
const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const threeDigits = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 3 });
const SUPERSCRIPTS = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };

const count = (number) => whole.format(number);
const keyWords = (key) => Object.entries(key).map(([column, value]) => `${column} ${value}`).join(", ");
const titleOf = (list, name) => page.server[list].find((each) => each.name === name)?.title ?? name;

// As the command line writes it: one decimal, and more where that would hide a small risk.
function percent(share) {
  if (share > 0 && share < 0.001) return share >= 1e-6 ? `${Number((100 * share).toPrecision(1))}%` : "under 0.0001%";
  return `${(100 * share).toFixed(1)}%`;
}

// Three significant digits, and a power of ten where zeros would be counted.
function short(number) {
  if (number === 0 || (Math.abs(number) >= 1e-4 && Math.abs(number) < 1e6)) return threeDigits.format(number);
  const [digits, power] = number.toExponential(2).split("e");
  const raised = [...String(Number(power))].map((sign) => SUPERSCRIPTS[sign]).join("");
  return Number(digits) === 1 ? `10${raised}` : `${Number(digits)} × 10${raised}`;
}

// The end of an interval, so rounded that it stays inside: up or down to three significant digits.
function shortInward(number, round) {
  const digit = 10 ** (Math.floor(Math.log10(number)) - 2);
  return short(round(Number((number / digit).toFixed(6))) * digit);
}

function size(bytes) {
  const units = ["bytes", "kB", "MB", "GB"];
  let unit = 0;
  while (bytes >= 1000 && unit < units.length - 1) [bytes, unit] = [bytes / 1000, unit + 1];
  return `${threeDigits.format(bytes)} ${units[unit]}`;
}

// ---------------------------------------------------------------- elements
const at = (id) => document.getElementById(id);
const announce = (words) => { at("announcer").textContent = words; };
const named = (list) => page.server[list].map((each) => [each.name, each.title]);

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

function setOptions(select, options, chosen) {
  select.replaceChildren(...options.map(([value, words]) => make("option", { value }, words)));
  if (chosen !== undefined) select.value = chosen;
}

// A table of plain cells: columns of words, then columns of numbers.
function makeTable(caption, words, numbers, rows) {
  const side = (place) => (place < words.length ? null : "right");
  const head = [...words, ...numbers].map((title, place) => make("th", { scope: "col", class: side(place) }, title));
  const cellOf = (cell, place) => make(place ? "td" : "th", { scope: place ? null : "row", class: side(place) }, cell);
  return make("table", {}, make("caption", { class: "unseen" }, caption), make("thead", {}, make("tr", {}, ...head)),
    make("tbody", {}, ...rows.map((row) => make("tr", {}, ...row.map(cellOf)))));
}

function setFigures(list, figures) {
  list.replaceChildren(...figures.map(([words, value, more, kind]) => make("div", { class: kind }, make("dt", {}, words),
    make("dd", {}, make("span", { class: "value" }, value), more ? make("span", { class: "more" }, more) : null))));
}

const waiting = new Map();

// Runs once the calls under one name have been quiet for a while.
function later(name, milliseconds, action) {
  clearTimeout(waiting.get(name));
  waiting.set(name, setTimeout(action, milliseconds));
}

// ---------------------------------------------------------------- the server
const askTable = (what, body) => ask("POST", `/api/tables/${page.table.table}/${what}`, body);
const showError = (place, error) => place.replaceChildren(make("p", { class: "error", role: "alert" }, error.message));
const showNote = (place, ...words) => place.replaceChildren(make("p", { class: "note" }, ...words));

// Asks by XMLHttpRequest, because fetch cannot say how far an upload is.
function ask(method, path, body, turn, report) {
  return new Promise((done, failed) => {
    const request = new XMLHttpRequest();
    const refusal = () => new Error(request.response?.error ?? `The server refused this (${request.status}).`);
    request.open(method, path);
    request.responseType = "json";
    request.setRequestHeader("X-Cellrisk", "1");
    request.onload = () => (request.status < 300 ? done(request.response) : failed(refusal()));
    request.onerror = () => failed(new Error("The server does not answer. Is cellrisk serve still running?"));
    request.onabort = () => failed(new Error("Cancelled."));
    if (turn) turn.abort = () => request.abort();
    if (report) request.upload.onprogress = (event) => report(event.loaded / event.total, "uploading");
    const isFile = body instanceof FormData;
    if (body && !isFile) request.setRequestHeader("Content-Type", "application/json");
    request.send(isFile ? body : JSON.stringify(body));
  });
}

const turns = new Map();

// One piece of work at a time in each place: a new one ends the one before.
function takeTurn(place) {
  turns.get(place)?.end();
  const turn = { over: false, cancelled: false, job: null, abort: () => {} };
  turn.stop = () => {
    turn.abort();
    if (turn.job) ask("DELETE", `/api/jobs/${turn.job}`).catch(() => {});
  };
  turn.end = () => { turn.over = true; turn.stop(); };
  turns.set(place, turn);
  return turn;
}

function showProgress(place, words, turn) {
  const step = make("span", { class: "step" }, words);
  const bar = make("progress", { max: 1, "aria-label": words });
  const cancel = make("button", { type: "button", class: "small" }, "Cancel");
  cancel.addEventListener("click", () => { cancel.disabled = turn.cancelled = true; turn.stop(); });
  place.replaceChildren(make("div", { class: "progress" }, step, bar, cancel));
  announce(words);
  return (progress, what) => {
    if (typeof progress === "number") bar.value = progress;
    else bar.removeAttribute("value");
    step.textContent = what ? `${words}: ${what}` : words;
  };
}

// Asks in a place of the page and gives the answer, or null where there is none: an error is shown there, and only
// the last question asked there is answered. With words it is long work: a job with progress and a way to cancel.
async function work(place, words, begin) {
  const turn = takeTurn(place);
  const report = words ? showProgress(place, words, turn) : () => {};
  try {
    const started = await begin(turn, report);
    const result = started.job ? await follow(started.job, turn, report) : started;
    if (turn.over) return null;
    if (turn.cancelled) throw new Error("Cancelled.");
    place.replaceChildren();
    return result;
  } catch (error) {
    if (turn.over) return null;
    if (turn.cancelled) showNote(place, "Cancelled.");
    else showError(place, error);
    return null;
  }
}

async function follow(job, turn, report) {
  turn.job = job;
  if (turn.over || turn.cancelled) turn.stop();
  for (let pause = 60; ; pause = Math.min(1.5 * pause, 500)) {
    const { state, progress, step, result, error } = await ask("GET", `/api/jobs/${job}`);
    if (["done", "failed", "cancelled"].includes(state)) turn.job = null;
    if (state === "done") return result;
    if (turn.job === null) throw new Error(error ?? "Cancelled.");
    report(progress, step);
    await new Promise((resume) => setTimeout(resume, pause));
  }
}

// ---------------------------------------------------------------- theme
const applyTheme = (theme) => { document.documentElement.dataset.theme = theme; };

function chooseTheme() {
  localStorage.setItem("cellrisk-theme", at("theme").value);
  applyTheme(at("theme").value);
  redrawCharts();
}

function colour(name) {
  const probe = at("announcer");
  probe.style.color = `var(--${name})`;
  const found = getComputedStyle(probe).color;
  probe.style.color = "";
  return found;
}

// ---------------------------------------------------------------- charts
const drawn = new Map();
const redrawCharts = () => drawn.forEach((again) => again());
const isWide = (id) => at(id).clientWidth > 560;
const mapMarks = () => ["stricter", "recommended", "looser"].map((name) => [name, page.map[name]]).filter(([, mark]) => mark);
const riskAxis = (largest) => ({ range: [0, 1.14 * largest || 0.01], tickformat: ".3~p", title: "risk" });
const levelLine = (y, color, dash) => ({ type: "line", xref: "paper", x0: 0, x1: 1, y0: y, y1: y, line: { color, width: 1.5, dash } });
const axesOf = (id) => at(id).querySelector(".plot")._fullLayout;

// Texts given to plotly are the page's own words, never the data's: plotly reads tags in them.
function draw(id, again, traces, layout) {
  drawn.set(id, again);
  const [ink, line, quiet] = [colour("ink"), colour("line"), colour("quiet")];
  const axis = (own) => ({ gridcolor: line, linecolor: quiet, tickcolor: quiet, zeroline: false, fixedrange: true, automargin: true, ...own,
    title: { standoff: 10, text: own.title } });
  const plot = at(id).querySelector(".plot");
  Plotly.react(plot, traces, {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", dragmode: false, showlegend: false,
    font: { color: ink, size: 13, family: getComputedStyle(document.body).fontFamily },
    hoverlabel: { bgcolor: colour("raised"), bordercolor: line, font: { color: ink } },
    legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom", bgcolor: "rgba(0,0,0,0)" },
    ...layout, margin: { l: 48, r: 12, t: layout.showlegend ? 34 : 12, b: 44 }, xaxis: axis(layout.xaxis), yaxis: axis(layout.yaxis),
  }, { displayModeBar: false, responsive: true, doubleClick: false });
  if (plot.dataset.watched) return;
  plot.dataset.watched = "yes";
  plot.on("plotly_afterplot", placeOverlays);
}

function epsilonAxis(epsilons, wide) {
  const [low, high] = [epsilons[0], epsilons.at(-1)];
  const ticks = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1) {
    for (const step of !wide ? [1] : high / low > 2000 ? [1, 3] : [1, 2, 5]) ticks.push(Number((step * 10 ** power).toPrecision(1)));
  }
  const shown = ticks.filter((tick) => tick >= 0.999 * low && tick <= 1.001 * high);
  return { type: "log", range: [Math.log10(low) - 0.02, Math.log10(high) + 0.02], title: "epsilon (log scale)",
    tickvals: shown, ticktext: shown.map(String) };
}

// The curve that two steps show: the band between tight and exact, the two ends, and the epsilons that are admissible.
function drawRisk(id, again, intervals) {
  const [row, { epsilons }, accent] = [presentRow(), page.positions, colour("accent")];
  const line = (form, dash, more) => ({ x: epsilons, y: row[form], mode: "lines", name: form, line: { color: accent, width: 2.5, dash },
    hovertemplate: `${form} %{y:.1%} at epsilon %{x}<extra></extra>`, ...more });
  const words = isWide(id) ? { raw: "raw table, no noise", chance: "chance, all noise" } : { raw: "raw", chance: "chance" };
  const ends = [["raw", colour("alarm"), "left"], ["chance", colour("quiet"), "right"]];
  const higher = Math.max(row.raw, row.chance);
  const apart = Math.abs(row.raw - row.chance) > 0.08 * higher;
  const shades = intervals.map(([low, high]) => ({ type: "rect", yref: "paper", y0: 0, y1: 1, layer: "below", fillcolor: colour("safe-band"),
    x0: Math.max(low, 0.95 * epsilons[0]), x1: Math.min(high, 1.05 * epsilons.at(-1)), line: { width: 1, color: colour("safe") } }));
  const shapes = ends.map(([end, color]) => levelLine(row[end], color, "dot"));
  const annotations = ends.map(([end, color, xanchor]) => ({ text: `${words[end]} ${percent(row[end])}`, xref: "paper",
    x: xanchor === "left" ? 0 : 1, xanchor, y: row[end], yanchor: apart || row[end] === higher ? "bottom" : "top",
    showarrow: false, font: { color, size: 12.5 } }));
  draw(id, again, [line("exact", "dash"), line("tight", "solid", { fill: "tonexty", fillcolor: colour("band") })], { annotations, showlegend: true,
    shapes: [...shades, ...shapes], xaxis: epsilonAxis(epsilons, isWide(id)), yaxis: riskAxis(Math.max(higher, ...row.exact, ...row.tight)) });
}

const drawCurve = () => drawRisk("curve", drawCurve, []);
const drawLimits = () => drawRisk("limits", drawLimits, page.admissible?.intervals ?? []);

function drawHistogram() {
  draw("histogram", drawHistogram, [{ type: "bar", x: sizeLabels(), y: page.table.sizes.cells, marker: { color: colour("accent") },
    hovertemplate: "%{y:,} cells of size %{x}<extra></extra>" }], { bargap: 0.15, yaxis: { title: "cells", tickformat: "," },
    xaxis: { type: "category", title: "people in the cell", tickfont: { size: 11 } } });
}

function sizeLabels() {
  const { edges } = page.table.sizes;
  return edges.slice(0, -1).map((low, place) => (edges[place + 1] - low === 1 ? count(low) : `${count(low)}–${count(edges[place + 1] - 1)}`));
}

function drawMap() {
  const { points } = page.map;
  const allOf = (name) => points.map((point) => point[name]);
  const marks = mapMarks().filter(([, mark]) => mark.tvd !== null);
  draw("map", drawMap, [
    { x: allOf("tvd"), y: allOf("risk"), text: allOf("epsilon").map(short), mode: "lines+markers", line: { color: colour("accent"), width: 2 },
      marker: { size: 6 }, hovertemplate: "epsilon %{text}<br>risk %{y:.1%}<br>distortion %{x:.3f}<extra></extra>" },
    { x: marks.map(([, mark]) => mark.tvd), y: marks.map(([, mark]) => mark.risk), text: marks.map(([name]) => name), mode: "markers+text",
      textposition: ["bottom left", "top right", "top right"].slice(-marks.length), cliponaxis: false,
      marker: { size: 13, symbol: "diamond", color: colour("alarm") }, hoverinfo: "skip" },
  ], { shapes: [levelLine(page.limit, colour("safe"), "dash")],
    annotations: [{ text: `limit ${percent(page.limit)}`, xref: "paper", x: 0, xanchor: "left", y: page.limit, yanchor: "top",
      showarrow: false, font: { color: colour("safe") } }],
    xaxis: { title: "distortion (total variation distance)", rangemode: "tozero" },
    yaxis: riskAxis(Math.max(page.limit, ...allOf("risk"))) });
}

function drawComparison() {
  const sides = [["A", page.compared.a, colour("accent"), "solid"], ["B", page.compared.b, colour("alarm"), "dash"]];
  const lines = sides.map(([name, side, color, dash]) => ({ x: side.epsilons, y: side.risk, mode: "lines", name, line: { color, width: 2.5, dash },
    hovertemplate: `${name}: %{y:.1%} at epsilon %{x}<extra></extra>` }));
  const dots = sides.map(([, side, color]) => ({ x: [side.at.epsilon], y: [side.at.risk], mode: "markers", showlegend: false,
    hoverinfo: "skip", marker: { size: 11, color } }));
  const epsilons = sides.flatMap(([, side]) => side.epsilons).sort((one, other) => one - other);
  draw("compare-chart", drawComparison, [...lines, ...dots], { showlegend: true, xaxis: epsilonAxis(epsilons, isWide("compare-chart")),
    yaxis: riskAxis(Math.max(...sides.flatMap(([, side]) => side.risk))) });
}

// The marks that move are elements over the charts, so that moving them draws nothing anew.
function placeOverlays() {
  if (!page.positions) return;
  const risk = presentRow()[at("form").value][presentIndex()];
  for (const id of ["curve", "limits"]) placeMarker(id, page.epsilon, risk);
  placeHandle();
}

function placeMarker(id, epsilon, risk) {
  const axes = axesOf(id);
  if (!axes?.xaxis) return;
  const marker = at(id).querySelector(".marker");
  marker.hidden = false;
  marker.style.transform = `translate(${axes.xaxis._offset + axes.xaxis.d2p(epsilon)}px, ${axes.yaxis._offset}px)`;
  marker.style.height = `${axes.yaxis._length}px`;
  marker.firstElementChild.style.transform = `translateY(${axes.yaxis.d2p(risk)}px)`;
}

function placeHandle() {
  const axes = axesOf("limits");
  if (!axes?.yaxis || page.limit === null) return;
  const { style } = at("limit-handle");
  const height = Math.min(Math.max(axes.yaxis.d2p(page.limit), 0), axes.yaxis._length);
  at("limit-handle").hidden = false;
  [style.left, style.width] = [`${axes.xaxis._offset}px`, `${axes.xaxis._length}px`];
  style.transform = `translateY(${axes.yaxis._offset + height}px)`;
}

// ---------------------------------------------------------------- step 1: load
async function showFiles() {
  const answer = await work(at("folder-status"), null, () => ask("GET", "/api/files"));
  if (!answer) return;
  setOptions(at("folder-file"), answer.files.map(({ path, bytes }) => [path, `${path} (${size(bytes)})`]));
  at("folder-way").hidden = answer.files.length === 0;
}

function upload(file) {
  const limit = page.server?.upload_limit ?? Infinity;
  at("file").value = "";
  if (!file) return;
  const form = new FormData();
  form.append("file", file);
  if (file.size <= limit) loadSource(`Reading ${file.name}`, (turn, report) => ask("POST", "/api/uploads", form, turn, report));
  else showError(at("load-status"), new Error(`The file has ${size(file.size)}; at most ${size(limit)} can be uploaded.`));
}

async function loadSource(words, begin) {
  forgetTable();
  at("columns-area").hidden = true;
  const source = await work(at("load-status"), words, async (turn, report) => {
    const { source: id } = await begin(turn, report);
    for (;;) {
      const preview = await ask("GET", `/api/sources/${id}`);
      if (preview.columns) return preview;
      await follow(preview.job, turn, report);
    }
  });
  if (source) showColumns(source);
}

function showColumns(source) {
  page.source = source;
  const { quasi_identifiers: keys = [], sensitive = [], bins = {} } = source.suggested ?? {};
  const roleOf = (name) => (keys.includes(name) ? "qid" : sensitive.includes(name) ? "sensitive" : "unused");
  const numbers = source.columns.filter((column) => column.kind === "number");
  at("source-title").textContent = `${source.name}: ${count(source.rows)} rows, ${source.columns.length} columns`;
  const rows = source.columns.map((column, place) => makeColumnRow(column, place, roleOf(column.name), bins[column.name]));
  at("columns").tBodies[0].replaceChildren(...rows);
  setOptions(at("count"), [["", "one person"], ...numbers.map(({ name }) => [name, `a cell, counted in ${name}`])], "");
  at("columns-area").hidden = false;
  at("source-title").focus();
}

const ROLES = [["qid", "Quasi-identifier"], ["sensitive", "Sensitive"], ["unused", "Not used"]];

function makeColumnRow(column, place, role, bins) {
  const markRow = (event) => { row.className = event.target.value; };
  const radio = ([value, words]) => make("td", { class: "mid pick" }, make("label", {}, make("input", { type: "radio", name: `role-${place}`, value,
    checked: value === role, "aria-label": `${column.name}: ${words}`, change: markRow }), make("span", {}, words)));
  const field = column.kind !== "number" ? make("span", { class: "quiet" }, "–") : make("input", { type: "text", class: "bins", value: bins ?? "",
    placeholder: "5 or 0/18/65", "aria-label": `Bins of ${column.name}: a width, or edges between slashes` });
  const row = make("tr", { class: role, "data-column": column.name },
    make("th", { scope: "row" }, column.name, column.hint ? make("span", { class: "hint" }, column.hint) : null),
    make("td", { "data-label": "Type" }, column.kind === "truth" ? "yes or no" : column.kind),
    make("td", { class: "right", "data-label": "Levels" }, column.levels === null ? "over 10,000" : count(column.levels)),
    make("td", { class: "right", "data-label": "Missing" }, count(column.missing)),
    ...ROLES.map(radio), make("td", { "data-label": "Bins" }, field));
  return row;
}

function chosenTable() {
  const rows = [...at("columns").tBodies[0].rows];
  const columnsOf = (role) => rows.filter((row) => row.className === role).map((row) => row.dataset.column);
  const bins = rows.filter((row) => row.className === "qid").map((row) => [row.dataset.column, row.querySelector(".bins")?.value.trim()]);
  return { source: page.source.source, quasi_identifiers: columnsOf("qid"), sensitive: columnsOf("sensitive"),
    bins: Object.fromEntries(bins.filter(([, edges]) => edges)), missing: at("missing").value, count: at("count").value || null };
}

function forgetTable() {
  for (const turn of turns.values()) turn.end();
  for (const timer of waiting.values()) clearTimeout(timer);
  Object.assign(page, { table: null, keyed: null, positions: null, shown: null, limit: null, admissible: null, map: null, compared: null, riskiest: null });
  for (const kept of [page.shipped, drawn]) kept.clear();
  for (const id of ["table-area", "see", "see-area", "decide", "act", "map-area", "compare-area"]) at(id).hidden = true;
  for (const status of document.querySelectorAll("main .status:not(#ledger-status)")) status.replaceChildren();
  markSteps();
}

async function countTable() {
  const chosen = chosenTable();
  forgetTable();
  if (!chosen.quasi_identifiers.length || !chosen.sensitive.length) {
    return showError(at("count-status"), new Error("Choose at least one quasi-identifier and one sensitive column."));
  }
  const table = await work(at("count-status"), "Counting the table", async (turn, report) => {
    const { job } = await ask("POST", "/api/tables", chosen);
    const made = await follow(job, turn, report);
    return ask("GET", `/api/tables/${made.table}`);
  });
  if (table) showTable({ ...table, chosen });
}

function showTable(table) {
  page.table = table;
  const [first] = table.sensitive;
  const ofCells = (number) => `${percent(number / table.cells)} of cells`;
  setFigures(at("table-figures"), [
    ["People", count(table.records), table.dropped ? `${count(table.dropped)} dropped: a value is missing` : ""],
    ["Cells", count(table.cells), "combinations of quasi-identifiers that occur"],
    ...table.sensitive.map(({ name, homogeneous }) => [`Cells with one value of ${name}`, count(homogeneous), ofCells(homogeneous)]),
    ["Cells with one person", count(first.unique), ofCells(first.unique)],
  ]);
  at("warnings").querySelector("ul").replaceChildren(...table.warnings.map((words) => make("li", {}, words)));
  at("warnings").hidden = table.warnings.length === 0;
  for (const id of ["table-area", "see"]) at(id).hidden = false;
  markSteps();
  setOptions(at("sensitive"), table.sensitive.map(({ name }) => [name, name]), first.name);
  at("sensitive-field").hidden = table.sensitive.length === 1;
  showCompareFields();
  announce(`The table is counted: ${count(table.records)} people in ${count(table.cells)} cells. Go on to step 2, See.`);
  loadPositions();
}

// ---------------------------------------------------------------- step 2: see
const presentIndex = () => Number(at("epsilon").value);
const presentRow = () => page.positions.rows[`${page.shown.measure}/${at("weights").value}/${at("delta").value}`];
const badge = (scenario) => make("span", { class: `badge case-${scenario}` }, String(scenario));

async function loadPositions() {
  const wanted = Object.fromEntries(["sensitive", "mechanism", "neighbours", "measure"].map((id) => [id, at(id).value]));
  const { measure, ...others } = wanted;
  const [key, about] = [JSON.stringify(wanted), JSON.stringify(others)];
  const shipped = page.shipped.get(key);
  // How many people are exposed does not depend on the measure: what was shipped with another one is used again.
  const counted = [...page.shipped.values()].find((each) => each.about === about);
  const asking = () => shipped ?? askTable("positions", { ...others, measures: [measure], deltas: null, points: 121, people: !counted });
  const wish = (page.wanted = {}); // the same may be asked for twice: only the last one counts
  const positions = await work(at("see-status"), shipped ? null : "Computing the curve", asking);
  if (page.wanted !== wish) return;
  if (positions) {
    if (counted) Object.assign(positions, { people: counted.people, sentences: counted.sentences });
    page.shipped.set(key, Object.assign(positions, { about }));
    page.shown = wanted;
    showPositions(positions);
  } else if (page.shown) {
    for (const [id, value] of Object.entries(page.shown)) at(id).value = value;
  }
}

function showPositions(positions) {
  const { epsilons, deltas } = positions;
  const sameDeltas = String(page.positions?.deltas) === String(deltas);
  page.positions = positions;
  if (!sameDeltas) setOptions(at("delta"), deltas.map((delta, place) => [place, delta === null ? "none" : short(delta)]), positions.default_index);
  at("delta-field").hidden = deltas[0] === null;
  at("epsilon").max = epsilons.length - 1;
  at("epsilon").value = nearest(epsilons, page.epsilon);
  [at("epsilon-low").textContent, at("epsilon-high").textContent] = [short(epsilons[0]), short(epsilons.at(-1))];
  for (const id of ["see-area", "decide", "act"]) at(id).hidden = false;
  drawHistogram();
  at("size-numbers").replaceChildren(makeTable("Cells by size", ["people in the cell"], ["cells", "people"],
    sizeLabels().map((label, place) => [label, count(page.table.sizes.cells[place]), count(page.table.sizes.records[place])])));
  showRelease();
  showRow();
}

function nearest(list, wanted) {
  const far = (value) => Math.abs(Math.log(value / wanted));
  return list.reduce((best, value, place) => (far(value) < far(list[best]) ? place : best), 0);
}

// Another row of the same positions: measure, weights or delta.
function showRow() {
  const row = presentRow();
  if (page.limit === null) setLimit((row.chance + row.raw) / 2);
  showPosition();
  drawCurve();
  drawLimits();
  at("curve-numbers").replaceChildren(makeTable("Risk along epsilon", [], ["epsilon", "tight", "exact", "as published"],
    page.positions.epsilons.map((epsilon, place) => [short(epsilon), ...["tight", "exact", "published"].map((form) => percent(row[form][place]))])));
  findAdmissible();
}

// Follows the slider: everything here was shipped before.
function showPosition() {
  const [place, row, delta] = [presentIndex(), presentRow(), at("delta").value];
  const people = page.positions.people[delta];
  page.epsilon = page.positions.epsilons[place];
  at("epsilon-value").textContent = short(page.epsilon);
  at("sentence").textContent = page.positions.sentences[delta][place];
  setFigures(at("risk-figures"), [
    ["Risk, tight", percent(row.tight[place]), "people whose own value is shown alone", "first"],
    ["Risk, exact", percent(row.exact[place]), "one value shown alone, and somebody has it"],
    ["By chance", percent(row.chance), "where noise drowns every count"],
    ["Raw table", percent(row.raw), "published without noise"],
    ["People exposed", count(people.mean[place]), `95% of releases: ${count(people.low[place])} to ${count(people.high[place])}`],
  ]);
  at("epsilon").setAttribute("aria-valuetext", `epsilon ${short(page.epsilon)}, risk ${percent(row.tight[place])}`);
  placeOverlays();
  later("settle", 300, settle);
}

// What needs the server, once the slider rests.
function settle() {
  announce(at("sentence").textContent);
  showGlimpse();
  showRiskiest();
  showSetting();
  showCommands();
}

function presentSetting() {
  return { ...page.shown, epsilon: page.epsilon, delta: page.positions.deltas[Number(at("delta").value)],
    form: at("form").value, weights: at("weights").value, max_risk: page.limit };
}

// The keys of a very large table are read when somebody asks for them.
async function readCells(place) {
  const words = "Reading the cells";
  if (await work(place, words, () => askTable("cells", { sensitive: page.shown.sensitive }))) {
    page.keyed = page.shown.sensitive;
    showGlimpse();
    showRiskiest();
  }
}

function hasCells(place) {
  const ready = page.table.keyed || page.keyed === page.shown.sensitive;
  if (!ready) showNote(place, `The table has ${count(page.table.cells)} cells; to show some, all have to be read. `,
    make("button", { type: "button", class: "small", click: () => readCells(place) }, "Read the cells"));
  return ready;
}

async function showGlimpse() {
  if (!hasCells(at("glimpse-status"))) return;
  const asked = { ...presentSetting(), seed: page.seed, cells: isWide("glimpse") ? 12 : 6 };
  const answer = await work(at("glimpse-status"), null, () => askTable("glimpse", asked));
  if (!answer) return;
  at("glimpse-epsilon").textContent = short(page.epsilon);
  at("legend").replaceChildren(...answer.legend.map(({ scenario, text, exposes }) =>
    make("li", {}, badge(scenario), make("span", {}, text, exposes ? make("strong", {}, ": people are exposed") : null))));
  at("glimpse").tBodies[0].replaceChildren(...answer.cells.map((cell) => make("tr", {},
    make("th", { scope: "row" }, keyWords(cell.key)),
    make("td", { "data-label": "Raw counts" }, countsOf(answer.levels, cell.before)),
    make("td", { "data-label": "Released counts" }, countsOf(answer.levels, cell.after)),
    make("td", { "data-label": "What happened" }, make("span", { class: "scenario" }, badge(cell.scenario), make("span", {}, cell.scenario_text))))));
}

function countsOf(levels, counts) {
  const present = levels.map((level, place) => [level, counts[place]]).filter(([, number]) => number > 0);
  if (!present.length) return make("span", { class: "quiet" }, "nothing");
  const chip = ([level, number]) => make("span", { class: "chip" }, `${level} `, make("strong", {}, count(number)));
  return make("span", { class: "chips" }, ...present.map(chip));
}

// ---------------------------------------------------------------- step 3: decide
function setLimit(share) {
  page.limit = Math.min(Math.max(Math.round(share * 1000) / 1000, 0), 1);
  const handle = at("limit-handle");
  at("max-risk").value = (100 * page.limit).toFixed(1);
  handle.setAttribute("aria-valuenow", (100 * page.limit).toFixed(1));
  handle.setAttribute("aria-valuetext", percent(page.limit));
  handle.firstElementChild.textContent = `limit ${percent(page.limit)}`;
  placeHandle();
}

function changeLimit(share) {
  setLimit(share);
  waitForVerdict(true);
  later("limit", 120, checkLimit);
}

const checkLimit = () => { findAdmissible(); showSetting(); showCommands(); };

// What is being typed stays as it is typed.
function typeLimit(event) {
  const { value } = event.target;
  if (value === "" || !event.target.checkValidity()) return;
  changeLimit(Number(value) / 100);
  event.target.value = value;
}

// What was said of another limit or curve is pale, and cannot be used.
function waitForVerdict(waiting) {
  at("use-epsilon").disabled = waiting;
  at("verdict").setAttribute("aria-busy", waiting);
}

async function findAdmissible() {
  waitForVerdict(true);
  const answer = await work(at("limit-status"), null, () => askTable("admissible", presentSetting()));
  if (!answer) return;
  waitForVerdict(false);
  page.admissible = answer;
  drawLimits();
  const { epsilon, intervals, sentence } = answer;
  const ranges = intervals.map(([low, high]) => `${shortInward(low, Math.ceil)} to ${shortInward(high, Math.floor)}`).join("; ");
  at("verdict").className = `verdict ${epsilon === null ? "bad" : "good"}`;
  const verdict = epsilon === null ? "No epsilon keeps this limit." : `Admissible: epsilon ${ranges}`;
  at("verdict").replaceChildren(make("p", { class: "answer" }, verdict), make("p", {}, sentence));
  const place = admissiblePlace();
  at("use-epsilon").hidden = place < 0;
  if (place >= 0) at("use-epsilon").textContent = `Use epsilon ${short(page.positions.epsilons[place])}`;
}

// The largest slider position within the admissible set, or -1.
function admissiblePlace() {
  const isAdmissible = (epsilon) => page.admissible.intervals.some(([low, high]) => epsilon >= low && epsilon <= high);
  return page.positions.epsilons.findLastIndex(isAdmissible);
}

function useAdmissible() {
  at("epsilon").value = admissiblePlace();
  showPosition();
  showNote(at("limit-status"), `Epsilon is ${short(page.epsilon)} now, here and in every step.`);
}

function dragLimit(event) {
  if (!at("limit-handle").hasPointerCapture(event.pointerId)) return;
  const { yaxis } = axesOf("limits");
  changeLimit(yaxis.p2d(event.clientY - at("limits").getBoundingClientRect().top - yaxis._offset));
}

const KEY_STEPS = { ArrowUp: 0.001, ArrowRight: 0.001, ArrowDown: -0.001, ArrowLeft: -0.001, PageUp: 0.01, PageDown: -0.01, Home: -1, End: 1 };

function moveLimitByKey(event) {
  if (!(event.key in KEY_STEPS)) return;
  changeLimit(page.limit + KEY_STEPS[event.key]);
  event.preventDefault();
}

async function loadMap() {
  const limit = at("max-tvd").value;
  page.map = await work(at("map-status"), "Simulating releases along epsilon",
    () => askTable("map", { ...presentSetting(), max_tvd: limit === "" ? null : Number(limit) }));
  at("map-area").hidden = !page.map;
  if (!page.map) return;
  at("map-sentence").textContent = page.map.sentence;
  at("map-table").hidden = !mapMarks().length;
  at("map-table").replaceChildren(makeTable("Points of the map", ["setting"], ["epsilon", "risk", "distortion"],
    mapMarks().map(([name, mark]) => [name, short(mark.epsilon), percent(mark.risk), mark.tvd === null ? "–" : mark.tvd.toFixed(3)])));
  drawMap();
  announce(page.map.sentence);
}

async function showRiskiest() {
  if (!hasCells(at("riskiest-status"))) return;
  const answer = await work(at("riskiest-status"), null, () => askTable("riskiest", { ...presentSetting(), top: Number(at("top").value) }));
  if (!answer) return;
  page.riskiest = answer;
  at("riskiest-epsilon").textContent = short(page.epsilon);
  showSorted();
}

const RISKIEST = [["people", "records", count], ["values", "levels", count], ["risk", "risk", percent],
  ["expected exposed", "people", (people) => people.toFixed(1)]];

function showSorted() {
  const { columns, rows } = page.riskiest;
  const { column, descending } = page.order;
  const valueOf = (row) => (columns.includes(column) ? row.key[column] : row[column]);
  const compare = (one, other) => (typeof one === "number" ? one - other : one.localeCompare(other, "en", { numeric: true }));
  const sorted = [...rows].sort((one, other) => (descending ? -1 : 1) * compare(valueOf(one), valueOf(other)));
  const table = makeTable("The riskiest cells", columns, RISKIEST.map(([title]) => title),
    sorted.map((row) => [...columns.map((name) => row.key[name]), ...RISKIEST.map(([, name, words]) => words(row[name]))]));
  const names = [...columns, ...RISKIEST.map(([, name]) => name)];
  names.forEach((name, place) => makeSortable(table.tHead.rows[0].cells[place], name, place >= columns.length));
  at("riskiest").replaceChildren(table);
}

function makeSortable(head, name, isNumber) {
  const { column, descending } = page.order;
  const sort = () => {
    page.order = { column: name, descending: name === column ? !descending : isNumber };
    showSorted();
    [...at("riskiest").querySelectorAll(".sort")].find((button) => button.dataset.column === name).focus();
  };
  head.setAttribute("aria-sort", name !== column ? "none" : descending ? "descending" : "ascending");
  head.replaceChildren(make("button", { type: "button", class: "sort", "data-column": name, click: sort }, head.textContent));
}

function showCompareFields() {
  const { quasi_identifiers: keys, bins } = page.table.chosen;
  setOptions(at("b-mechanism"), named("mechanisms"), at("mechanism").value);
  at("b-epsilon").value = page.epsilon;
  at("b-keys").replaceChildren(...keys.map((name, place) => make("div", { class: "check" },
    make("input", { type: "checkbox", id: `b-key-${place}`, checked: true, "data-key": name }), make("label", { for: `b-key-${place}` }, name))));
  at("b-bins").replaceChildren(...Object.entries(bins).map(([name, value], place) => make("div", { class: "field short" },
    make("label", { for: `b-bins-${place}` }, `Bins of ${name}`), make("input", { id: `b-bins-${place}`, value, "data-bins": name }))));
}

function otherSetting() {
  const mechanism = at("b-mechanism").value;
  const needsDelta = page.server.mechanisms.find((each) => each.name === mechanism).delta;
  const keys = [...at("b-keys").querySelectorAll(":checked")].map((box) => box.dataset.key);
  const bins = [...at("b-bins").querySelectorAll("input")].map((input) => [input.dataset.bins, input.value.trim()]);
  return { mechanism, epsilon: Number(at("b-epsilon").value), delta: needsDelta ? presentSetting().delta ?? page.table.default_delta : null,
    quasi_identifiers: keys, bins: Object.fromEntries(bins.filter(([name, edges]) => edges && keys.includes(name))) };
}

async function compareSettings() {
  const { sensitive, measure, form, weights, neighbours, mechanism, epsilon, delta } = presentSetting();
  page.compared = await work(at("compare-status"), "Comparing",
    () => askTable("compare", { a: { mechanism, epsilon, delta }, b: otherSetting(), sensitive, measure, form, weights, neighbours }));
  at("compare-area").hidden = !page.compared;
  if (!page.compared) return;
  const { a, b, sentence } = page.compared;
  const rows = [["cells", (side) => count(side.cells)], ["epsilon", (side) => short(side.at.epsilon)], ["risk", (side) => percent(side.at.risk)],
    ["people exposed", (side) => count(side.at.people)]];
  at("compare-sentence").textContent = sentence;
  at("compare-labels").replaceChildren(make("li", {}, `A: ${a.label}`), make("li", {}, `B: ${b.label}`));
  at("compare-table").replaceChildren(makeTable("Both settings", [""], ["A", "B"], rows.map(([words, valueOf]) => [words, valueOf(a), valueOf(b)])));
  drawComparison();
  announce(sentence);
}

// ---------------------------------------------------------------- step 4: act
function settingWords() {
  const { mechanism, delta, epsilon } = presentSetting();
  return `${titleOf("mechanisms", mechanism)}, epsilon ${short(epsilon)}${delta === null ? "" : `, delta ${short(delta)}`}`;
}

function showSetting() {
  const risk = presentRow()[at("form").value][presentIndex()];
  const kept = risk <= page.limit;
  const averaged = titleOf("weights", at("weights").value).toLowerCase();
  const words = `Risk ${percent(risk)} (measure ${page.shown.measure}, ${at("form").value}, averaged ${averaged})`;
  at("compare-now").textContent = settingWords();
  at("setting").className = `verdict ${kept ? "good" : "bad"}`;
  at("setting").replaceChildren(make("p", { class: "answer" }, `To sign off: ${settingWords()}`), make("p", {},
    `${words}, limit ${percent(page.limit)}: ${kept ? "within the limit." : "above the limit. Go back to step 3, or change the limit."}`));
}

async function showCommands() {
  const answer = await work(at("commands-status"), null, () => askTable("commands", presentSetting()));
  if (answer) [at("shell").textContent, at("python").textContent] = [answer.shell, answer.python];
}

async function copyCode(event) {
  const [button, code] = [event.currentTarget, at(event.currentTarget.dataset.copy)];
  await navigator.clipboard?.writeText(code.textContent).catch(() => getSelection().selectAllChildren(code));
  button.textContent = "Copied";
  announce("Copied.");
  setTimeout(() => { button.textContent = "Copy"; }, 2000);
}

async function download(kind, place, words, more = {}) {
  const file = await work(place, words, () => askTable("downloads", { kind, ...presentSetting(), ...more }));
  if (!file) return false;
  const link = make("a", { href: file.url, download: file.name }, file.name);
  showNote(place, "Saved: ", link, ` (${size(file.bytes)})`);
  announce(`Saved: ${file.name}`);
  link.click();
  return true;
}

function downloadReport() {
  const more = { title: at("report-title").value.trim() || null, organisation: at("organisation").value.trim() || null };
  download("report", at("download-status"), "Writing the report", more);
}

function showRelease() {
  const able = page.server.mechanisms.filter((each) => each.release);
  const fits = able.some((each) => each.name === page.shown.mechanism);
  const switchTo = (name) => { at("mechanism").value = name; loadPositions(); };
  at("release-fields").hidden = !fits;
  at("release-note").textContent = fits ? "The table itself, with noise on its counts, and a description beside it."
    : `A released table holds whole numbers, and ${titleOf("mechanisms", page.shown.mechanism)} noise does not. Switch the page to:`;
  const buttons = able.map(({ name, title }) => make("button", { type: "button", click: () => switchTo(name) }, title));
  at("release-switch").replaceChildren(...(fits ? [] : buttons));
}

function askForRelease(event) {
  event.preventDefault();
  const [purpose, cohort] = [at("purpose").value.trim(), at("cohort").value.trim()];
  if (page.server.ledger && !(purpose && cohort)) {
    showError(at("release-status"), new Error("The ledger needs a purpose and a cohort."));
    at(purpose ? "cohort" : "purpose").focus();
    return;
  }
  at("release-status").replaceChildren();
  at("confirm-text").replaceChildren(
    make("p", {}, `This publishes counts of ${count(page.table.records)} people from ${page.table.name} (${settingWords()}).`),
    make("p", {}, make("strong", {}, `It costs these people epsilon ${short(page.epsilon)}, for good.`),
      " It cannot be taken back, and every further release about them adds to it."),
    make("p", {}, page.server.ledger ? `The ledger will say so under the cohort ${cohort}.` : "No ledger is open: nobody will add this up for you."));
  at("confirm").returnValue = "";
  at("confirm").showModal();
}

async function release() {
  if (at("confirm").returnValue !== "yes") return;
  const more = { purpose: at("purpose").value.trim() || null, cohort: at("cohort").value.trim() || null, new_cohort: at("new-cohort").checked,
    observed_levels: at("observed-levels").checked, observed_cells_only: at("observed-cells").checked };
  if (await download("release", at("release-status"), "Making the release", more)) showLedger();
}

// ---------------------------------------------------------------- step 5: ledger
async function showLedger() {
  if (!page.server.ledger) return showNote(at("ledger-status"), "No ledger was named at the start. To keep one: cellrisk serve --ledger FILE");
  const answer = await work(at("ledger-status"), null, () => ask("GET", "/api/ledger"));
  if (!answer) return;
  const verified = answer.verified ? "The chain of entries is unbroken." : "The chain of entries is broken: the ledger was changed by hand.";
  const rows = answer.entries.map((entry) => [entry.when, entry.cohort, entry.purpose, entry.mechanism,
    short(entry.epsilon), entry.delta ? short(entry.delta) : "–"]);
  const table = makeTable("Entries of the ledger", ["when", "cohort", "purpose", "mechanism"], ["epsilon", "delta"], rows);
  const scroll = make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Entries of the ledger" }, table);
  at("ledger-area").replaceChildren(make("p", { class: "sentence" }, answer.sentence),
    make("p", { class: answer.verified ? "note" : "error" }, verified), ...answer.cohorts.map(makeCohort), rows.length ? scroll : "");
}

function makeCohort({ name, epsilon, delta, limit }) {
  const spent = `${name}: epsilon ${short(epsilon)}${delta ? ` at delta ${short(delta)}` : ""} spent${limit === null ? "" : ` of ${short(limit)}`}`;
  const meter = limit === null ? null : make("meter", { min: 0, max: limit, high: 0.8 * limit, value: epsilon, "aria-label": spent });
  return make("div", { class: "cohort" }, make("p", {}, spent), meter);
}

// ---------------------------------------------------------------- start
function watchDrops() {
  const zone = at("drop");
  for (const name of ["dragenter", "dragover"]) zone.addEventListener(name, () => zone.classList.add("over"));
  for (const name of ["dragleave", "drop"]) zone.addEventListener(name, () => zone.classList.remove("over"));
  for (const name of ["dragover", "drop"]) window.addEventListener(name, (event) => event.preventDefault());
  window.addEventListener("drop", (event) => upload(event.dataTransfer.files[0]));
}

// Steps that have nothing to show yet cannot be followed.
function markSteps() {
  for (const link of document.querySelectorAll(".steps a")) {
    const early = !page.table && !["#load", "#ledger"].includes(link.hash);
    link.ariaDisabled = early ? "true" : null;
    link.tabIndex = early ? -1 : 0;
  }
}

function watchSteps() {
  const links = new Map([...document.querySelectorAll(".steps a")].map((link) => [link.hash.slice(1), link]));
  const watcher = new IntersectionObserver((entries) => entries.filter((entry) => entry.isIntersecting).forEach((entry) => {
    for (const [id, link] of links) link.setAttribute("aria-current", id === entry.target.id ? "step" : "false");
  }), { rootMargin: "-45% 0px -50% 0px" });
  for (const id of links.keys()) watcher.observe(at(id));
  markSteps();
}

function watchControls() {
  const actions = {
    change: { theme: chooseTheme, sensitive: loadPositions, mechanism: loadPositions, measure: loadPositions, neighbours: loadPositions,
      weights: showRow, delta: showRow, form: () => { placeOverlays(); checkLimit(); }, top: showRiskiest,
      file: (event) => upload(event.target.files[0]) },
    click: { "try-adult": () => loadSource("Reading the example", () => ask("POST", "/api/sources", { example: "adult" })),
      "open-file": () => loadSource("Reading the file", () => ask("POST", "/api/sources", { path: at("folder-file").value })),
      "count-table": countTable, "draw-again": () => { page.seed += 1; showGlimpse(); }, "use-epsilon": useAdmissible,
      "draw-map": loadMap, compare: compareSettings, report: downloadReport,
      "curve-csv": () => download("curve.csv", at("download-status"), "Writing the curve"),
      "curve-svg": () => download("curve.svg", at("download-status"), "Writing the curve"), "copy-shell": copyCode, "copy-python": copyCode },
    input: { epsilon: showPosition, "max-risk": typeLimit },
    pointerdown: { "limit-handle": (event) => event.currentTarget.setPointerCapture(event.pointerId) },
    pointermove: { "limit-handle": dragLimit },
    keydown: { "limit-handle": moveLimitByKey },
    submit: { "release-form": askForRelease },
    close: { confirm: release },
  };
  for (const [name, byElement] of Object.entries(actions)) {
    for (const [id, action] of Object.entries(byElement)) at(id).addEventListener(name, action);
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawCharts);
}

const MISSING = { category: "are a value of their own", drop: "drop the row", error: "refuse the file" };

function showServer() {
  setOptions(at("missing"), page.server.missing.map((rule) => [rule, MISSING[rule] ?? rule]), "category");
  const lists = { mechanism: "mechanisms", measure: "measures", form: "forms", weights: "weights", neighbours: "neighbours" };
  for (const [id, list] of Object.entries(lists)) setOptions(at(id), named(list));
  [at("form").value, at("weights").value] = ["tight", "records"];
  at("ledger-fields").hidden = !page.server.ledger;
}

async function start() {
  at("theme").value = localStorage.getItem("cellrisk-theme") ?? "";
  watchControls();
  watchDrops();
  watchSteps();
  page.server = await work(at("load-status"), null, () => ask("GET", "/api/state"));
  if (!page.server) return;
  showServer();
  if (page.server.folder) showFiles();
  showLedger();
}

leaveOutStyleElements();
applyTheme(localStorage.getItem("cellrisk-theme") ?? "");
document.addEventListener("DOMContentLoaded", start);
