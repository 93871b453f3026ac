// Step 4: what is taken away: the report, the numbers, the commands, the release itself.
import { announce, at, make, setVerdict, showError, showNote } from "./elements.js";
import { showLedger } from "./ledger.js";
import { claim, ofPeople, percent, size } from "./numbers.js";
import { askTable, work } from "./server.js";
import { hasLimit, isPerturbed, page, presentFigures, presentIndex, presentPerturbation, presentRow, presentSetting, settingWords, titleOf } from "./state.js";
import { tell } from "./steps.js";

// Whether the epsilon that is shown keeps the limits, and the words for it.
function judge() {
  if (!hasLimit() && !page.server.policy) return [null, "No limit is set."];
  if (!page.judged) return [null, "Not yet checked against the limits."];
  const kept = page.admissible?.intervals.some(([low, high]) => page.epsilon >= low && page.epsilon <= high);
  return kept ? [true, "Within the limits."] : [false, "Not within the limits. Go back to step 3, or change them."];
}

export function showSetting() {
  const [place, form] = [presentIndex(), at("form").value];
  const [kept, words] = judge();
  const exposed = `${percent(presentRow()[form][place])} exposed (${titleOf("forms", form).toLowerCase()}; ${titleOf("measures", page.shown.measure)}; averaged ${titleOf("weights", at("weights").value).toLowerCase()})`;
  at("compare-now").textContent = settingWords();
  setVerdict(at("setting"), kept === null ? "" : kept ? "good" : "bad", `To sign off: ${settingWords()}`,
    [`${percent(presentFigures().caused[place])} of people given away because of their own record; ${exposed}. ${words}`],
    page.server.policy ?? "No policy is in force.");
  tell("act", `${settingWords()}. ${words}`);
}

export async function showCommands() {
  const answer = await work(at("commands-status"), null, () => askTable("commands", presentSetting()));
  if (answer && !isPerturbed()) [at("shell").textContent, at("python").textContent] = [answer.shell, answer.python];
}

export function download(kind, place, words, more = {}) {
  return fetchFile(place, words, "downloads", { kind, ...presentSetting(), spreadsheet_safe: at("spreadsheet-safe").checked, ...more });
}

async function fetchFile(place, words, what, asked) {
  const file = await work(place, words, () => askTable(what, asked));
  if (!file) return false;
  const link = make("a", { href: file.url, download: file.name }, file.name);
  showNote(place, "Saved: ", link, ` (${size(file.bytes)})`, file.remark ? `. ${file.remark}` : "");
  announce(`Saved: ${file.name}`);
  link.click();
  return true;
}

export function downloadReport() {
  const more = { title: at("report-title").value.trim() || null, organisation: at("organisation").value.trim() || null };
  const [place, words] = [at("download-status"), "Writing the report"];
  if (isPerturbed()) fetchFile(place, words, "perturbed/report", { ...presentPerturbation(), ...more });
  else download("report", place, words, more);
}

// A mechanism that cannot release is exchanged for one that can, by switchTo.
export function showRelease(switchTo) {
  const able = page.server.mechanisms.filter((each) => each.release);
  const fits = able.some((each) => each.name === page.shown.mechanism);
  at("release-fields").hidden = !fits;
  at("release-note").textContent = fits ? "The table itself, with noise on its counts, and a description beside it."
    : `A released table holds whole numbers, and ${titleOf("mechanisms", page.shown.mechanism)} noise does not. Switch the page to:`;
  const buttons = able.map(({ name, title }) => make("button", { type: "button", click: () => switchTo(name) }, title));
  at("release-switch").replaceChildren(...(fits ? [] : buttons));
}

const releaseFields = () => ({ purpose: at("purpose").value.trim() || null, cohort: at("cohort").value.trim() || null,
  new_cohort: at("new-cohort").checked, observed_levels: at("observed-levels").checked, observed_cells_only: at("observed-cells").checked });

// Before the last yes: whatever speaks against it, what the guarantee leaves out, and the budget before and after.
export async function askForRelease(event) {
  event.preventDefault();
  const { purpose, cohort } = releaseFields();
  if (page.server.ledger && !(purpose && cohort)) {
    showError(at("release-status"), new Error("The ledger needs a purpose and a cohort: fill in both boxes."));
    at(purpose ? "cohort" : "purpose").focus();
    return;
  }
  const asked = { kind: "release", ...presentSetting(), ...releaseFields() };
  const told = await work(at("release-status"), null, () => askTable("consequences", asked));
  if (!told) return;
  const limits = hasLimit() || page.server.policy ? "Every limit is kept." : "No limit is set.";
  const list = (title, lines, kind = null) => [make("h3", { class: kind }, title), make("ul", { class: kind }, ...lines.map((line) => make("li", {}, line)))];
  at("confirm-text").replaceChildren(
    make("p", {}, `This publishes counts of ${ofPeople(page.table.records)} from ${page.table.name} (${settingWords()}).`),
    make("p", {}, make("strong", {}, `It costs these people epsilon ${claim(page.epsilon)}, for good.`),
      " It cannot be taken back, and every further release about them adds to it."),
    ...list("Limits", told.above.length ? told.above : [limits], told.above.length ? "alarm" : null),
    ...list("Not covered by the guarantee", told.uncovered.length ? told.uncovered : ["Nothing: every label and cell was declared beforehand."]),
    ...list("Budget", told.budget));
  at("confirm-yes").disabled = told.forbidden;
  at("confirm-yes").textContent = told.forbidden ? "Forbidden" : told.above.length ? "Make the release above the limit" : "Make the release";
  at("confirm").returnValue = "";
  at("confirm").showModal();
}

export async function release() {
  if (at("confirm").returnValue !== "yes") return;
  if (await download("release", at("release-status"), "Making the release", releaseFields())) showLedger();
}
