// A perturbation instead of a mechanism: what it reveals, without an epsilon.
import { GONE, upload } from "./both.js";
import { showRiskiest } from "./cells.js";
import { drawHistogram } from "./charts.js";
import { checkBoxes, showLocks } from "./decide.js";
import { announce, at, later, makeTable, setFigures, setVerdict, showNote, write } from "./elements.js";
import { loadPositions } from "./see.js";
import { askTable, work } from "./server.js";
import { isPerturbed, page, presentSetting, writeAddress } from "./state.js";
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

async function loadPerturbed() {
  const asked = presentSetting();
  const unsaid = findUnsaid(asked.perturbation);
  page.wanted = {}; // a curve that is on its way is not shown
  at("advanced-told").textContent = "a perturbation";
  if (unsaid) {
    at("advanced").open = true;
    showNote(at("see-status"), unsaid);
    return showNothing(unsaid);
  }
  const found = await work(at("see-status"), "Computing what it reveals", () => askTable("perturbed", asked).catch((error) => {
    throw error.status === GONE ? new Error(`The server no longer has ${at("keys-told").textContent}, which was uploaded. Choose the table again.`) : error;
  }));
  if (!found) return at("see-status").querySelector(".error, .note") ? showNothing("This perturbation cannot be assessed: step 2 says why.") : null;
  if (!isPerturbed()) return null;
  page.perturbed = found;
  showPerturbed(found);
  showRiskiest();
  writeAddress();
  announce(found.sentence);
  return null;
}

function showNothing(words) {
  page.perturbed = null;
  at("see-area").hidden = true;
  for (const id of ["verdict", "setting"]) setVerdict(at(id), "", words);
  at("shell").textContent = "";
  for (const step of ["see", "decide", "act"]) tell(step, words);
  writeAddress();
}

function showPerturbed({ name, sentence, described, figures, rows, summary, kind, verdict, broken, policy, commands }) {
  at("see-area").hidden = false;
  write("advanced-told", `${name}, a perturbation without an epsilon`);
  write("perturbed-sentence", sentence);
  write("not-told", described);
  setFigures(at("perturbed-figures"), figures);
  at("perturbed-numbers").replaceChildren(makeTable("Every measure", ["measure", "averaged", "revealed"], ["risk"], rows));
  drawHistogram();
  tell("see", `${name}: ${summary}`);
  at("use-epsilon").hidden = true;
  at("limit-status").replaceChildren();
  at("verdict").setAttribute("aria-busy", false);
  setVerdict(at("verdict"), kind, verdict, broken, policy);
  setVerdict(at("setting"), kind, `To sign off: ${name}`, [`${summary}. ${verdict}`], policy);
  tell("decide", verdict);
  tell("act", `${name}. ${verdict}`);
  at("shell").textContent = commands.shell;
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
