// Steps 4 and 5: what is taken away (the report, the numbers, the commands, the release itself), and what was released before.
import { fetchFile } from "./both.js";
import { at, copy, make, makeTable, setVerdict, showError, showNote } from "./elements.js";
import { ask, askTable, work } from "./server.js";
import { hasLimit, page, presentIndex, presentRow, presentSetting, settingWords, titleOf } from "./state.js";
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
  const exposed = `${presentRow()[form].texts[place]} revealed (${titleOf("form", form).toLowerCase()}; ${titleOf("measure", page.shown.measure)}; averaged ${titleOf("weights", at("weights").value).toLowerCase()})`;
  setVerdict(at("setting"), kept === null ? "" : kept ? "good" : "bad", `To sign off: ${settingWords()}`,
    [`${page.traced?.own ? `${page.traced.own.texts[place]} of people revealed because of their own record; ` : ""}${exposed}. ${words}`],
    page.server.policy ?? "No policy is in force.");
  tell("act", `${settingWords()}. ${words}`);
}

export async function showCommands() {
  const answer = await work(at("commands-status"), null, () => askTable("commands", presentSetting()));
  if (answer) at("shell").textContent = answer.shell;
}

const download = (kind, place, words, more = {}) => fetchFile(place, words,
  () => askTable(kind, { ...presentSetting(), spreadsheet_safe: at("spreadsheet-safe").checked, ...more }));

export const downloadReport = () => download("report", at("download-status"), "Writing the report",
  { title: at("report-title").value.trim() || null, organisation: at("organisation").value.trim() || null });

// A mechanism that cannot release is exchanged for one that can, by switchTo.
export function showRelease(switchTo) {
  const able = page.server.releasable;
  const fits = able.includes(page.shown.mechanism);
  at("release-fields").hidden = !fits;
  at("release-note").textContent = fits ? "The table itself, with noise on its counts, and a description beside it."
    : `A released table holds whole numbers, and ${titleOf("mechanism", page.shown.mechanism)} noise does not. Switch the page to:`;
  const buttons = able.map((name) => make("button", { type: "button", click: () => switchTo(name) }, titleOf("mechanism", name)));
  at("release-switch").replaceChildren(...(fits ? [] : buttons));
}

const releaseFields = () => ({ purpose: at("purpose").value.trim() || null, cohort: at("cohort").value.trim() || null,
  new_cohort: at("new-cohort").checked, observed_levels: at("observed-levels").checked });

// Before the last yes: whatever speaks against it, what the guarantee leaves out, and the budget before and after.
export async function askForRelease(event) {
  event.preventDefault();
  const { purpose, cohort } = releaseFields();
  if (page.server.ledger && !(purpose && cohort)) {
    showError(at("release-status"), new Error("The ledger needs a purpose and a cohort: fill in both boxes."));
    at(purpose ? "cohort" : "purpose").focus();
    return;
  }
  const asked = { ...presentSetting(), ...releaseFields() };
  const told = await work(at("release-status"), null, () => askTable("consequences", asked));
  if (!told) return;
  const list = (title, lines, kind = null) => [make("h3", { class: kind }, title), make("ul", { class: kind }, ...lines.map((line) => make("li", {}, line)))];
  at("confirm-text").replaceChildren(make("p", {}, told.summary),
    make("p", {}, make("strong", {}, told.cost), " It cannot be taken back, and every further release about them adds to it."),
    ...list("Limits", told.limits, told.broken ? "alarm" : null), ...list("Not covered by the guarantee", told.uncovered), ...list("Budget", told.budget));
  at("confirm-yes").disabled = told.forbidden;
  at("confirm-yes").textContent = told.answer;
  at("confirm").returnValue = "";
  at("confirm").showModal();
}

export async function release() {
  if (at("confirm").returnValue !== "yes") return;
  if (await download("release", at("release-status"), "Making the release", releaseFields())) showLedger();
}

export async function showLedger() {
  if (!page.server.ledger) {
    tell("ledger", "none was named at the start");
    return showNote(at("ledger-status"), "No ledger was named at the start. To keep one: cellrisk serve --ledger FILE");
  }
  const answer = await work(at("ledger-status"), null, () => ask("GET", "/api/ledger"));
  if (!answer) return;
  const rows = answer.entries.map(({ digest, words }) => [...words, makeDigest(digest)]);
  const table = makeTable("Entries of the ledger", ["when (UTC)", "release", "purpose", "digest"], [], rows);
  const scroll = make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Entries of the ledger" }, table);
  at("ledger-area").replaceChildren(make("p", { class: "sentence" }, answer.sentence),
    make("p", { class: answer.verified ? "note" : "error" }, answer.chain), ...answer.cohorts.map((words) => make("p", { class: "cohort" }, words)), rows.length ? scroll : "");
  tell("ledger", answer.sentence.split(". ")[0]);
}

// The first eight characters, and a button that copies them all.
const makeDigest = (digest) => make("span", { class: "digest" }, make("code", { title: digest }, digest.slice(0, 8)), " ",
  make("button", { type: "button", class: "small", "aria-label": `Copy the digest that begins with ${digest.slice(0, 8)}`, click: (event) => copy(event.currentTarget, digest) }, "Copy"));
