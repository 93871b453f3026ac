// Step 2: the figures along epsilon, and the slider.
import { showCommands, showRelease, showSetting } from "./act.js";
import { drawCurve, drawHistogram, drawLimits, placeOverlays } from "./charts.js";
import { admissiblePlace, changeLimits, checkBoxes, findAdmissible, showRiskiest } from "./decide.js";
import { announce, at, later, make, makeTable, setFigures, setOptions, showNote, write } from "./elements.js";
import { askTable, work } from "./server.js";
import { epsilonText, fulfil, page, presentFigures, presentIndex, presentRow, presentSetting, titleOf, writeAddress } from "./state.js";
import { tell } from "./steps.js";

export async function loadPositions() {
  checkBoxes();
  const wanted = Object.fromEntries(["sensitive", "mechanism", "neighbours", "measure"].map((id) => [id, at(id).value]));
  const wish = (page.wanted = {}); // the same may be asked for twice: only the last one counts
  const positions = await work(at("see-status"), "Computing the curve", () => askTable("positions", wanted));
  if (page.wanted !== wish) return;
  if (!positions) {
    if (page.shown) for (const [id, value] of Object.entries(page.shown)) at(id).value = value;
    return;
  }
  page.shown = wanted;
  showPositions(positions);
}

// What attacks reveal takes longer than the curve, and is filled in.
async function loadAttacks() {
  const { sensitive, mechanism, neighbours, delta } = presentSetting();
  const wish = (page.wantedAttacks = {});
  page.traced = null;
  const traced = await work(at("attacks-status"), "Assessing the attacks", () => askTable("attacks", { sensitive, mechanism, neighbours, delta }));
  if (!traced || page.wantedAttacks !== wish) return;
  page.traced = traced;
  if (traced.unknown) showNote(at("attacks-status"), traced.unknown);
  showLines();
}

// Harmful values are those of one column.
export function useSensitive() {
  at("harmful").value = "";
  loadPositions();
}

export function changeHarmful() {
  changeLimits();
  showPosition();
}

function useMechanism(name) {
  at("mechanism").value = name;
  loadPositions();
}

function showPositions(positions) {
  const { epsilons, epsilon_texts: texts, deltas, delta_texts: deltaTexts } = positions;
  const sameDeltas = String(page.positions?.deltas) === String(deltas);
  page.positions = positions;
  if (!sameDeltas) {
    setOptions(at("delta"), deltaTexts.map((text, place) => [place, text]), 0);
    fulfil("delta");
  }
  at("delta-field").hidden = deltas[0] === null;
  at("epsilon").max = epsilons.length - 1;
  at("epsilon").value = nearest(epsilons, page.epsilon);
  [at("epsilon-low").textContent, at("epsilon-high").textContent] = [texts[0], texts.at(-1)];
  at("see-area").hidden = false;
  drawHistogram();
  showRelease(useMechanism);
  showRow();
}

function nearest(list, wanted) {
  const far = (value) => Math.abs(Math.log(value / wanted));
  return list.reduce((best, value, place) => (far(value) < far(list[best]) ? place : best), 0);
}

// Another row of the same positions: form, weights or delta.
export function showRow() {
  const place = Number(at("delta").value);
  const delta = page.positions.deltas[0] === null ? "" : `, delta ${page.positions.delta_texts[place]}`;
  write("advanced-told", `${titleOf("mechanism", page.shown.mechanism)}${delta}; ${titleOf("form", at("form").value).toLowerCase()}`);
  loadAttacks();
  showLines();
  findAdmissible();
}

function showLines() {
  const [row, { traced }] = [presentRow(), page];
  showPosition();
  drawCurve();
  drawLimits();
  at("curve-numbers").replaceChildren(makeTable("The figures along epsilon", [], ["epsilon", "own value revealed", "any value revealed", "because of their own record"],
    page.positions.epsilon_texts.map((epsilon, place) => [epsilon, row.tight.texts[place], row.exact.texts[place], traced?.own?.texts[place] ?? "–"])));
  at("noise-note").hidden = !row.note;
  write("noise-note", row.note);
}

// Follows the slider: everything here was shipped before, but for intervals, which are filled in once it rests.
export function showPosition() {
  page.epsilon = page.positions.epsilons[presentIndex()];
  at("epsilon-value").textContent = epsilonText();
  page.figures = null;
  at("attacks").hidden = true;
  showNumbers();
  placeOverlays();
  later("settle", 300, settle);
}

function showNumbers() {
  const [place, row, figures, found, form] = [presentIndex(), presentRow(), presentFigures(), page.figures, at("form").value];
  const other = form === "exact" ? "tight" : "exact";
  const exposed = row[form].texts[place];
  const tracedOf = (name, more) => [page.traced?.[name]?.texts[place] ?? "–", page.traced ? (page.traced.unknown ? "not computed" : more) : "counting"];
  write("sentence", found ? `${found.sentence} ${figures.sentences[place]}` : figures.sentences[place]);
  setFigures(at("risk-figures"), [
    ["Because of their own record", ...tracedOf("own", "of people at least, by the attack that reveals most"), "first caused"],
    ["Inferred, 95% sure", ...tracedOf("sure", "correctly, by an informed attacker"), "sure"],
    ["Most for one person", ...tracedOf("most", "that their own record adds to an attack")],
    [`Revealed: ${titleOf("form", form).toLowerCase().replace(" revealed", "")}`, exposed, found && form === "tight" && page.shown.measure === "local" ? found.exposed : "with what noise alone gives", "exposed"],
    [titleOf("form", other), row[other].texts[place], other === "exact" ? "one value shown alone, which is in the group" : "the person’s own value is shown alone"],
    ["Worst case for one record", figures.ceiling.texts[place], "right at most, by an attacker who knows every other record and finds two values equally likely; coin toss: 50%"],
    ["Revealed as epsilon falls to 0", row.chance.text, "what is left with the most noise"],
    ["Revealed with no noise", row.raw.text, "the table published as it is"],
  ]);
  const own = page.traced?.own ? `${page.traced.own.texts[place]} because of their own record, ` : "";
  at("epsilon").setAttribute("aria-valuetext", `epsilon ${epsilonText()}, ${own}${exposed} revealed`);
  tell("see", `epsilon ${epsilonText()}: ${own}${exposed} revealed`);
}

async function fillIn() {
  const found = await work(at("figures-status"), null, () => askTable("figures", presentSetting()));
  if (!found || found.epsilon !== page.epsilon) return;
  page.figures = found;
  showNumbers();
  at("attacks").replaceChildren(makeTable("What each attack names correctly, and because of the own record", ["attack"], found.head, found.attacks),
    ...found.notes.map((words) => make("p", { class: "help" }, words)),
    found.icons && make("img", { class: "people", src: `data:image/svg+xml,${encodeURIComponent(found.icons.svg)}`, alt: found.icons.words }) || "");
  at("attacks").hidden = !found.attacks.length;
  announce(found.sentence);
}

// What needs the server, once the slider rests.
function settle() {
  writeAddress();
  fillIn();
  showRiskiest();
  showSetting();
  showCommands();
}

export function useAdmissible() {
  at("epsilon").value = admissiblePlace();
  showPosition();
  showNote(at("limit-status"), `Epsilon is ${epsilonText()} now, here and in every step.`);
}
