// A perturbation in the place of a mechanism: what it gives away, without an epsilon.
import { writeAddress } from "./address.js";
import { upload } from "./both.js";
import { showRiskiest } from "./cells.js";
import { drawEqual, drawHistogram } from "./charts.js";
import { checkBoxes, showLocks } from "./decide.js";
import { announce, at, later, makeTable, setFigures, setVerdict, showNote, write } from "./elements.js";
import { claim, count, mostPercent, ofPeople, percent } from "./numbers.js";
import { loadPositions } from "./see.js";
import { askTable, work } from "./server.js";
import { isPerturbed, page, presentPerturbation, titleOf } from "./state.js";
import { tell } from "./steps.js";

// What the controls ask for: noise along epsilon, or a perturbation.
export function loadShown() {
  const perturbed = isPerturbed();
  document.body.classList.toggle("perturbed", perturbed);
  at("mechanism-field").querySelector("label").textContent = perturbed ? "Compared with" : "Mechanism";
  at("rule-field").hidden = at("perturbation").value !== "rule";
  at("keys-field").hidden = at("suppress-below-field").hidden = at("perturbation").value !== "table";
  const [, ...name] = at("keys").value.split(" ");
  if (name.length) write("keys-told", name.join(" "));
  showLocks();
  checkBoxes();
  if (!page.table) return null;
  return perturbed ? loadPerturbed() : loadPositions();
}

// What has to be said before anything can be asked, or "".
function findUnsaid({ rule, uploaded }) {
  if (rule === "") return "Write a rule into the box “Rule”, such as random-rounding:5.";
  return uploaded === "" ? "Choose the file with the table P(m → r) under “A table of your own”." : "";
}

const GONE = 404;

async function loadPerturbed() {
  const asked = presentPerturbation();
  const unsaid = findUnsaid(asked);
  page.wanted = {}; // a curve that is on its way is not shown
  at("advanced-told").textContent = "a perturbation";
  if (unsaid) {
    at("advanced").open = true;
    showNote(at("see-status"), unsaid);
    return showNothing(unsaid);
  }
  const found = await work(at("see-status"), "Computing what it gives away", () => askTable("perturbed", asked).catch((error) => {
    throw error.status === GONE ? new Error(`The server no longer has ${at("keys-told").textContent}, which was uploaded. Choose the table again.`) : error;
  }));
  if (!found) return at("see-status").querySelector(".error, .note") ? showNothing("This perturbation cannot be assessed: step 2 says why.") : null;
  if (!isPerturbed()) return null;
  page.perturbed = found;
  showFigures();
  showVerdict();
  [at("shell").textContent, at("python").textContent] = [found.commands.shell, found.commands.python];
  showRiskiest();
  writeAddress();
  announce(found.sentence);
  return null;
}

function showNothing(words) {
  page.perturbed = null;
  at("see-area").hidden = true;
  for (const id of ["verdict", "setting"]) setVerdict(at(id), "", words);
  for (const id of ["shell", "python"]) at(id).textContent = "";
  for (const step of ["see", "decide", "act"]) tell(step, words);
  writeAddress();
}

function showFigures() {
  const { name, described, sentence, not_told: notTold, decision, equal, risks } = page.perturbed;
  const { records } = page.table;
  const { caused, people, ceiling } = decision;
  const [named] = decision.certainty;
  const [first] = equal;
  at("see-area").hidden = false;
  at("advanced-told").textContent = `${name}, a perturbation without an epsilon`;
  write("perturbed-sentence", sentence);
  write("not-told", `${described} ${notTold}`);
  write("equal-lead", `People given away because of their own record: ${titleOf("mechanisms", first.mechanism)} noise along epsilon, and ${name} as a level line.`);
  const interval = people.low === null ? "" : `95% of releases: ${count(people.low)} to ${ofPeople(people.high)}`;
  setFigures(at("perturbed-figures"), [
    ["Because of their own record", percent(caused.share), caused.people < 0 ? "their own record hides people" : ofPeople(caused.people), "first caused"],
    ["Named with certainty", named ? percent(named.right / records) : "–", named ? `rightly, and ${100 * named.certainty}% sure or more` : `not computed: ${decision.certainty_unknown ?? ""}`, "sure"],
    ["Exposed: own value revealed", percent(people.mean / records), interval, "exposed"],
    ["Worst case for one record", mostPercent(ceiling.even_two), `right at most, by an attacker who knows every other record and finds two values equally likely; at worst if ${ceiling.worst_counts.map(count).join(" and ")} others have them`],
    ["Exposed by the raw table", percent(decision.raw_share), "published as it is"],
    ["Epsilons with no more risk", first.ranges.map(([low, high]) => `${claim(low)} to ${claim(high)}`).join(", ") || "none", `of ${first.mechanism} noise`],
    ["Distance from the true table", percent(first.distance), first.mechanism_distance === null ? "of the records" : `of the records; noise at the largest of these epsilons ${percent(first.mechanism_distance)}`],
  ]);
  at("perturbed-numbers").replaceChildren(makeTable("Every measure", ["measure", "averaged", "revealed"], ["risk"], risks.map(({ measure, weights, form, risk }) =>
    [titleOf("measures", measure), weights === null ? "–" : titleOf("weights", weights), titleOf("forms", form), percent(risk)])));
  drawEqual();
  drawHistogram();
  tell("see", `${name}: ${percent(caused.share)} of people given away because of their own record, ${percent(people.mean / records)} exposed`);
}

function showVerdict() {
  const { name, limited, broken, policy, decision } = page.perturbed;
  const words = !limited ? "No limit is set." : broken.length ? "Not within the limits." : "Within the limits.";
  const kind = !limited ? "" : broken.length ? "bad" : "good";
  at("use-epsilon").hidden = true;
  at("limit-status").replaceChildren();
  at("verdict").setAttribute("aria-busy", false);
  setVerdict(at("verdict"), kind, words, broken, policy);
  setVerdict(at("setting"), kind, `To sign off: ${name}`,
    [`${percent(decision.caused.share)} of people given away because of their own record; ${percent(decision.people.mean / page.table.records)} exposed. ${words}`], policy);
  tell("decide", words);
  tell("act", `${name}. ${words}`);
}

export function changePerturbedLimits() {
  checkBoxes();
  later("limit", 150, loadShown);
}

export const takeKeys = (file) => upload(file, page.server, loadKeys, "keys-file", "see-status");

async function loadKeys(words, begin) {
  const source = await work(at("see-status"), words, begin);
  if (!source) return;
  at("keys").value = `${source.source} ${source.name}`;
  loadShown();
}
