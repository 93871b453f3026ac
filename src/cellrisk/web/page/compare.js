// Step 3: this setting beside another one.
import { drawComparison } from "./charts.js";
import { announce, at, make, makeTable, setOptions, write } from "./elements.js";
import { claim, count, percent, short, wholePeople } from "./numbers.js";
import { askTable, work } from "./server.js";
import { named, page, presentSetting } from "./state.js";

export function showCompareFields() {
  const { quasi_identifiers: keys, bins } = page.table.chosen;
  setOptions(at("b-mechanism"), named("mechanisms"), at("mechanism").value);
  at("b-epsilon").value = page.epsilon;
  at("b-keys").replaceChildren(...keys.map((name, place) => make("div", { class: "check" },
    make("input", { type: "checkbox", id: `b-key-${place}`, checked: true, "data-key": name }), make("label", { for: `b-key-${place}` }, name))));
  at("b-bins").replaceChildren(...Object.entries(bins).map(([name, value], place) => make("div", { class: "field short" },
    make("label", { for: `b-bins-${place}` }, `Bins of ${name}`), make("input", { id: `b-bins-${place}`, value, "data-bins": name }))));
}

function otherSetting() {
  const mechanism = at("b-mechanism").value;
  const needsDelta = page.server.mechanisms.find((each) => each.name === mechanism).delta;
  const keys = [...at("b-keys").querySelectorAll(":checked")].map((box) => box.dataset.key);
  const bins = [...at("b-bins").querySelectorAll("input")].map((input) => [input.dataset.bins, input.value.trim()]);
  return { mechanism, epsilon: Number(at("b-epsilon").value), delta: needsDelta ? presentSetting().delta ?? page.table.default_delta : null,
    quasi_identifiers: keys, bins: Object.fromEntries(bins.filter(([name, edges]) => edges && keys.includes(name))) };
}

export async function compareSettings() {
  const { sensitive, measure, form, weights, neighbours, mechanism, epsilon, delta } = presentSetting();
  page.compared = await work(at("compare-status"), "Comparing",
    () => askTable("compare", { a: { mechanism, epsilon, delta }, b: otherSetting(), sensitive, measure, form, weights, neighbours }));
  at("compare-area").hidden = !page.compared;
  if (!page.compared) return;
  const { a, b, sentence } = page.compared;
  const rows = [["cells", (side) => count(side.cells)], ["epsilon", (side) => claim(side.at.epsilon)], ["risk", (side) => percent(side.at.risk)],
    ["people exposed", (side) => wholePeople(side.at.people)]];
  write("compare-sentence", sentence);
  at("compare-labels").replaceChildren(make("li", {}, `A: ${a.label}`), make("li", {}, `B: ${b.label}`));
  at("compare-table").replaceChildren(makeTable("Both settings", [""], ["A", "B"], rows.map(([words, valueOf]) => [words, valueOf(a), valueOf(b)])));
  drawComparison();
  announce(sentence);
}
