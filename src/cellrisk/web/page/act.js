// Step 4: what the decision is, as words, commands and files, and the release itself.
import { announce, at, make, showError, showNote } from "./elements.js";
import { showLedger } from "./ledger.js";
import { count, percent, short, size } from "./numbers.js";
import { askTable, work } from "./server.js";
import { page, presentIndex, presentRow, presentSetting, settingWords, titleOf } from "./state.js";

export function showSetting() {
  const risk = presentRow()[at("form").value][presentIndex()];
  const { epsilon } = presentSetting();
  const allowed = !page.server.policy || (page.judged && page.admissible.intervals.some(([low, high]) => epsilon >= low && epsilon <= high));
  const kept = risk <= page.limit && allowed;
  const broken = page.judged ? "not allowed by the policy that is in force. Go back to step 3." : "not yet checked against the policy that is in force.";
  const averaged = titleOf("weights", at("weights").value).toLowerCase();
  const words = `Risk ${percent(risk)} (measure ${page.shown.measure}, ${at("form").value}, averaged ${averaged})`;
  at("compare-now").textContent = settingWords();
  at("setting").className = `verdict ${kept ? "good" : "bad"}`;
  at("setting").replaceChildren(make("p", { class: "answer" }, `To sign off: ${settingWords()}`), make("p", {},
    `${words}, limit ${percent(page.limit)}: ${kept ? "within the limit." : risk > page.limit ? "above the limit. Go back to step 3, or change the limit." : broken}`),
    make("p", { class: "quiet" }, page.server.policy ?? "No policy is in force."));
}

export async function showCommands() {
  const answer = await work(at("commands-status"), null, () => askTable("commands", presentSetting()));
  if (answer) [at("shell").textContent, at("python").textContent] = [answer.shell, answer.python];
}

export async function copyCode(event) {
  const [button, code] = [event.currentTarget, at(event.currentTarget.dataset.copy)];
  await navigator.clipboard?.writeText(code.textContent).catch(() => getSelection().selectAllChildren(code));
  button.textContent = "Copied";
  announce("Copied.");
  setTimeout(() => { button.textContent = "Copy"; }, 2000);
}

export async function download(kind, place, words, more = {}) {
  const asked = { kind, ...presentSetting(), spreadsheet_safe: at("spreadsheet-safe").checked, ...more };
  const file = await work(place, words, () => askTable("downloads", asked));
  if (!file) return false;
  const link = make("a", { href: file.url, download: file.name }, file.name);
  showNote(place, "Saved: ", link, ` (${size(file.bytes)})`, file.remark ? `. ${file.remark}` : "");
  announce(`Saved: ${file.name}`);
  link.click();
  return true;
}

export function downloadReport() {
  const more = { title: at("report-title").value.trim() || null, organisation: at("organisation").value.trim() || null };
  download("report", at("download-status"), "Writing the report", more);
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

export function askForRelease(event) {
  event.preventDefault();
  const [purpose, cohort] = [at("purpose").value.trim(), at("cohort").value.trim()];
  if (page.server.ledger && !(purpose && cohort)) {
    showError(at("release-status"), new Error("The ledger needs a purpose and a cohort."));
    at(purpose ? "cohort" : "purpose").focus();
    return;
  }
  at("release-status").replaceChildren();
  at("confirm-text").replaceChildren(
    make("p", {}, `This publishes counts of ${count(page.table.records)} people from ${page.table.name} (${settingWords()}).`),
    make("p", {}, make("strong", {}, `It costs these people epsilon ${short(page.epsilon)}, for good.`),
      " It cannot be taken back, and every further release about them adds to it."),
    make("p", {}, page.server.ledger ? `The ledger will say so under the cohort ${cohort}.` : "No ledger is open: nobody will add this up for you."));
  at("confirm").returnValue = "";
  at("confirm").showModal();
}

export async function release() {
  if (at("confirm").returnValue !== "yes") return;
  const more = { purpose: at("purpose").value.trim() || null, cohort: at("cohort").value.trim() || null, new_cohort: at("new-cohort").checked,
    observed_levels: at("observed-levels").checked, observed_cells_only: at("observed-cells").checked };
  if (await download("release", at("release-status"), "Making the release", more)) showLedger();
}
