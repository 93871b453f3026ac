// What the page of sets knows, and how a set is said: as a request, as boxes, and in the address. All of the address stands
// after the #, which browsers send to nobody.
import { readCount } from "./both.js";
import { at } from "./elements.js";

export const known = {
  server: null, // what /api/state says
  source: null, // the file that is loaded, with its columns
  tables: [], // one for each card: what its boxes say
  levels: [], // declared labels: { column, values }
  answer: null, // what was counted last
  counted: null, // of which request that is
  entry: "draft", // whether the present entry of the browser's history is of a set that was counted
};

let keys = 0;
export const newKey = () => { keys += 1; return keys; };

const NUMBERS = ["epsilon", "delta", "threshold"];
const WORDS = ["mechanism", "neighbours", "noise", "missing", "outside"];
const USUAL = { mechanism: "geometric", neighbours: "add-remove", noise: "independent", missing: "category", outside: "error" };
export const ENDS = ["from", "above", "to", "below"];

const isText = (value) => typeof value === "string";
const isPlain = (value) => isText(value) || typeof value === "boolean" || (typeof value === "number" && Number.isFinite(value));
const listOf = (value) => (Array.isArray(value) ? value : [value]).filter(isPlain);
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

export const columnOf = (name) => known.source?.columns.find((column) => column.name === name);
export const takesDelta = (mechanism) => Boolean(known.server.mechanisms.find(({ name }) => name === mechanism)?.delta);
const numberIn = (text) => (text === "" ? null : Number(text));

// A table as its boxes hold it, from how a request says it. What has another shape is left out: addresses and files may hold
// anything.
export function makeTable(given = {}) {
  const bins = isObject(given.bins) ? Object.entries(given.bins).filter(([, text]) => isText(text)) : [];
  const number = (name) => (typeof given[name] === "number" ? String(given[name]) : "");
  return { key: newKey(), name: isText(given.name) ? given.name : "", qid: listOf(given.quasi_identifiers).filter(isText), bins: Object.fromEntries(bins),
    where: makeConditions(given.where), mechanism: isText(given.mechanism) ? given.mechanism : "",
    ...Object.fromEntries(NUMBERS.map((name) => [name, number(name)])) };
}

function makeConditions(where) {
  if (!isObject(where)) return [];
  return Object.entries(where).flatMap(([column, value]) => (isObject(value)
    ? Object.entries(value).filter(([word]) => word === "not" || ENDS.includes(word)).map(([word, values]) => ({ column, word, values: listOf(values) }))
    : [{ column, word: "is", values: listOf(value) }]));
}

// The conditions of a table as a set file says them.
function sayWhere(conditions) {
  const said = {};
  for (const { column, word, values } of conditions) {
    const value = ENDS.includes(word) ? Number(values[0]) : values.length === 1 ? values[0] : values;
    said[column] = word === "is" ? value : { ...said[column], [word]: value };
  }
  return conditions.length ? said : null;
}

// What a box of values holds: texts, and numbers where the column holds numbers.
export function readValues(text, column) {
  const isNumber = columnOf(column)?.kind === "number";
  return text.split("|").map((each) => each.trim()).filter(Boolean)
    .map((each) => (isNumber && Number.isFinite(Number(each)) ? Number(each) : each));
}

const bare = (given) => Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null));

function sayTable(table) {
  const bins = Object.entries(table.bins).filter(([name, text]) => text.trim() && table.qid.includes(name)).map(([name, text]) => [name, text.trim()]);
  return bare({ name: table.name.trim() || null, quasi_identifiers: table.qid, bins: Object.fromEntries(bins), where: sayWhere(table.where),
    mechanism: table.mechanism || null, ...Object.fromEntries(NUMBERS.map((name) => [name, numberIn(table[name])])) });
}

// What each row is: nothing said, a person whatever it looks like, or a cell with its count in a column.
const sayCount = (count) => (count === false ? "people" : isText(count) ? `in ${count}` : "");

// The whole set as the server is asked about it.
export function saySet() {
  const words = Object.fromEntries(WORDS.map((name) => [name, at(name).value]));
  const numbers = Object.fromEntries(NUMBERS.map((name) => [name, numberIn(at(name).value)]));
  const levels = known.levels.filter(({ column, values }) => column && values.length).map(({ column, values }) => [column, values]);
  return bare({ sensitive: at("sensitive").value, ...words, ...numbers, count: readCount(at("count").value), levels: Object.fromEntries(levels),
    tables: known.tables.map(sayTable) });
}

// Sets the boxes for all tables, and gives the cards, to what a request says.
export function takeSet(given) {
  const has = (id, value) => [...at(id).options].some((option) => option.value === value);
  if (has("sensitive", given.sensitive)) at("sensitive").value = given.sensitive;
  for (const name of WORDS) at(name).value = has(name, given[name]) ? given[name] : USUAL[name];
  for (const name of NUMBERS) at(name).value = typeof given[name] === "number" ? String(given[name]) : "";
  at("count").value = has("count", sayCount(given.count)) ? sayCount(given.count) : "";
  known.levels = Object.entries(isObject(given.levels) ? given.levels : {}).map(([column, values]) => ({ key: newKey(), column, values: listOf(values) }));
  known.tables = (Array.isArray(given.tables) ? given.tables : []).filter(isObject).map(makeTable);
}

// Every column that a set names, for those that a file does not have.
export function columnsOf(given) {
  const tables = Array.isArray(given.tables) ? given.tables.map(makeTable) : [];
  const named = tables.flatMap(({ qid, where }) => [...qid, ...where.map(({ column }) => column)]);
  return [...new Set([given.sensitive, ...(isText(given.count) ? [given.count] : []), ...Object.keys(given.levels ?? {}), ...named].filter(isText))];
}

export const isStale = () => JSON.stringify(saySet()) !== known.counted;

export function writeAddress(how = "replaceState") {
  const said = new URLSearchParams();
  if (known.source) {
    said.set("source", `${known.source.kind}:${known.source.name}`);
    said.set("id", known.source.source);
    at("to-one").href = `/#step=load&${said}`;
    const { tables, ...others } = saySet();
    said.set("set", JSON.stringify(others));
    tables.forEach((table) => said.append("table", JSON.stringify(table)));
    if (known.counted && !isStale()) said.set("counted", "yes");
  }
  const hash = `#${said}`;
  if (hash !== location.hash) history[how](null, "", hash);
}

const parse = (text) => {
  try { return JSON.parse(text); } catch { return null; }
};

// What the address says: the file, the set, and whether it was counted.
export function readAddress() {
  const said = new URLSearchParams(location.hash.slice(1));
  const [kind, ...name] = (said.get("source") ?? "").split(":");
  const others = parse(said.get("set"));
  return { kind, name: name.join(":"), source: said.get("id"), counted: said.get("counted") === "yes",
    chosen: isObject(others) ? { ...others, tables: said.getAll("table").map(parse) } : null };
}
