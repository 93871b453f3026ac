// The charts, and the marks that move over them.
import { at, make, makeTable } from "./elements.js";
import { count, givenPercent, ofCells, ofPeople, percent, short, writePeople } from "./numbers.js";
import { LIMITS, limitOf, page, presentFigures, presentRow } from "./state.js";
import { bar, dot, frame, labelRight, level, line, niceTicks, shape, widthOf } from "./picture.js";
import { offerValues } from "./readout.js";

const drawn = new Map();
const frames = new Map();
export const redrawCharts = () => drawn.forEach((again) => again());
export const forgetCharts = () => drawn.clear();
export const isWide = (id) => at(id).clientWidth > 560;
export const mapMarks = () => ["stricter", "recommended", "looser"].map((name) => [name, page.map[name]]).filter(([, mark]) => mark);
export const frameOf = (id) => frames.get(id);

const shareText = (share) => `${Number((100 * share).toPrecision(6))}%`;
const shareAxis = (values) => ({ range: [0, 1.06 * Math.max(...values) || 0.01], text: shareText });

function epsilonAxis(epsilons, wide) {
  const [low, high] = [epsilons[0], epsilons.at(-1)];
  const ticks = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1) {
    for (const step of !wide ? [1] : high / low > 2000 ? [1, 3] : [1, 2, 5]) ticks.push(Number((step * 10 ** power).toPrecision(1)));
  }
  const shown = ticks.filter((tick) => tick >= 0.999 * low && tick <= 1.001 * high);
  return { log: true, range: [low, high], title: "epsilon (log scale)", ticks: shown.map((tick) => [tick, String(tick)]) };
}

// The three lines that steps 2 and 3 show, those that are known by now.
function presentLines() {
  const { epsilons } = page.positions;
  const lines = [{ kind: "exposed", epsilons, values: presentRow()[at("form").value], words: ["exposed", "exposed"] },
    { kind: "caused", epsilons, values: presentFigures().caused, words: ["own record", "because of their own record"] }];
  if (page.certainty?.sure.length) lines.push({ kind: "sure", epsilons: page.certainty.epsilons, values: page.certainty.sure,
    words: ["sure", `named with ${100 * page.certainty.certainty}% certainty`] });
  return lines;
}

function drawFigures(id, again, intervals) {
  drawn.set(id, again);
  const [{ epsilons }, row, lines, wide] = [page.positions, presentRow(), presentLines(), isWide(id)];
  const labels = [...lines.map(({ kind, values, words }) => ({ kind, value: values.at(-1), words: words[Number(wide)] })),
    { kind: "raw", value: row.raw, words: `raw ${wide ? "table, no noise " : ""}${percent(row.raw)}` },
    { kind: "chance", value: row.chance, words: `${wide ? "as epsilon falls to 0" : "at 0"} ${percent(row.chance)}` }];
  const made = frame(at(id), { x: epsilonAxis(epsilons, wide), y: shareAxis(lines.flatMap(({ values }) => values)),
    right: widthOf(labels.map(({ words, value }) => words + (value ? "  " : ""))) });
  if (!made) return;
  frames.set(id, made);
  for (const [low, high] of intervals) {
    const [left, right] = [low, high].map((edge) => made.x.to(Math.min(Math.max(edge, epsilons[0]), epsilons.at(-1))));
    made.svg.append(shape("rect", { class: "admissible", x: left, width: right - left, y: made.top, height: made.bottom - made.top }));
  }
  for (const { kind, value } of labels.slice(-2)) if (made.y.to(value) >= made.top - 2) level(made, value, kind);
  for (const { kind, epsilons: along, values } of lines) line(made, along, values, kind);
  offerValues(made, epsilons.map((epsilon) => [made.x.to(epsilon), [`epsilon ${short(epsilon)}`,
    ...lines.map(({ words, epsilons: along, values }) => `${words[1]} ${percent(between(along, values, epsilon))}`)]]));
  labelRight(made, labels);
  if (document.body.classList.contains("printing")) printMarks(made, id === "limits");
  placeOverlays();
}

// What moves on the screen is a part of the picture on paper.
function printMarks(made, withLimits) {
  const x = made.x.to(page.epsilon);
  made.svg.append(shape("line", { class: "axis", x1: x, x2: x, y1: made.top, y2: made.bottom }));
  for (const most of withLimits ? LIMITS.filter((each) => each.line).map(limitOf) : []) {
    if (most !== null && made.y.to(most) >= made.top) level(made, most, "limit");
  }
}

export const drawCurve = () => drawFigures("curve", drawCurve, []);
export const drawLimits = () => drawFigures("limits", drawLimits, page.admissible?.intervals ?? []);

export function drawHistogram() {
  drawn.set("histogram", drawHistogram);
  const { edges, cells, records } = page.table.sizes;
  const labels = edges.slice(0, -1).map((low, place) => (edges[place + 1] - low === 1 ? count(low) : `${count(low)}–${count(edges[place + 1] - 1)}`));
  at("size-numbers").replaceChildren(makeTable("Cells by size", ["people in the cell"], ["cells", "people"],
    labels.map((label, place) => [label, count(cells[place]), count(records[place])])));
  const made = frame(at("histogram"), { x: { range: [0, cells.length], title: "people in the cell", ticks: labels.map((words, place) => [place + 0.5, words]) },
    y: { range: [0, 1.06 * Math.max(...cells)], text: count, title: "cells" } });
  if (!made) return;
  cells.forEach((number, place) => bar(made, place + 0.08, place + 0.92, number, "bar"));
  offerValues(made, cells.map((number, place) => [made.x.to(place + 0.5), [`${labels[place]} people`, ofCells(number)]]));
}

export function drawMap() {
  if (!page.map) return;
  drawn.set("map", drawMap);
  const { points } = page.map;
  const [tvd, risk] = ["tvd", "risk"].map((name) => points.map((point) => point[name]));
  const [widest, limit] = [Math.max(...tvd) || 0.01, limitOf(LIMITS.find(({ name }) => name === "max_risk"))];
  const marks = mapMarks().filter(([, mark]) => mark.tvd !== null);
  const labels = limit === null ? [] : [{ kind: "limit", value: limit, words: `limit ${givenPercent(limit)}` }];
  const ticks = niceTicks(1.05 * widest, isWide("map") ? 6 : 3);
  const made = frame(at("map"), { x: { range: [0, 1.05 * widest], title: "distortion (total variation distance)", ticks: ticks.map((tick) => [tick, String(tick)]) },
    y: { ...shareAxis(risk), title: "exposed" }, right: widthOf(labels.map(({ words }) => words)) + 12 });
  if (!made) return;
  line(made, tvd, risk, "exposed");
  points.forEach((point) => made.svg.append(shape("circle", { class: "point", cx: made.x.to(point.tvd), cy: made.y.to(point.risk), r: 3.5 })));
  offerValues(made, points.map((point) => [made.x.to(point.tvd), [`epsilon ${short(point.epsilon)}`, `exposed ${percent(point.risk)}`,
    `distortion ${point.tvd.toFixed(3)}`]]));
  for (const { value, kind } of labels) if (made.y.to(value) >= made.top) level(made, value, kind);
  labelRight(made, labels);
  const places = marks.map(([name, mark]) => ({ name, x: made.x.to(mark.tvd), y: made.y.to(mark.risk) })).sort((one, other) => one.y - other.y);
  let free = -Infinity;
  for (const { name, x, y } of places) {
    free = Math.max(y - 10, free + 16, made.top + 8);
    const atEnd = x > (made.left + made.right) / 2;
    made.svg.append(shape("circle", { class: "dot mark", cx: x, cy: y, r: 6 }),
      shape("text", { class: "label mark", x: x + (atEnd ? -11 : 11), y: free, "text-anchor": atEnd ? "end" : "start" }, name));
  }
}

export function drawComparison() {
  if (!page.compared) return;
  drawn.set("compare-chart", drawComparison);
  const sides = [["A", page.compared.a], ["B", page.compared.b]];
  const epsilons = sides.flatMap(([, side]) => side.epsilons).sort((one, other) => one - other);
  const made = frame(at("compare-chart"), { x: epsilonAxis(epsilons, isWide("compare-chart")),
    y: { ...shareAxis(sides.flatMap(([, side]) => side.risk)), title: "exposed" }, right: 40 });
  if (!made) return;
  for (const [name, side] of sides) {
    line(made, side.epsilons, side.risk, `side-${name}`);
    dot(made, side.at.epsilon, side.at.risk, `side-${name}`);
  }
  offerValues(made, page.compared.a.epsilons.map((epsilon) => [made.x.to(epsilon), [`epsilon ${short(epsilon)}`,
    ...sides.map(([name, side]) => `${name} ${percent(between(side.epsilons, side.risk, epsilon))}`)]]));
  labelRight(made, sides.map(([name, side]) => ({ kind: `side-${name}`, value: side.risk.at(-1), words: name })));
}

// What noise gives away along epsilon, and the perturbation as a level line; the dot is the largest epsilon with no more risk.
export function drawEqual() {
  if (!page.perturbed?.equal.length) return;
  drawn.set("equal", drawEqual);
  const { name, equal: [{ epsilons, people, figure, epsilon, mechanism }] } = page.perturbed;
  const wide = isWide("equal");
  const told = figure < 0 ? count(figure) : writePeople(figure);
  const labels = [{ kind: "side-A", value: people.at(-1), words: wide ? `${mechanism} noise` : "noise" },
    { kind: "side-B", value: figure, words: wide ? `${name.length < 22 ? name : "perturbation"} ${told}` : told }];
  const made = frame(at("equal"), { x: epsilonAxis(epsilons, wide), y: { range: [0, 1.1 * Math.max(...people, figure, 1)], text: writePeople, title: "people" },
    right: widthOf(labels.map(({ words }) => words)) });
  if (!made) return;
  line(made, epsilons, people, "side-A");
  if (figure >= 0) level(made, figure, "side-B");
  if (epsilon !== null) {
    const [x, words] = [made.x.to(epsilon), `epsilon ${short(epsilon)}`];
    const fits = x - made.left > widthOf([words]);
    const value = between(epsilons, people, epsilon);
    dot(made, epsilon, value, "side-B");
    made.svg.append(shape("text", { class: "label side-B", x: x + (fits ? -9 : 12), y: Math.max(made.y.to(value) - 9, made.top + 8), "text-anchor": fits ? "end" : "start" }, words));
  }
  offerValues(made, epsilons.map((each, place) => [made.x.to(each), [`epsilon ${short(each)}`, `${mechanism} noise ${ofPeople(people[place])}`, `${name} ${ofPeople(figure)}`]]));
  labelRight(made, labels);
}

// The marks that move are elements over the charts, so that moving them draws nothing anew.
export function placeOverlays() {
  if (!page.positions) return;
  for (const id of ["curve", "limits"]) placeMarker(id);
  placeSlider();
  placeHandles();
}

function placeMarker(id) {
  const made = frames.get(id);
  if (!made?.place.clientWidth) return;
  const marker = made.place.querySelector(".marker") ?? made.place.appendChild(make("div", { class: "marker", "aria-hidden": "true" }));
  const lines = presentLines();
  while (marker.childElementCount < lines.length) marker.append(make("i"));
  while (marker.childElementCount > lines.length) marker.lastElementChild.remove();
  marker.style.transform = `translate(${made.x.to(page.epsilon)}px, ${made.top}px)`;
  marker.style.height = `${made.bottom - made.top}px`;
  lines.forEach(({ kind, epsilons, values }, place) => {
    marker.children[place].className = kind;
    marker.children[place].style.transform = `translateY(${made.y.to(between(epsilons, values, page.epsilon)) - made.top}px)`;
  });
}

// The height of a line at an epsilon: lines are straight from point to point, along the logarithm.
function between(epsilons, values, wanted) {
  const place = epsilons.findIndex((epsilon) => epsilon >= wanted);
  if (place <= 0) return values.at(place);
  const part = Math.log(wanted / epsilons[place - 1]) / Math.log(epsilons[place] / epsilons[place - 1]);
  return values[place - 1] + part * (values[place] - values[place - 1]);
}

// The slider's thumb stands under the marker: its track is as wide as the axis, and half a thumb more at each end.
const THUMB = 20;

function placeSlider() {
  const made = frames.get("curve");
  if (!made?.place.clientWidth) return;
  at("slider").style.marginLeft = `${made.left - THUMB / 2}px`;
  at("slider").style.width = `${made.right - made.left + THUMB}px`;
}

// The handles of those limits that are a share of people: lines that can be dragged.
export function placeHandles() {
  const made = frames.get("limits");
  if (!made?.place.clientWidth) return;
  const taken = [];
  for (const limit of LIMITS.filter((each) => each.line)) {
    const [handle, most] = [at(`${limit.id}-handle`), limitOf(limit)];
    handle.hidden = most === null;
    if (most === null) continue;
    const height = Math.min(Math.max(made.y.to(most), made.top), made.bottom);
    handle.setAttribute("aria-valuenow", (100 * most).toFixed(1));
    handle.setAttribute("aria-valuetext", givenPercent(most));
    handle.firstElementChild.textContent = `${made.y.to(most) < made.top - 1 ? "↑ " : ""}limit ${givenPercent(most)}`;
    [handle.style.left, handle.style.width] = [`${made.left}px`, `${made.right - made.left}px`];
    handle.style.transform = `translateY(${height}px)`;
    handle.firstElementChild.style.left = `${8 + 110 * taken.filter((other) => Math.abs(other - height) < 26).length}px`;
    taken.push(height);
  }
}
