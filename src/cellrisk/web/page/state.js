// What the page knows: the answers it shows, and what its controls say.
import { at } from "./elements.js";
import { short } from "./numbers.js";

export const page = {
  server: null, // what /api/state says
  source: null, // the file that is loaded, with its columns
  table: null, // the counted table, and what was chosen for it
  positions: null, // every slider position of what is shown
  shown: null, // of which sensitive column, mechanism, neighbours and measure these are
  shipped: new Map(), // positions that were shipped before, by what was asked
  epsilon: 1, // what the slider shows; kept when the mechanism changes
  limit: null, // the largest risk accepted
  admissible: null, // what the server says of that limit
  ...{ map: null, compared: null, riskiest: null }, // the last answers to these
  order: { column: "risk", descending: true },
  seed: 1,
};

export const named = (list) => page.server[list].map((each) => [each.name, each.title]);
export const titleOf = (list, name) => page.server[list].find((each) => each.name === name)?.title ?? name;

export const presentIndex = () => Number(at("epsilon").value);
export const presentRow = () => page.positions.rows[`${page.shown.measure}/${at("weights").value}/${at("delta").value}`];

export function presentSetting() {
  return { ...page.shown, epsilon: page.epsilon, delta: page.positions.deltas[Number(at("delta").value)],
    form: at("form").value, weights: at("weights").value, max_risk: page.limit };
}

export function settingWords() {
  const { mechanism, delta, epsilon } = presentSetting();
  return `${titleOf("mechanisms", mechanism)}, epsilon ${short(epsilon)}${delta === null ? "" : `, delta ${short(delta)}`}`;
}
