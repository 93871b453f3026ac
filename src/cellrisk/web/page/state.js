// What the page knows: the answers it shows, and what its controls say.
import { at } from "./elements.js";
import { claim } from "./numbers.js";

export const page = {
  server: null, // what /api/state says
  source: null, // the file that is loaded, with its columns
  table: null, // the counted table, and what was chosen for it
  positions: null, // every slider position of what is shown
  shown: null, // of which sensitive column, mechanism, neighbours and measure these are
  shipped: new Map(), // positions that were shipped before, by what was asked
  certainty: null, // what an attacker can be sure of along epsilon, once it is known
  epsilon: 1, // what the slider shows; kept when the mechanism changes
  admissible: null, // what the server says of the limits
  perturbed: null, // what a perturbation gives away, where one takes the place of a mechanism
  ...{ map: null, compared: null, riskiest: null }, // the last answers to these
  order: { column: "risk", descending: true },
  seed: 1,
};

export const named = (list) => page.server[list].map((each) => [each.name, each.title, each.paper]);
export const titleOf = (list, name) => page.server[list].find((each) => each.name === name)?.title ?? name;

export const presentIndex = () => Number(at("epsilon").value);
export const presentRow = () => page.positions.rows[`${page.shown.measure}/${at("weights").value}/${at("delta").value}`];
export const presentFigures = () => page.positions.figures[at("delta").value];

// The limits: their boxes, in which unit they are typed, and whether they are a line of the chart.
export const LIMITS = [
  { name: "max_caused", id: "max-caused", per: 100, line: "caused", above: true },
  { name: "max_certain", id: "max-certain", per: 100, line: "sure", above: true },
  { name: "max_ceiling", id: "max-ceiling", per: 100, line: null, above: true },
  { name: "max_epsilon", id: "max-epsilon", per: 1, line: null, above: true },
  { name: "max_risk", id: "max-risk", per: 100, line: "exposed" },
  { name: "max_people", id: "max-people", per: 1, line: null },
  { name: "margin", id: "margin", per: 100, line: null },
];

// Why what stands in the box of a limit is not used, or "" where it is. Any number of digits will do, whatever the step.
export function whyUnused({ id, above }) {
  const { min, max, validity, value } = at(id);
  const isLow = above ? value !== "" && Number(value) <= Number(min) : validity.rangeUnderflow;
  return validity.badInput || isLow || validity.rangeOverflow ? `Not used: it is not ${above ? "above" : "from"} ${min} ${above ? "and up " : ""}to ${max}.` : "";
}

export function limitOf(limit) {
  const { value } = at(limit.id);
  return value === "" || whyUnused(limit) ? null : Number((Number(value) / limit.per).toPrecision(12));
}

export const isPerturbed = () => at("protection").value === "perturbation";

// What is asked of a perturbation: a rule, or the table that was uploaded. Limits on an epsilon are no limits on it.
export function presentPerturbation() {
  const [kind, below] = [at("perturbation").value, at("suppress-below")];
  const isTable = kind === "table";
  const { max_epsilon: _, margin: __, ...limits } = presentLimits();
  return { ...Object.fromEntries(["sensitive", "mechanism", "measure", "form", "weights"].map((id) => [id, at(id).value])), delta: null,
    rule: isTable ? null : kind === "rule" ? at("rule").value.trim() : kind, uploaded: isTable ? at("keys").value.split(" ")[0] : null,
    suppress_below: isTable && below.value !== "" && below.checkValidity() ? Number(below.value) : null, ...limits };
}

const presentLimits = () => Object.fromEntries(LIMITS.map((limit) => [limit.name, limitOf(limit)]));
export const hasLimit = () => Object.values(presentLimits()).some((limit) => limit !== null);

export function presentSetting() {
  return { ...page.shown, epsilon: page.epsilon, delta: page.positions.deltas[Number(at("delta").value)],
    form: at("form").value, weights: at("weights").value, ...presentLimits() };
}

export function settingWords() {
  const { mechanism, delta, epsilon } = presentSetting();
  return `${titleOf("mechanisms", mechanism)}, epsilon ${claim(epsilon)}${delta === null ? "" : `, delta ${claim(delta)}`}`;
}
