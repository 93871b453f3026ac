// The charts, and the marks that move over them.
import { at } from "./elements.js";
import { count, percent, short } from "./numbers.js";
import { page, presentIndex, presentRow } from "./state.js";

const drawn = new Map();
export const redrawCharts = () => drawn.forEach((again) => again());
export const forgetCharts = () => drawn.clear();
export const isWide = (id) => at(id).clientWidth > 560;
export const mapMarks = () => ["stricter", "recommended", "looser"].map((name) => [name, page.map[name]]).filter(([, mark]) => mark);
const riskAxis = (largest) => ({ range: [0, 1.14 * largest || 0.01], tickformat: ".3~p", title: "risk" });
const levelLine = (y, color, dash) => ({ type: "line", xref: "paper", x0: 0, x1: 1, y0: y, y1: y, line: { color, width: 1.5, dash } });
export const axesOf = (id) => at(id).querySelector(".plot")._fullLayout;

function colour(name) {
  const probe = at("announcer");
  probe.style.color = `var(--${name})`;
  const found = getComputedStyle(probe).color;
  probe.style.color = "";
  return found;
}

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

export const drawCurve = () => drawRisk("curve", drawCurve, []);
export const drawLimits = () => drawRisk("limits", drawLimits, page.admissible?.intervals ?? []);

export function drawHistogram() {
  draw("histogram", drawHistogram, [{ type: "bar", x: sizeLabels(), y: page.table.sizes.cells, marker: { color: colour("accent") },
    hovertemplate: "%{y:,} cells of size %{x}<extra></extra>" }], { bargap: 0.15, yaxis: { title: "cells", tickformat: "," },
    xaxis: { type: "category", title: "people in the cell", tickfont: { size: 11 } } });
}

export function sizeLabels() {
  const { edges } = page.table.sizes;
  return edges.slice(0, -1).map((low, place) => (edges[place + 1] - low === 1 ? count(low) : `${count(low)}–${count(edges[place + 1] - 1)}`));
}

export function drawMap() {
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

export function drawComparison() {
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
export function placeOverlays() {
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

export function placeHandle() {
  const axes = axesOf("limits");
  if (!axes?.yaxis || page.limit === null) return;
  const { style } = at("limit-handle");
  const height = Math.min(Math.max(axes.yaxis.d2p(page.limit), 0), axes.yaxis._length);
  at("limit-handle").hidden = false;
  [style.left, style.width] = [`${axes.xaxis._offset}px`, `${axes.xaxis._length}px`];
  style.transform = `translateY(${axes.yaxis._offset + height}px)`;
}
