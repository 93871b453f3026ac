// The charts, and the marks that move over them.
import { at, make, makeTable } from "./elements.js";
import { LIMITS, limitOf, page, presentIndex, presentRow } from "./state.js";
import { bar, frame, labelRight, level, line, niceTicks, offerValues, shape, widthOf } from "./picture.js";

const drawn = new Map();
const frames = new Map();
export const redrawCharts = () => drawn.forEach((again) => again());
export const forgetCharts = () => drawn.clear();
const isWide = (id) => at(id).clientWidth > 560;

// The labels of axes, and of limits as they were typed, are the only numbers that the page writes itself.
const shareText = (share) => `${Number((100 * share).toPrecision(12))}%`;
const countText = (number) => number.toLocaleString("en-US");
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
  const { own, sure } = page.traced ?? {};
  return [{ kind: "exposed", ...presentRow()[at("form").value], words: ["revealed", "revealed"] },
    ...(own ? [{ kind: "caused", ...own, words: ["own record", "because of their own record"] }] : []),
    ...(sure ? [{ kind: "sure", ...sure, words: ["sure", "inferred, 95% sure"] }] : [])];
}

function drawFigures(id, again, intervals) {
  drawn.set(id, again);
  const [{ epsilons, epsilon_texts: epsilonTexts }, { raw, chance }, lines, wide] = [page.positions, presentRow(), presentLines(), isWide(id)];
  const labels = [...lines.map(({ kind, values, words }) => ({ kind, value: values.at(-1), words: words[Number(wide)] })),
    { kind: "raw", value: raw.value, words: `no noise ${raw.text}` },
    { kind: "chance", value: chance.value, words: `${wide ? "as epsilon falls to 0" : "at 0"} ${chance.text}` },
    ...(id === "limits" ? LIMITS.filter(({ line: isLine }) => isLine).map(limitOf) : []).filter((most) => most !== null)
      .map((most) => ({ kind: "limit", value: most, words: `limit ${shareText(most)}` }))];
  const made = frame(at(id), { x: epsilonAxis(epsilons, wide), y: shareAxis(lines.flatMap(({ values }) => values)),
    right: widthOf(labels.map(({ words, value }) => words + (value ? "  " : ""))) });
  if (!made) return;
  frames.set(id, made);
  for (const [low, high] of intervals) {
    const [left, right] = [low, high].map((edge) => made.x.to(Math.min(Math.max(edge, epsilons[0]), epsilons.at(-1))));
    made.svg.append(shape("rect", { class: "admissible", x: left, width: right - left, y: made.top, height: made.bottom - made.top }));
  }
  for (const { kind, value } of labels.slice(lines.length)) if (made.y.to(value) >= made.top - 2) level(made, value, kind);
  for (const { kind, values } of lines) line(made, epsilons, values, kind);
  offerValues(made, epsilons.map((epsilon, place) => [made.x.to(epsilon), [`epsilon ${epsilonTexts[place]}`,
    ...lines.map(({ words, texts }) => `${words[1]} ${texts[place]}`)]]));
  labelRight(made, labels);
  placeOverlays();
}

export const drawCurve = () => drawFigures("curve", drawCurve, []);
export const drawLimits = () => drawFigures("limits", drawLimits, page.admissible?.intervals ?? []);

export function drawHistogram() {
  drawn.set("histogram", drawHistogram);
  const { sizes } = page.table;
  const groups = sizes.map(([, number]) => number);
  at("size-numbers").replaceChildren(makeTable("Groups by size", ["people in the group"], ["groups"], sizes.map(([size, , text]) => [size, text])));
  const made = frame(at("histogram"), { x: { range: [0, groups.length], title: "people in the group", ticks: sizes.map(([size], place) => [place + 0.5, size]) },
    y: { range: [0, 1.06 * Math.max(...groups)], text: countText, title: "groups" } });
  if (!made) return;
  groups.forEach((number, place) => bar(made, place + 0.08, place + 0.92, number, "bar"));
  offerValues(made, sizes.map(([size, , text], place) => [made.x.to(place + 0.5), [`people: ${size}`, `groups: ${text}`]]));
}

export function drawMap() {
  if (!page.map) return;
  drawn.set("map", drawMap);
  const { points, marks, limit, name } = page.map;
  const [tvd, values] = ["tvd", "value"].map((name) => points.map((point) => point[name]));
  const widest = Math.max(...tvd) || 0.01;
  const labels = limit === null ? [] : [{ kind: "limit", value: limit, words: `limit ${shareText(limit)}` }];
  const ticks = niceTicks(1.05 * widest, isWide("map") ? 6 : 3);
  const made = frame(at("map"), { x: { range: [0, 1.05 * widest], title: "distortion (total variation distance)", ticks: ticks.map((tick) => [tick, String(tick)]) },
    y: { ...shareAxis(values), title: name }, right: widthOf(labels.map(({ words }) => words)) + 12 });
  if (!made) return;
  line(made, tvd, values, "exposed");
  points.forEach((point) => made.svg.append(shape("circle", { class: "point", cx: made.x.to(point.tvd), cy: made.y.to(point.value), r: 3.5 })));
  offerValues(made, points.map((point) => [made.x.to(point.tvd), point.texts]));
  for (const { value, kind } of labels) if (made.y.to(value) >= made.top) level(made, value, kind);
  labelRight(made, labels);
  const places = marks.map((mark) => ({ name: mark.role, x: made.x.to(mark.tvd), y: made.y.to(mark.value) })).sort((one, other) => one.y - other.y);
  places.forEach((place, number) => { place.label = Math.max(place.y - 10, (places[number - 1]?.label ?? -Infinity) + 16, made.top + 8); });
  places.toReversed().reduce((most, place) => { place.label = Math.min(place.label, most); return place.label - 16; }, made.bottom - 10);
  for (const { name, x, y, label } of places) {
    const atEnd = x > (made.left + made.right) / 2;
    made.svg.append(shape("circle", { class: "dot mark", cx: x, cy: y, r: 6 }),
      shape("text", { class: "label mark", x: x + (atEnd ? -11 : 11), y: label, "text-anchor": atEnd ? "end" : "start" }, name));
  }
}

// The marks that move are elements over the charts, so that moving them draws nothing anew.
export function placeOverlays() {
  if (!page.positions) return;
  for (const id of ["curve", "limits"]) placeMarker(id);
  placeSlider();
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
  lines.forEach(({ kind, values }, place) => {
    marker.children[place].className = kind;
    marker.children[place].style.transform = `translateY(${made.y.to(values[presentIndex()]) - made.top}px)`;
  });
}

// The slider's thumb stands under the marker: its track is as wide as the axis, and half a thumb more at each end.
const THUMB = 20;

function placeSlider() {
  const made = frames.get("curve");
  if (!made?.place.clientWidth) return;
  at("slider").style.marginLeft = `${made.left - THUMB / 2}px`;
  at("slider").style.width = `${made.right - made.left + THUMB}px`;
}
