// The values of a chart under the pointer; with the keyboard, arrows go from one to the next once the chart has the focus.
import { announce, make } from "./elements.js";

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
