// Step 3: this setting beside another one.
import { drawComparison } from "./charts.js";
import { announce, at, make, makeTable, setItems, setOptions, write } from "./elements.js";
import { askTable, work } from "./server.js";
import { page, presentSetting } from "./state.js";

export function showCompareFields() {
  const { quasi_identifiers: keys, bins } = page.table.chosen;
  setOptions(at("b-mechanism"), page.server.choices.mechanism, at("mechanism").value);
  at("b-epsilon").value = page.epsilon;
  at("b-keys").replaceChildren(...keys.map((name, place) => make("div", { class: "check" },
    make("input", { type: "checkbox", id: `b-key-${place}`, checked: true, "data-key": name }), make("label", { for: `b-key-${place}` }, name))));
  at("b-bins").replaceChildren(...Object.entries(bins).map(([name, value], place) => make("div", { class: "field short" },
    make("label", { for: `b-bins-${place}` }, `Bins of ${name}`), make("input", { id: `b-bins-${place}`, value, "data-bins": name }))));
}

function otherSetting() {
  const keys = [...at("b-keys").querySelectorAll(":checked")].map((box) => box.dataset.key);
  const bins = [...at("b-bins").querySelectorAll("input")].map((input) => [input.dataset.bins, input.value.trim()]);
  return { mechanism: at("b-mechanism").value, epsilon: Number(at("b-epsilon").value), delta: presentSetting().delta,
    quasi_identifiers: keys, bins: Object.fromEntries(bins.filter(([name, edges]) => edges && keys.includes(name))) };
}

export async function compareSettings() {
  page.compared = await work(at("compare-status"), "Comparing", () => askTable("compare", { ...presentSetting(), other: otherSetting() }));
  at("compare-area").hidden = !page.compared;
  if (!page.compared) return;
  const { labels, rows, sentence } = page.compared;
  write("compare-sentence", sentence);
  setItems(at("compare-labels"), labels);
  at("compare-table").replaceChildren(makeTable("Both settings", [""], ["A", "B"], rows));
  drawComparison();
  announce(sentence);
}
