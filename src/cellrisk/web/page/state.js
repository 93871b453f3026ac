// What the page knows: the answers it shows, and what its controls say.
import { at } from "./elements.js";

export const page = {
  server: null, // what /api/state says
  source: null, // the file that is loaded, with its columns
  table: null, // the counted table, and what was chosen for it
  counting: false, // whether the table is being counted, which a reload continues
  positions: null, // every slider position of what is shown
  shown: null, // of which sensitive column, mechanism, neighbours and measure these are
  traced: null, // what attacks reveal along epsilon, once it is known
  epsilon: 1, // what the slider shows; kept when the mechanism changes
  admissible: null, // what the server says of the limits
  map: null, // the last map of risk and usefulness
};

export const titleOf = (field, name) => page.server.choices[field].find(([value]) => value === name)?.[1] ?? name;

export const presentIndex = () => Number(at("epsilon").value);
export const presentFigures = () => page.positions.by_delta[Number(at("delta").value)];
export const presentRow = () => presentFigures()[at("weights").value];
export const epsilonText = () => page.positions.epsilon_texts[presentIndex()];

// The limits: their boxes, in which unit they are typed, and whether they are a line of the chart.
export const LIMITS = [
  { name: "max_caused", id: "max-caused", per: 100, line: null, above: true },
  { name: "max_certain", id: "max-certain", per: 100, line: null, above: true },
  { name: "max_person", id: "max-person", per: 100, line: null, above: true },
  { name: "max_ceiling", id: "max-ceiling", per: 100, line: null, above: true },
  { name: "max_posterior", id: "max-posterior", per: null, line: null },
  { name: "max_epsilon", id: "max-epsilon", per: 1, line: null, above: true },
  { name: "max_error", id: "max-error", per: 1, line: null },
  { name: "max_risk", id: "max-risk", per: 100, line: "exposed" },
  { name: "max_people", id: "max-people", per: 1, line: null },
  { name: "margin", id: "margin", per: 100, line: null },
];

// Why what stands in the box of a limit is not used, or "" where it is. Any number of digits will do, whatever the step.
export function whyUnused({ id, above }) {
  const { min, max, validity, value } = at(id);
  if (validity.patternMismatch) return "Not used: it is not two percentages, such as 5:20.";
  const isLow = above ? value !== "" && Number(value) <= Number(min) : validity.rangeUnderflow;
  return validity.badInput || isLow || validity.rangeOverflow ? `Not used: it is not ${above ? "above" : "from"} ${min} ${above ? "and up " : ""}to ${max}.` : "";
}

export function limitOf(limit) {
  const { value } = at(limit.id);
  if (value.trim() === "" || whyUnused(limit)) return null;
  return limit.per === null ? value.trim() : Number((Number(value) / limit.per).toPrecision(12));
}

const presentLimits = () => Object.fromEntries(LIMITS.map((limit) => [limit.name, limitOf(limit)]));
export const hasLimit = () => Object.values(presentLimits()).some((limit) => limit !== null);

// What the server is asked about: noise at the slider's epsilon, the risk, and the limits.
export const presentSetting = () => ({ ...page.shown, epsilon: page.epsilon, delta: page.positions.deltas[Number(at("delta").value)],
  form: at("form").value, weights: at("weights").value, harmful: at("harmful").value.trim() || null, ...presentLimits() });

export function settingWords() {
  const { mechanism, delta } = presentSetting();
  return `${titleOf("mechanism", mechanism)}, epsilon ${epsilonText()}${delta === null ? "" : `, delta ${page.positions.delta_texts[Number(at("delta").value)]}`}`;
}

// The address holds every choice, so that a reload, the way back, a second tab and a restarted server lose nothing. All of
// it stands after the #, which browsers send to nobody.
const CONTROLS = ["sensitive", "mechanism", "delta", "neighbours",
  "measure", "form", "weights", "max-caused", "max-certain", "harmful",
  "max-person", "max-ceiling", "max-posterior", "max-epsilon", "max-error", "max-risk", "max-people", "margin", "max-tvd", "top", "report-title", "organisation",
  "spreadsheet-safe", "purpose", "cohort", "new-cohort", "observed-levels"];
const PEOPLE = ["person", "contributions", "per_group"];
let wishes = new URLSearchParams();

const valueOf = (control) => (control.type === "checkbox" ? (control.checked ? "yes" : "") : control.value);

// What the address says: the step, the file, the table and what its columns mean, and every control.
export function readAddress() {
  wishes = new URLSearchParams(location.hash.slice(1));
  const [kind, ...name] = (wishes.get("source") ?? "").split(":");
  const bins = wishes.getAll("bin").map((text) => [text.slice(0, text.lastIndexOf("=")), text.slice(text.lastIndexOf("=") + 1)]);
  const chosen = { quasi_identifiers: wishes.getAll("qid"), sensitive: wishes.getAll("about"), bins: Object.fromEntries(bins),
    missing: wishes.get("missing") ?? "category", rows: wishes.get("rows") ?? "",
    ...Object.fromEntries(PEOPLE.map((name) => [name, wishes.get(name)])) };
  return { step: wishes.get("step") ?? "load", kind, name: name.join(":"), source: wishes.get("id"), table: wishes.get("table"),
    counting: wishes.get("counting") === "yes", chosen: wishes.get("chosen") === "yes" ? chosen : null };
}

// Sets controls to what the address says of them, as far as they can take it. What it does not name stays as it is.
export function fulfil(...ids) {
  for (const id of ids.length ? ids : CONTROLS) {
    const [control, wish] = [at(id), wishes.get(id)];
    if (wish === null || control.disabled) continue;
    if (control.type === "checkbox") control.checked = wish === "yes";
    else if (control.tagName !== "SELECT" || [...control.options].some((option) => option.value === wish)) control.value = wish;
  }
}

export const wishedEpsilon = () => Number(wishes.get("epsilon")) || 1;
export const forgetWishes = () => { wishes = new URLSearchParams(); };

// What the columns of the file mean, as their boxes say.
export function chosenColumns() {
  const rows = [...at("columns").tBodies[0].rows];
  const columnsOf = (role) => rows.filter((row) => row.className === role).map((row) => row.dataset.column);
  const bins = rows.filter((row) => row.className === "qid").map((row) => [row.dataset.column, row.querySelector(".bins")?.value.trim()]);
  const [named, most, inOne] = ["person", "contributions", "per-group"].map((id) => (at("several").value && at(id).value) || null);
  return { source: page.source.source, quasi_identifiers: columnsOf("qid"), sensitive: columnsOf("sensitive"),
    bins: Object.fromEntries(bins.filter(([, edges]) => edges)), missing: at("missing").value, rows: at("count").value,
    person: named, contributions: most && Number(most), per_group: inOne && Number(inOne) };
}

export function writeAddress(how = "replaceState") {
  const said = new URLSearchParams({ step: page.step ?? "load" });
  if (page.source) {
    const source = { source: `${page.source.kind}:${page.source.name}`, id: page.source.source };
    const chosen = page.table?.chosen ?? chosenColumns();
    const { quasi_identifiers: keys, sensitive, bins, missing, rows } = chosen;
    for (const [name, value] of Object.entries({ ...source, chosen: "yes" })) said.set(name, value);
    at("to-sets").href = `/sets#${new URLSearchParams(source)}`;
    keys.forEach((name) => said.append("qid", name));
    sensitive.forEach((name) => said.append("about", name));
    Object.entries(bins).forEach(([name, edges]) => said.append("bin", `${name}=${edges}`));
    if (missing !== "category") said.set("missing", missing);
    if (rows) said.set("rows", rows);
    for (const name of PEOPLE) if (chosen[name]) said.set(name, chosen[name]);
    if (page.counting) said.set("counting", "yes");
  }
  if (page.table) {
    said.set("table", page.table.table);
    said.set("epsilon", page.epsilon);
    for (const id of CONTROLS) if (valueOf(at(id)) !== "" && !at(id).disabled) said.set(id, valueOf(at(id)));
  } else for (const [name, wish] of wishes) if (!said.has(name) && (CONTROLS.includes(name) || name === "epsilon")) said.set(name, wish);
  if (page.table) wishes = said; // a table that is counted again takes the choices as they are now
  const hash = `#${said}`;
  if (hash !== location.hash) history[how](null, "", hash);
}
