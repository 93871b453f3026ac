// The cards of a set: a table each, with its columns, its noise and its people; and the labels that are declared.
import { announce, at, make, setOptions } from "./elements.js";
import { ENDS, columnOf, known, makeTable, newKey, readValues, takesDelta } from "./set_state.js";

const WORDS = [["is", "is"], ["not", "is not"], ["from", "from (at least)"], ["above", "above"], ["to", "to (at most)"], ["below", "below"]];
const open = new Set(); // the keys of cards that are unfolded
let tell = () => {}; // what is called when a box changes

export const watchCards = (action) => { tell = action; };
const boxOf = (table, name) => at(`t${table.key}-${name}`);
const numberOf = (table) => known.tables.indexOf(table) + 1;
const usable = () => known.source.columns.filter(({ kind }) => kind !== "other");
const columns = () => usable().filter(({ name }) => name !== at("sensitive").value);
const textOf = (values) => values.join("|");

// A field with a label, of which the name says the table too.
function field(table, name, label, element, kind = "") {
  element.id = `t${table.key}-${name}`;
  element.setAttribute("aria-label", `${label} of table ${numberOf(table)}`);
  return make("div", { class: `field ${kind}` }, make("label", { for: element.id }, label), element);
}

function box(table, name, label, attributes) {
  const write = (event) => { table[name] = event.target.value; changed(table); };
  return field(table, name, label, make("input", { value: table[name], autocomplete: "off", input: write, ...attributes }), attributes.type === "number" ? "short" : "");
}

const numberBox = (table, name, label) => box(table, name, label, { type: "number", min: 0, step: "any", inputmode: "decimal", placeholder: "as for all" });

function changed(table) {
  const line = at(`t${table.key}`)?.querySelector("summary");
  line?.replaceChildren(...summary(table));
  tell();
}

// What a folded card says.
function summary(table) {
  const mechanism = known.server.mechanisms.find(({ name }) => name === table.mechanism)?.title;
  const noise = [mechanism, table.epsilon && `epsilon ${table.epsilon}`, table.threshold && `threshold ${table.threshold}`].filter(Boolean).join(", ");
  const people = table.where.map(({ column, word, values }) => `${column} ${WORDS.find(([name]) => name === word)[0].replace("not", "is not")} ${values.join(" or ") || "…"}`).join(", ");
  const parts = [table.qid.join(", ") || "no column yet", noise, people].filter(Boolean);
  return [make("strong", {}, `${numberOf(table)}${table.name.trim() ? ` ${table.name.trim()}` : ""}`), ` ${parts.join(" · ")}`];
}

function makeMechanism(table) {
  const select = make("select", { change: () => { table.mechanism = select.value; showDelta(table); changed(table); } });
  setOptions(select, [["", "as for all tables"], ...known.server.mechanisms.map(({ name, title }) => [name, title])], table.mechanism);
  return field(table, "mechanism", "Mechanism", select);
}

const mechanismOf = (table) => table.mechanism || at("mechanism").value;
const needsDelta = (table) => takesDelta(mechanismOf(table));
const showDelta = (table) => { boxOf(table, "delta").parentElement.hidden = !needsDelta(table); };

export function showDeltas() {
  known.tables.forEach(showDelta);
  at("delta-field").hidden = !known.tables.some(needsDelta) && !takesDelta(at("mechanism").value);
}

// The columns: a tick each, and a box for bins beside those that hold numbers.
function makeColumns(table) {
  const picks = columns().map(({ name, kind }, place) => {
    const id = `t${table.key}-column-${place}`;
    const bins = kind !== "number" ? null : make("input", { class: "bins", value: table.bins[name] ?? "", placeholder: "5 or 0/18/65", autocomplete: "off", hidden: !table.qid.includes(name),
      "aria-label": `Bins of ${name} in table ${numberOf(table)}: a width, or edges between slashes`, input: () => { table.bins[name] = bins.value; changed(table); } });
    const tick = make("input", { type: "checkbox", id, checked: table.qid.includes(name), change: () => {
      table.qid = tick.checked ? [...table.qid, name] : table.qid.filter((each) => each !== name);
      if (bins) {
        bins.hidden = !tick.checked;
        if (tick.checked && bins.value === "") bins.value = table.bins[name] = usualBins(name, table);
      }
      changed(table);
    } });
    return make("div", { class: "pick-column" }, tick, make("label", { for: id }, name), bins);
  });
  return make("fieldset", { id: `t${table.key}-columns` }, make("legend", {}, "Quasi-identifiers"), make("div", { class: "pick-columns" }, ...picks));
}

// The bins that another table has for a column, or those that are suggested for it.
function usualBins(name, table) {
  const others = known.tables.filter((other) => other !== table && other.qid.includes(name)).map((other) => other.bins[name] ?? "");
  return others.at(-1) ?? known.source.suggested.bins[name] ?? "";
}

// The people: conditions, all of which must hold.
function makePeople(table) {
  const rows = table.where.map((condition, place) => makeCondition(table, condition, place));
  const nobody = rows.length ? null : make("p", { class: "help" }, "Everybody.");
  const add = () => {
    table.where.push({ column: columns()[0].name, word: "is", values: [] });
    redraw(table, `where-${table.where.length - 1}`);
  };
  return make("fieldset", { id: `t${table.key}-people` }, make("legend", {}, "People in it"), nobody, ...rows,
    make("button", { type: "button", class: "small", click: add }, "Add a condition"));
}

function makeCondition(table, condition, place) {
  const named = (what) => `${what} of condition ${place + 1} of table ${numberOf(table)}`;
  const column = make("select", { "aria-label": named("Column"), id: `t${table.key}-where-${place}`, change: () => { condition.column = column.value; reread(); } });
  setOptions(column, columns().map(({ name }) => [name, name]), condition.column);
  const word = make("select", { "aria-label": named("Relation"), change: () => { condition.word = word.value; changed(table); } });
  setOptions(word, WORDS, condition.word);
  const reread = () => { condition.values = readValues(values.value, condition.column); changed(table); };
  const values = make("input", { class: "values", value: textOf(condition.values), placeholder: "a value, or several between |", autocomplete: "off", "aria-label": named("Values"), input: reread });
  const remove = () => {
    table.where.splice(place, 1);
    redraw(table, "people");
  };
  return make("div", { class: "condition" }, column, word, values,
    make("button", { type: "button", class: "small", "aria-label": `Remove condition ${place + 1} of table ${numberOf(table)}`, click: remove }, "Remove"));
}

function makeCard(table) {
  const card = make("details", { class: "card", id: `t${table.key}`, open: open.has(table.key), toggle: () => open[card.open ? "add" : "delete"](table.key) },
    make("summary", {}, ...summary(table)),
    make("div", { class: "row" }, box(table, "name", "Name (may be empty)", { type: "text", maxlength: 100 }), makeMechanism(table), numberBox(table, "epsilon", "Epsilon"),
      numberBox(table, "delta", "Delta"), numberBox(table, "threshold", "Threshold")),
    makeColumns(table), makePeople(table),
    make("div", { class: "buttons" },
      make("button", { type: "button", class: "small", "aria-label": `Copy table ${numberOf(table)}`, click: () => addTable({ ...structuredClone(table), name: "" }) }, "Copy this table"),
      make("button", { type: "button", class: "small", "aria-label": `Remove table ${numberOf(table)}`, click: () => removeTable(table) }, "Remove this table")));
  return card;
}

function unfold(table) {
  open.add(table.key);
  at(`t${table.key}`).open = true;
}

function redraw(table, focus) {
  at(`t${table.key}`).replaceWith(makeCard(table));
  showDelta(table);
  const place = boxOf(table, focus);
  (place.matches("fieldset") ? place.querySelector("button") : place).focus();
  tell();
}

export function showCards() {
  at("table-list").replaceChildren(...known.tables.map(makeCard));
  if (!known.tables.length) at("table-list").append(make("p", { class: "help" }, "None yet."));
  showDeltas();
}

// A new table, unfolded, and the others folded; a copy differs in its key alone.
export function addTable(given = makeTable()) {
  const table = { ...given, key: newKey() };
  known.tables.push(table);
  open.clear();
  open.add(table.key);
  showCards();
  at(`t${table.key}`).querySelector("summary").focus();
  announce(`Table ${numberOf(table)} is added.`);
  tell();
}

function removeTable(table) {
  const place = known.tables.indexOf(table);
  known.tables.splice(place, 1);
  showCards();
  const next = known.tables[Math.min(place, known.tables.length - 1)];
  (next ? at(`t${next.key}`).querySelector("summary") : at("add-table")).focus();
  announce(`Table ${place + 1} is removed.`);
  tell();
}

// A column cannot be what must not be read off and what is known beforehand.
export function dropSensitive() {
  const gone = at("sensitive").value;
  for (const table of known.tables) {
    table.qid = table.qid.filter((name) => name !== gone);
    table.where = table.where.filter(({ column }) => column !== gone);
  }
  showCards();
}

export function showLevels() {
  at("levels").replaceChildren(...known.levels.map((each, place) => {
    const column = make("select", { "aria-label": `Column ${place + 1} with declared labels`, change: () => { each.column = column.value; reread(); } });
    setOptions(column, usable().map(({ name }) => [name, name]), each.column);
    const reread = () => { each.values = readValues(values.value, each.column); tell(); };
    const values = make("input", { class: "values", value: textOf(each.values), placeholder: "labels between |", autocomplete: "off", "aria-label": `Labels of column ${place + 1}`, input: reread });
    const remove = () => { known.levels.splice(place, 1); showLevels(); at("add-levels").focus(); tell(); };
    return make("div", { class: "condition" }, column, values, make("button", { type: "button", class: "small", "aria-label": `Remove the labels of column ${place + 1}`, click: remove }, "Remove"));
  }));
}

export function addLevels() {
  known.levels.push({ key: newKey(), column: at("sensitive").value, values: [] });
  showLevels();
  at("levels").lastElementChild.querySelector("input").focus();
}

// What has to be said in a box before the set can be counted: the box and the words, or null.
export function findFault() {
  const isNumber = (element) => element.checkValidity() && (element.value === "" || Number(element.value) > 0);
  for (const [id, label] of [["epsilon", "Epsilon"], ["delta", "Delta"], ["threshold", "Threshold"]]) {
    if (!isNumber(at(id))) return [at(id), `“${label}” for all tables must be a number above 0.`];
  }
  if (!known.tables.length) return [at("add-table"), "There is no table yet: press “Add a table”."];
  for (const table of known.tables) {
    const fault = findFaultOf(table, isNumber);
    if (fault) {
      unfold(table);
      return fault;
    }
  }
  const [counted] = known.source.suggested.counts;
  const used = new Set([at("sensitive").value, ...known.tables.flatMap(({ qid }) => qid)]);
  if (counted && !used.has(counted) && at("count").value === "") {
    at("more").open = true;
    return [at("count"), `Say under “Each row is” whether a row is one person, or a cell that ${counted} counts.`];
  }
  return null;
}

function findFaultOf(table, isNumber) {
  const whose = `table ${numberOf(table)}`;
  for (const [name, label] of [["epsilon", "Epsilon"], ["delta", "Delta"], ["threshold", "Threshold"]]) {
    if (!isNumber(boxOf(table, name))) return [boxOf(table, name), `“${label}” of ${whose} must be a number above 0.`];
  }
  if (!table.qid.length) return [boxOf(table, "columns").querySelector("input"), `Tick a column under “Quasi-identifiers” of ${whose}.`];
  if (!table.epsilon && at("epsilon").value === "") return [boxOf(table, "epsilon"), `“Epsilon” is empty: fill it in for ${whose}, or once for all tables.`];
  if (needsDelta(table) && !table.delta && at("delta").value === "") return [boxOf(table, "delta"), `“Delta” is empty: the mechanism of ${whose} needs one, such as 0.000001.`];
  for (const [place, { column, word, values }] of table.where.entries()) {
    const box = boxOf(table, `where-${place}`).parentElement.querySelector("input");
    const twice = table.where.slice(0, place).filter((other) => other.column === column);
    if (!values.length) return [box, `“People in it” of ${whose}: write a value for ${column}.`];
    if (ENDS.includes(word) && (values.length > 1 || !Number.isFinite(Number(values[0])))) return [box, `“People in it” of ${whose}: “${word}” takes one number, and ${columnOf(column)?.kind === "number" ? "this is none" : `${column} must hold numbers`}.`];
    if (twice.some((other) => other.word === word || "is" === other.word || word === "is")) return [box, `“People in it” of ${whose} names ${column} twice: put its values into one box, between |.`];
  }
  return null;
}
