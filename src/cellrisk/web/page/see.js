// Step 2: the figures along epsilon, and the slider.
import { fulfil, writeAddress } from "./address.js";
import { showCommands, showRelease, showSetting } from "./act.js";
import { showGlimpse, showRiskiest } from "./cells.js";
import { drawCurve, drawHistogram, drawLimits, frameOf, placeOverlays } from "./charts.js";
import { admissiblePlace, findAdmissible } from "./decide.js";
import { announce, at, later, makeTable, setFigures, setOptions, showNote, write } from "./elements.js";
import { claim, count, mostPercent, ofPeople, percent, short } from "./numbers.js";
import { askTable, work } from "./server.js";
import { isPerturbed, page, presentFigures, presentIndex, presentRow, presentSetting, titleOf } from "./state.js";
import { tell } from "./steps.js";

const POINTS = 121;

export async function loadPositions() {
  const wanted = Object.fromEntries(["sensitive", "mechanism", "neighbours", "measure"].map((id) => [id, at(id).value]));
  const { measure, ...others } = wanted;
  const key = JSON.stringify(wanted);
  const shipped = page.shipped.get(key);
  const asking = () => shipped ?? askTable("positions", { ...others, measures: [measure], deltas: null, points: POINTS });
  const wish = (page.wanted = {}); // the same may be asked for twice: only the last one counts
  const positions = await work(at("see-status"), shipped ? null : "Computing the curve", asking);
  if (page.wanted !== wish) return;
  if (!positions) {
    if (page.shown) for (const [id, value] of Object.entries(page.shown)) at(id).value = value;
    return;
  }
  page.shipped.set(key, positions);
  page.shown = wanted;
  showPositions(positions);
}

// What an attacker can be sure of takes longer than the curve, and is filled in.
async function loadCertainty() {
  const { sensitive, mechanism, neighbours, delta } = presentSetting();
  const asked = { sensitive, mechanism, neighbours, delta };
  const key = `certainty ${JSON.stringify(asked)}`;
  const wish = (page.wantedCertainty = {});
  page.certainty = page.shipped.get(key) ?? null;
  if (page.certainty) return;
  const certainty = await work(at("certainty-status"), "Counting whom an attacker can be sure of", () => askTable("certainty", asked));
  if (!certainty || page.wantedCertainty !== wish || isPerturbed()) return;
  page.certainty = certainty;
  page.shipped.set(key, certainty);
  if (certainty.unknown) showNote(at("certainty-status"), `What an attacker could be sure of is not computed: ${certainty.unknown}.`);
  showLines();
}

function useMechanism(name) {
  at("mechanism").value = name;
  loadPositions();
}

function showPositions(positions) {
  const { epsilons, deltas } = positions;
  const sameDeltas = String(page.positions?.deltas) === String(deltas);
  page.positions = positions;
  if (!sameDeltas) {
    setOptions(at("delta"), deltas.map((delta, place) => [place, delta === null ? "none" : claim(delta)]), positions.default_index);
    fulfil("delta");
  }
  at("delta-field").hidden = deltas[0] === null;
  at("epsilon").max = epsilons.length - 1;
  at("epsilon").value = nearest(epsilons, page.epsilon);
  [at("epsilon-low").textContent, at("epsilon-high").textContent] = [short(epsilons[0]), short(epsilons.at(-1))];
  at("see-area").hidden = false;
  drawHistogram();
  showRelease(useMechanism);
  showRow();
}

function nearest(list, wanted) {
  const far = (value) => Math.abs(Math.log(value / wanted));
  return list.reduce((best, value, place) => (far(value) < far(list[best]) ? place : best), 0);
}

// Another row of the same positions: measure, form, weights or delta.
export function showRow() {
  const delta = page.positions.deltas[0] === null ? "" : `, delta ${claim(page.positions.deltas[Number(at("delta").value)])}`;
  write("advanced-told", `${titleOf("mechanisms", page.shown.mechanism)}${delta}; ${titleOf("forms", at("form").value).toLowerCase()}`);
  for (const [id, list] of [["form", "forms"], ["measure", "measures"]]) {
    at(id).title = page.server[list].find(({ name }) => name === at(id).value)?.paper ?? "";
  }
  loadCertainty();
  showLines();
  findAdmissible();
}

function showLines() {
  const [row, figures] = [presentRow(), presentFigures()];
  showPosition();
  drawCurve();
  drawLimits();
  const columns = [["own value revealed", row.tight], ["any value revealed", row.exact], ["because of their own record", figures.caused]];
  at("curve-numbers").replaceChildren(makeTable("The figures along epsilon", [], ["epsilon", ...columns.map(([title]) => title)],
    page.positions.epsilons.map((epsilon, place) => [short(epsilon), ...columns.map(([, values]) => percent(values[place]))])));
  // Noise that shows single values by itself lifts the line of the exposed where epsilon is small.
  const lifted = row.chance > 1.05 * Math.min(...row[at("form").value]);
  at("noise-note").hidden = !lifted;
  write("noise-note", `As epsilon falls, “exposed” tends to ${percent(row.chance)}: noise itself then shows single values in cells, and some of them are right by chance. “Because of their own record” leaves that out.`);
}

// Follows the slider: everything here was shipped before, but for intervals, which are filled in once it rests.
export function showPosition() {
  const place = presentIndex();
  page.epsilon = page.positions.epsilons[place];
  at("epsilon-value").textContent = claim(page.epsilon);
  page.figures = null;
  showNumbers();
  placeOverlays();
  later("settle", 300, settle);
}

function showNumbers() {
  const [place, row, figures] = [presentIndex(), presentRow(), presentFigures()];
  const found = page.figures?.epsilon === page.epsilon ? page.figures : null;
  const between = ({ low, high }) => (low === null || low === undefined ? "" : `95% of releases: ${count(low)} to ${ofPeople(high)}`);
  const [named] = found?.decision.certainty ?? [];
  const form = at("form").value;
  const other = form === "exact" ? "tight" : "exact";
  write("sentence", found?.sentence ?? figures.sentences[place]);
  setFigures(at("risk-figures"), [
    ["Because of their own record", percent(figures.caused[place]), found ? between(found.decision.caused) : "of people; counting the interval", "first caused"],
    ["Named with certainty", named ? percent(named.right / page.table.records) : "–",
      named ? `rightly, and ${100 * named.certainty}% sure or more` : found ? "not computed" : "counting", "sure"],
    [`Exposed: ${titleOf("forms", form).toLowerCase()}`, percent(row[form][place]), found && form === "tight" && page.shown.measure === "local" ? between(found.people) : "chance included", "exposed"],
    [titleOf("forms", other), percent(row[other][place]), other === "exact" ? "one value shown alone, and somebody has it" : "the person’s own value is shown alone"],
    ["Worst case for one record", mostPercent(figures.ceiling[place]), "right at most, by an attacker who knows every other record and finds two values equally likely; coin toss: 50%"],
    ["Exposed as epsilon falls to 0", percent(row.chance), "what is left with the most noise"],
    ["Exposed by the raw table", percent(row.raw), "published without noise"],
  ]);
  at("epsilon").setAttribute("aria-valuetext", `epsilon ${claim(page.epsilon)}, ${percent(figures.caused[place])} because of their own record, ${percent(row[form][place])} exposed`);
  tell("see", `epsilon ${claim(page.epsilon)}: ${percent(figures.caused[place])} of people given away because of their own record, ${percent(row[form][place])} exposed`);
}

async function fillIn() {
  const found = await work(at("figures-status"), null, () => askTable("figures", presentSetting()));
  if (!found || found.epsilon !== page.epsilon || isPerturbed()) return;
  page.figures = found;
  showNumbers();
  announce(found.sentence);
}

// What needs the server, once the slider rests.
function settle() {
  if (isPerturbed()) return;
  writeAddress();
  fillIn();
  showGlimpse();
  showRiskiest();
  showSetting();
  showCommands();
}

export function useAdmissible() {
  at("epsilon").value = admissiblePlace();
  showPosition();
  showNote(at("limit-status"), `Epsilon is ${claim(page.epsilon)} now, here and in every step.`);
}

// The marker can be dragged too: the slider follows.
export function dragMarker(event) {
  const made = frameOf(event.currentTarget.id);
  if (event.buttons !== 1 || !made || event.target.closest(".handle")) return;
  const x = event.clientX - event.currentTarget.getBoundingClientRect().left;
  if (event.type === "pointerdown" && (x < made.left - 8 || x > made.right + 8)) return;
  at("epsilon").value = nearest(page.positions.epsilons, made.x.back(Math.min(Math.max(x, made.left), made.right)));
  showPosition();
  event.preventDefault();
}
