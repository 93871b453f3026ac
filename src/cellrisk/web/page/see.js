// Step 2: the risk along epsilon, and the slider.
import { showCommands, showRelease, showSetting } from "./act.js";
import { showGlimpse, showRiskiest } from "./cells.js";
import { drawCurve, drawHistogram, drawLimits, placeOverlays, sizeLabels } from "./charts.js";
import { admissiblePlace, findAdmissible, setLimit } from "./decide.js";
import { announce, at, later, makeTable, setFigures, setOptions, showNote, write } from "./elements.js";
import { count, percent, short } from "./numbers.js";
import { askTable, work } from "./server.js";
import { page, presentIndex, presentRow } from "./state.js";

export async function loadPositions() {
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

function useMechanism(name) {
  at("mechanism").value = name;
  loadPositions();
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
  showRelease(useMechanism);
  showRow();
}

function nearest(list, wanted) {
  const far = (value) => Math.abs(Math.log(value / wanted));
  return list.reduce((best, value, place) => (far(value) < far(list[best]) ? place : best), 0);
}

// Another row of the same positions: measure, weights or delta.
export function showRow() {
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
export function showPosition() {
  const [place, row, delta] = [presentIndex(), presentRow(), at("delta").value];
  const people = page.positions.people[delta];
  page.epsilon = page.positions.epsilons[place];
  at("epsilon-value").textContent = short(page.epsilon);
  write("sentence", page.positions.sentences[delta][place]);
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

export function useAdmissible() {
  at("epsilon").value = admissiblePlace();
  showPosition();
  showNote(at("limit-status"), `Epsilon is ${short(page.epsilon)} now, here and in every step.`);
}
