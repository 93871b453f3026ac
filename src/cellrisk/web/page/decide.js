// Step 3: the largest figures accepted, the epsilons that keep them, and the map of risk and usefulness.
import { showCommands, showSetting } from "./act.js";
import { drawLimits, drawMap } from "./charts.js";
import { announce, at, later, make, makeTable, setVerdict, write } from "./elements.js";
import { askTable, work } from "./server.js";
import { LIMITS, hasLimit, page, presentSetting, whyUnused } from "./state.js";
import { tell } from "./steps.js";

// What the policy in force fixes: its limits stand in their boxes, and cannot be changed; nor can the words of its risk.
export function showLocks() {
  const { locks, policy } = page.server;
  const locked = "Fixed by the policy";
  for (const { name, id, per } of LIMITS) {
    const most = locks.limits[name];
    if (most === undefined) continue;
    at(id).disabled = true;
    at(id).value = Number((per * most).toPrecision(12));
    write(`${id}-lock`, locked);
  }
  for (const [name, word] of Object.entries(locks.words)) {
    at(name).value = word;
    at(name).disabled = true;
  }
  write("words-lock", Object.keys(locks.words).length ? `${locked}: measure, averages and what counts as revealed.` : "");
  write("policy-lock", policy ?? "");
}

export function checkBoxes() {
  for (const limit of LIMITS.filter(({ id }) => !at(id).disabled)) write(`${limit.id}-lock`, whyUnused(limit));
}

export function changeLimits() {
  checkBoxes();
  drawLimits();
  waitForVerdict(true);
  later("limit", 150, checkLimits);
}

const checkLimits = () => { findAdmissible(); showSetting(); showCommands(); };

// What was said of other limits or another curve is pale, and cannot be used.
function waitForVerdict(waiting) {
  page.judged = !waiting;
  at("use-epsilon").disabled = waiting;
  at("verdict").setAttribute("aria-busy", waiting);
}

export async function findAdmissible() {
  if (!hasLimit() && !page.server.policy) return showNoLimit();
  waitForVerdict(true);
  const answer = await work(at("limit-status"), null, () => askTable("admissible", presentSetting()));
  if (!answer) return;
  if (!hasLimit() && !page.server.policy) return showNoLimit();
  waitForVerdict(false);
  page.admissible = answer;
  drawLimits();
  const { epsilon, kind, verdict, lines, policy } = answer;
  setVerdict(at("verdict"), kind, verdict, lines, policy);
  const place = admissiblePlace();
  at("use-epsilon").hidden = place < 0 || epsilon === null;
  if (place >= 0) at("use-epsilon").textContent = `Use epsilon ${page.positions.epsilon_texts[place]}, the slider's step within the limits`;
  tell("decide", verdict);
  showSetting();
}

function showNoLimit() {
  page.admissible = null;
  waitForVerdict(false);
  at("limit-status").replaceChildren();
  at("use-epsilon").hidden = true;
  setVerdict(at("verdict"), "", "No limit is set: nothing is recommended.",
    ["Write one into a box under “Limits”. A board usually limits the people revealed because of their own record."]);
  tell("decide", "no limit is set");
  drawLimits();
  showSetting();
}

// The largest slider position within the admissible set, or -1.
export function admissiblePlace() {
  const isAdmissible = (epsilon) => page.admissible.intervals.some(([low, high]) => epsilon >= low && epsilon <= high);
  return page.positions.epsilons.findLastIndex(isAdmissible);
}

// The riskiest groups, while they are open.
export async function showRiskiest() {
  if (!page.positions || !at("riskiest-details").open) return;
  const answer = await work(at("riskiest-status"), null, () => askTable("riskiest", { ...presentSetting(), top: Number(at("top").value) }));
  if (!answer) return;
  write("riskiest-about", answer.about);
  at("riskiest").replaceChildren(makeTable("Groups with the highest risk", answer.words, answer.numbers, answer.rows));
}

export async function loadMap() {
  const limit = at("max-tvd").value;
  page.map = await work(at("map-status"), "Simulating releases along epsilon",
    () => askTable("map", { ...presentSetting(), max_tvd: limit === "" ? null : Number(limit) }));
  at("map-area").hidden = !page.map;
  if (!page.map) return;
  write("map-sentence", page.map.sentence);
  at("map-table").hidden = !page.map.rows.length;
  at("map-table").replaceChildren(makeTable("Points of the map", ["setting"], ["epsilon", page.map.name, "distortion"], page.map.rows));
  drawMap();
  announce(page.map.sentence);
}
