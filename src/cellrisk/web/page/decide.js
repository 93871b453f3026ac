// Step 3: the largest risk accepted, the epsilons that keep it, and the map of risk and usefulness.
import { showCommands, showSetting } from "./act.js";
import { axesOf, drawLimits, drawMap, mapMarks, placeHandle } from "./charts.js";
import { announce, at, later, make, makeTable, write } from "./elements.js";
import { inward, percent, short } from "./numbers.js";
import { askTable, work } from "./server.js";
import { page, presentSetting } from "./state.js";

export function setLimit(share) {
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

export const checkLimit = () => { findAdmissible(); showSetting(); showCommands(); };

// What is being typed stays as it is typed.
export function typeLimit(event) {
  const { value } = event.target;
  if (value === "" || !event.target.checkValidity()) return;
  changeLimit(Number(value) / 100);
  event.target.value = value;
}

// What was said of another limit or curve is pale, and cannot be used.
function waitForVerdict(waiting) {
  page.judged = !waiting;
  at("use-epsilon").disabled = waiting;
  at("verdict").setAttribute("aria-busy", waiting);
}

export async function findAdmissible() {
  waitForVerdict(true);
  const answer = await work(at("limit-status"), null, () => askTable("admissible", presentSetting()));
  if (!answer) return;
  waitForVerdict(false);
  page.admissible = answer;
  drawLimits();
  const { epsilon, intervals, sentence } = answer;
  const ranges = intervals.map(([low, high]) => `${inward(low, Math.ceil)} to ${inward(high, Math.floor)}`).join("; ");
  const unbound = epsilon === null && intervals.length > 0;
  at("verdict").className = `verdict ${unbound ? "" : epsilon === null ? "bad" : "good"}`;
  const kept = epsilon === null ? "No epsilon keeps this limit." : `Admissible: epsilon ${ranges}`;
  const verdict = unbound ? "No limit binds: nothing is recommended." : kept;
  at("verdict").replaceChildren(make("p", { class: "answer" }, verdict), make("p", {}, sentence), make("p", { class: "quiet" }, answer.policy));
  const place = admissiblePlace();
  at("use-epsilon").hidden = place < 0 || epsilon === null;
  if (page.server.policy) showSetting();
  if (place >= 0) at("use-epsilon").textContent = `Use epsilon ${short(page.positions.epsilons[place])}, the slider's step within the limit`;
}

// The largest slider position within the admissible set, or -1.
export function admissiblePlace() {
  const isAdmissible = (epsilon) => page.admissible.intervals.some(([low, high]) => epsilon >= low && epsilon <= high);
  return page.positions.epsilons.findLastIndex(isAdmissible);
}

export function dragLimit(event) {
  if (!at("limit-handle").hasPointerCapture(event.pointerId)) return;
  const { yaxis } = axesOf("limits");
  changeLimit(yaxis.p2d(event.clientY - at("limits").getBoundingClientRect().top - yaxis._offset));
}

const KEY_STEPS = { ArrowUp: 0.001, ArrowRight: 0.001, ArrowDown: -0.001, ArrowLeft: -0.001, PageUp: 0.01, PageDown: -0.01, Home: -1, End: 1 };

export function moveLimitByKey(event) {
  if (!(event.key in KEY_STEPS)) return;
  changeLimit(page.limit + KEY_STEPS[event.key]);
  event.preventDefault();
}

export async function loadMap() {
  const limit = at("max-tvd").value;
  page.map = await work(at("map-status"), "Simulating releases along epsilon",
    () => askTable("map", { ...presentSetting(), max_tvd: limit === "" ? null : Number(limit) }));
  at("map-area").hidden = !page.map;
  if (!page.map) return;
  write("map-sentence", page.map.sentence);
  at("map-table").hidden = !mapMarks().length;
  at("map-table").replaceChildren(makeTable("Points of the map", ["setting"], ["epsilon", "risk", "distortion"],
    mapMarks().map(([name, mark]) => [name, short(mark.epsilon), percent(mark.risk), mark.tvd === null ? "–" : mark.tvd.toFixed(3)])));
  drawMap();
  announce(page.map.sentence);
}
