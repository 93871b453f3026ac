// What the page and the page of sets have in common: a theme, a source that is read, what its rows are, code to copy.
import { announce, at, setOptions, showError } from "./elements.js";
import { size } from "./numbers.js";
import { ask, previewOf, work } from "./server.js";

// Listens to elements: actions by the name of the event, then by the id of the element.
export function watchElements(actions) {
  for (const [name, byElement] of Object.entries(actions)) {
    for (const [id, action] of Object.entries(byElement)) at(id).addEventListener(name, action);
  }
}

export function watchTheme() {
  at("theme").value = localStorage.getItem("cellrisk-theme") ?? "";
  at("theme").addEventListener("change", () => {
    localStorage.setItem("cellrisk-theme", at("theme").value);
    document.documentElement.dataset.theme = at("theme").value;
  });
}

// A file may be dropped anywhere.
export function watchDrops(take) {
  const zone = at("drop");
  for (const name of ["dragenter", "dragover"]) zone.addEventListener(name, () => zone.classList.add("over"));
  for (const name of ["dragleave", "drop"]) zone.addEventListener(name, () => zone.classList.remove("over"));
  for (const name of ["dragover", "drop"]) window.addEventListener(name, (event) => event.preventDefault());
  window.addEventListener("drop", (event) => take(event.dataTransfer.files[0]));
}

export async function showFiles() {
  const answer = await work(at("folder-status"), null, () => ask("GET", "/api/files"));
  if (!answer) return;
  setOptions(at("folder-file"), answer.files.map(({ path, bytes }) => [path, `${path} (${size(bytes)})`]));
  at("folder-way").hidden = answer.files.length === 0;
}

// The buttons that open the example and a file of the folder.
export const openers = (load) => ({
  "try-adult": () => load("Reading the example", () => ask("POST", "/api/sources", { example: "adult" })),
  "open-file": () => load("Reading the file", () => ask("POST", "/api/sources", { path: at("folder-file").value })),
});

// Sends a file that was chosen in a box; one that is too large is refused in a place of the page.
export function upload(file, server, load, box = "file", place = "load-status") {
  const limit = server?.upload_limit ?? Infinity;
  at(box).value = "";
  if (!file) return;
  const form = new FormData();
  form.append("file", file);
  if (file.size <= limit) load(`Reading ${file.name}`, (turn, report) => ask("POST", "/api/uploads", form, turn, report));
  else showError(at(place), new Error(`The file is ${size(file.size)} large; at most ${size(limit)} can be uploaded.`));
}

// The columns of a source that `begin` opens.
export const readSource = (words, begin) => work(at("load-status"), words,
  async (turn, report) => previewOf((await begin(turn, report)).source, turn, report));

export const GONE = 404;
const AGAIN = { file: (name) => ({ path: name }), example: () => ({ example: "adult" }) };

// The columns of a source that an address names. One that the server no longer has is opened again; an upload is lost.
export function readAgain({ source, name, kind }, lose, kept) {
  return work(at("load-status"), `Reading ${name}`, (turn, report) => previewOf(source, turn, report).catch(async (error) => {
    if (error.status !== GONE) throw error;
    if (!(kind in AGAIN)) {
      lose();
      throw new Error(`The server no longer has ${name}, which was uploaded. Choose the file again: ${kept}.`);
    }
    return previewOf((await ask("POST", "/api/sources", AGAIN[kind](name))).source, turn, report);
  }));
}

// What each row is: nothing said, a person whatever it looks like, or a cell with its count in a column.
export function offerCounts({ columns, suggested: { counts: [counted] } }, chosen) {
  const numbers = columns.filter(({ kind }) => kind === "number");
  setOptions(at("count"), [["", counted ? "please choose" : "one person"], ["people", counted ? "one person" : "one person, though rows look like counts"],
    ...numbers.map(({ name }) => [`in ${name}`, `a cell, counted in ${name}`])], chosen);
}

export const readCount = (rows) => (rows === "" ? null : rows === "people" ? false : rows.slice("in ".length));

export async function copyCode(event) {
  const [button, code] = [event.currentTarget, at(event.currentTarget.dataset.copy)];
  await navigator.clipboard?.writeText(code.textContent).catch(() => getSelection().selectAllChildren(code));
  button.textContent = "Copied";
  announce("Copied.");
  setTimeout(() => { button.textContent = "Copy"; }, 2000);
}

export const printedLine = (source) => `${source?.name ?? ""}, ${new Date().toLocaleString([], { dateStyle: "long", timeStyle: "short" })}`;
