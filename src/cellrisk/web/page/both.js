// What the page and the page of sets have in common: a theme, a source that is read, code to copy, files to fetch.
import { announce, at, copy, make, setOptions, showError, showNote } from "./elements.js";
import { ask, follow, work } from "./server.js";

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
  setOptions(at("folder-file"), answer.files.map(({ path, size }) => [path, `${path} (${size})`]));
  at("folder-way").hidden = answer.files.length === 0;
}

// The buttons that open the example and a file of the folder.
export const openers = (load) => ({
  "try-adult": () => load("Reading the example", () => ask("POST", "/api/sources", { example: "adult" })),
  "open-file": () => load("Reading the file", () => ask("POST", "/api/sources", { path: at("folder-file").value })),
});

// Sends a file that was chosen in a box; one that is too large is refused in a place of the page.
export function upload(file, server, load, box = "file", place = "load-status") {
  at(box).value = "";
  if (!file) return;
  const path = `/api/uploads?${new URLSearchParams({ name: file.name })}`;
  if (file.size <= (server?.upload_limit ?? Infinity)) load(`Reading ${file.name}`, (turn, report) => ask("POST", path, file, turn, report));
  else showError(at(place), new Error(`${file.name} is too large; at most ${server.upload_limit_text} can be uploaded.`));
}

const columnsOf = async (source, turn, report) => follow(await ask("GET", `/api/sources/${source}`), turn, report);

// The columns of a source that `begin` opens.
export const readSource = (words, begin) => work(at("load-status"), words,
  async (turn, report) => columnsOf((await begin(turn, report)).source, turn, report));

export const GONE = 404;
const AGAIN = { file: (name) => ({ path: name }), example: () => ({ example: "adult" }) };

// The columns of a source that an address names. One that the server no longer has is opened again; an upload is lost.
export function readAgain({ source, name, kind }, lose, kept) {
  return work(at("load-status"), `Reading ${name}`, (turn, report) => columnsOf(source, turn, report).catch(async (error) => {
    if (error.status !== GONE) throw error;
    if (!(kind in AGAIN)) {
      lose();
      throw new Error(`The server no longer has ${name}, which was uploaded. Choose the file again: ${kept}.`);
    }
    return columnsOf((await ask("POST", "/api/sources", AGAIN[kind](name))).source, turn, report);
  }));
}

export const copyCode = ({ currentTarget: button }) => copy(button, at(button.dataset.copy).textContent, at(button.dataset.copy));

// Has the server write a file, and saves it. Gives whether that was done.
export async function fetchFile(place, words, begin) {
  const file = await work(place, words, begin);
  if (!file) return false;
  const link = make("a", { href: file.url, download: file.name }, file.name);
  showNote(place, "Saved: ", link, ` (${file.size})`, file.remark ? `. ${file.remark}` : "");
  announce(`Saved: ${file.name}`);
  link.click();
  return true;
}
