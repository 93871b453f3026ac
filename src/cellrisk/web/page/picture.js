// Pictures in SVG: a frame with two axes, lines, bars and labels that keep out of each other's way. Colours are classes of
// the style sheet, so that another theme needs no new drawing.
import { announce, make } from "./elements.js";

const SVG = "http://www.w3.org/2000/svg";
const LETTER = 6.6; // the width of a letter at the size of labels, for what has to be known before it is drawn
const LINE = 16; // the height of a line of text

export function shape(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) if (value !== null) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

const scaled = (axis, low, high) => {
  const of = axis.log ? Math.log10 : (value) => value;
  const [from, to] = axis.range.map(of);
  return { to: (value) => low + ((of(value) - from) / (to - from)) * (high - low) };
};

// Words in lines that fit into so many pixels.
function fold(words, width) {
  const lines = [];
  for (const word of words.split(" ").filter(Boolean)) {
    const longer = `${lines.at(-1) ?? ""} ${word}`.trim();
    if (lines.length && LETTER * longer.length <= width) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
}

// An empty picture that fills a place: margins, axes and grid. Gives null where the place is not on the screen.
export function frame(place, { x, y, right = 16 }) {
  const [width, height] = [place.clientWidth, place.clientHeight];
  place.querySelector("svg")?.remove();
  if (!width || !height) return null;
  const yTicks = y.ticks ?? niceTicks(y.range[1], Math.max(3, Math.floor(height / 70)));
  const [top, bottom] = [14, height - 44];
  const titles = fold(y.title ?? "", bottom - top);
  const left = 12 + Math.max(...yTicks.map((tick) => LETTER * y.text(tick).length)) + 18 * titles.length;
  const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, width: "100%", height: "100%", "aria-hidden": "true" });
  const made = { place, svg, left, top, bottom, right: width - right, width, height,
    x: scaled(x, left, width - right), y: scaled(y, bottom, top) };
  for (const tick of yTicks) {
    const at = made.y.to(tick);
    svg.append(shape("line", { class: "grid", x1: left, x2: made.right, y1: at, y2: at }),
      shape("text", { class: "tick", x: left - 6, y: at + 4, "text-anchor": "end" }, y.text(tick)));
  }
  for (const [tick] of x.ticks) svg.append(shape("line", { class: "axis", x1: made.x.to(tick), x2: made.x.to(tick), y1: bottom, y2: bottom + 5 }));
  for (const { at, words } of thinOut(x.ticks.map(([tick, words]) => ({ at: made.x.to(tick), half: (LETTER * words.length) / 2, words })), width)) {
    svg.append(shape("text", { class: "tick x", x: at, y: bottom + 19, "text-anchor": "middle" }, words));
  }
  svg.append(shape("line", { class: "axis", x1: left, x2: made.right, y1: bottom, y2: bottom }),
    shape("text", { class: "title", x: (left + made.right) / 2, y: height - 4, "text-anchor": "middle" }, x.title));
  titles.forEach((words, line) => svg.append(shape("text", { class: "title", transform: `translate(${11 + LINE * line} ${(top + bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, words)));
  place.prepend(svg);
  return made;
}

// Every label, or every second, third and so on: as many as fit beside each other, at even steps.
function thinOut(labels, width) {
  const inside = labels.filter(({ at, half }) => at + half <= width);
  const fit = (chosen) => chosen.every(({ at, half }, place) => place === 0 || at - half >= chosen[place - 1].at + chosen[place - 1].half + 6);
  const every = (step) => inside.filter((_, place) => place % step === 0);
  let step = 1;
  while (step < inside.length && !fit(every(step))) step += 1;
  return every(step);
}

export function niceTicks(high, most) {
  const rough = high / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((each) => each * power).find((each) => each >= rough);
  return Array.from({ length: Math.floor(high / step + 1e-9) + 1 }, (_, place) => Number((place * step).toPrecision(12)));
}

export function line(made, xs, ys, kind) {
  const points = xs.map((x, place) => `${made.x.to(x).toFixed(1)},${made.y.to(ys[place]).toFixed(1)}`);
  made.svg.append(shape("polyline", { class: `line ${kind}`, points: points.join(" ") }));
}

export function bar(made, from, to, y, kind) {
  const [left, right, top] = [made.x.to(from), made.x.to(to), made.y.to(y)];
  made.svg.append(shape("rect", { class: kind, x: left, width: Math.max(right - left, 0), y: top, height: made.bottom - top }));
}

export function level(made, y, kind) {
  made.svg.append(shape("line", { class: `level ${kind}`, x1: made.left, x2: made.right, y1: made.y.to(y), y2: made.y.to(y) }));
}

// Labels to the right of the picture, each as near as it can be to its height: none lies over another. What is off the scale
// is named at the edge, with an arrow.
export function labelRight(made, labels) {
  const [top, bottom] = [made.top - 2, made.bottom];
  const placed = labels.map((label) => ({ ...label, wanted: Math.min(Math.max(made.y.to(label.value), top), bottom), off: made.y.to(label.value) < top - 1 }))
    .sort((one, other) => one.wanted - other.wanted || other.value - one.value);
  placed.forEach((label, place) => { label.at = Math.max(label.wanted, place ? placed[place - 1].at + LINE : top); });
  const over = Math.max(0, (placed.at(-1)?.at ?? 0) - bottom);
  for (let place = placed.length - 1, most = bottom; over && place >= 0; place -= 1, most -= LINE) placed[place].at = Math.min(placed[place].at, most);
  for (const label of placed) {
    if (Math.abs(label.at - label.wanted) > 3 || label.leader) {
      made.svg.append(shape("path", { class: `leader ${label.kind}`, d: `M${made.right + 1},${label.wanted}L${made.right + 8},${label.at}` }));
    }
    made.svg.append(shape("text", { class: `label ${label.kind}`, x: made.right + 10, y: label.at + 4 }, `${label.off ? "↑ " : ""}${label.words}`));
  }
}

// How wide labels are in the font that the browser has chosen, and the gap before them.
export function widthOf(words) {
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = `600 12.5px ${getComputedStyle(document.body).fontFamily}`;
  return Math.max(0, ...words.map((each) => pen.measureText(each).width)) + 14;
}

// The values of a chart under the pointer; with the keyboard, arrows go from one to the next once the chart has the focus.
const offered = new WeakMap();

// Each point is its pixel from the left, and what is said there, a line each.
export function offerValues({ place, top, bottom, width }, points) {
  const isNew = !offered.has(place);
  const sorted = [...points].sort(([one], [other]) => one - other);
  offered.set(place, { points: sorted, top, bottom, width, now: null });
  hide(place);
  if (!isNew) return;
  const act = (name, action) => place.addEventListener(name, action);
  act("pointermove", (event) => { if (event.buttons === 0 && event.pointerType !== "touch") show(place, nearest(place, event.clientX)); else hide(place); });
  act("pointerleave", () => hide(place));
  act("blur", () => hide(place));
  act("keydown", (event) => moveByKey(event, place));
}

function nearest(place, clientX) {
  const { points } = offered.get(place);
  const x = clientX - place.getBoundingClientRect().left;
  return points.reduce((best, [at], number) => (Math.abs(at - x) < Math.abs(points[best][0] - x) ? number : best), 0);
}

const STEPS = { ArrowRight: 1, ArrowLeft: -1, PageUp: 10, PageDown: -10, Home: -Infinity, End: Infinity };

function moveByKey(event, place) {
  if (event.key === "Escape") hide(place);
  if (event.target !== place || !(event.key in STEPS)) return;
  const known = offered.get(place);
  const from = known.now ?? Math.floor(known.points.length / 2);
  show(place, Math.min(Math.max(from + STEPS[event.key], 0), known.points.length - 1));
  announce(known.points[known.now][1].join(", "));
  event.preventDefault();
}

function show(place, number) {
  const known = offered.get(place);
  const [x, lines] = known.points[number];
  const box = place.querySelector(".readout") ?? place.appendChild(make("div", { class: "readout", "aria-hidden": "true" }, make("i"), make("p")));
  const [rule, words] = box.children;
  known.now = number;
  box.hidden = false;
  words.replaceChildren(...lines.map((line) => make("span", {}, line)));
  rule.style.transform = `translate(${x}px, ${known.top}px)`;
  rule.style.height = `${known.bottom - known.top}px`;
  const wide = words.offsetWidth;
  const left = x + 12 + wide > known.width ? x - 12 - wide : x + 12;
  words.style.transform = `translate(${Math.max(left, 0)}px, ${known.top}px)`;
}

function hide(place) {
  const box = place.querySelector(".readout");
  if (box) box.hidden = true;
  offered.get(place).now = null;
}
