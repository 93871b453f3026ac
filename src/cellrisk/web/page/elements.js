// Elements of the page: found, made and filled.

// Words for people to read: what cannot be seen, such as a change of direction, is written out. Names may hold anything.
const visible = (words) => String(words).replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, (each) => ("\n\t".includes(each) ? each
  : Array.from({ length: each.length }, (_, place) => `\\u${each.charCodeAt(place).toString(16).padStart(4, "0")}`).join("")));
export const at = (id) => document.getElementById(id);
export const write = (id, words) => { at(id).textContent = visible(words); };
export const announce = (words) => write("announcer", words);
export const showError = (place, error) => place.replaceChildren(make("p", { class: "error", role: "alert" }, error.message));
export const showNote = (place, ...words) => place.replaceChildren(make("p", { class: "note" }, ...words));
export const setItems = (list, lines) => list.replaceChildren(...lines.map((line) => make("li", {}, line)));

export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null).map((child) => (child instanceof Node ? child : visible(child))));
  return element;
}

export function setOptions(select, options, chosen) {
  select.replaceChildren(...options.map(([value, words]) => make("option", { value }, words)));
  if (chosen !== undefined) select.value = chosen;
}

// A table of plain cells: columns of words, then columns of numbers.
export function makeTable(caption, words, numbers, rows) {
  const side = (place) => (place < words.length ? null : "right");
  const head = [...words, ...numbers].map((title, place) => make("th", { scope: "col", class: side(place) }, title));
  const cellOf = (cell, place) => make(place ? "td" : "th", { scope: place ? null : "row", class: side(place) }, cell);
  return make("table", {}, make("caption", { class: "unseen" }, caption), make("thead", {}, make("tr", {}, ...head)),
    make("tbody", {}, ...rows.map((row) => make("tr", {}, ...row.map(cellOf)))));
}

export function setFigures(list, figures) {
  list.replaceChildren(...figures.map(([words, value, more, kind]) => make("div", { class: kind }, make("dt", {}, words),
    make("dd", {}, make("span", { class: "value" }, value), more ? make("span", { class: "more" }, more) : null))));
}

// A verdict that is good, bad or neither: its answer, lines below it, and by which policy.
export function setVerdict(place, kind, answer, lines = [], policy = null) {
  place.className = kind ? `verdict ${kind}` : "verdict";
  place.replaceChildren(make("p", { class: "answer" }, answer), ...lines.map((words) => make("p", {}, words)),
    ...(policy === null ? [] : [make("p", { class: "quiet" }, policy)]));
}

const waiting = new Map();

// Runs once the calls under one name have been quiet for a while.
export function later(name, milliseconds, action) {
  clearTimeout(waiting.get(name));
  waiting.set(name, setTimeout(action, milliseconds));
}

export function stopWaiting() {
  for (const timer of waiting.values()) clearTimeout(timer);
}

// Copies a text and says so on the button that was pressed.
export async function copy(button, text, element) {
  await navigator.clipboard?.writeText(text).catch(() => element && getSelection().selectAllChildren(element));
  button.textContent = "Copied";
  announce("Copied.");
  setTimeout(() => { button.textContent = "Copy"; }, 2000);
}
