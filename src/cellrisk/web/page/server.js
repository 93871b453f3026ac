// Asking the server: one question, or long work with progress and a way to cancel.
import { announce, make, showError, showNote } from "./elements.js";
import { page } from "./state.js";

export const askTable = (what, body) => ask("POST", `/api/tables/${page.table.table}/${what}`, body);

// Asks by XMLHttpRequest, because fetch cannot say how far an upload is. A body that is a file is sent as it is.
export function ask(method, path, body, turn, report) {
  return new Promise((done, failed) => {
    const request = new XMLHttpRequest();
    const refusal = () => Object.assign(new Error(request.response?.error ?? `The server refused this (${request.status}).`), { status: request.status });
    request.open(method, path);
    request.responseType = "json";
    request.setRequestHeader("X-Cellrisk", "1");
    request.onload = () => (request.status < 300 ? done(request.response) : failed(refusal()));
    request.onerror = () => failed(new Error("The server does not answer. Is cellrisk serve still running? Start it again: every choice is in the address of this page."));
    request.onabort = () => failed(new Error("Cancelled."));
    if (turn) turn.abort = () => request.abort();
    if (report) request.upload.onprogress = (event) => report(event.loaded / event.total, "uploading");
    const isFile = body instanceof Blob;
    if (body) request.setRequestHeader("Content-Type", isFile ? "application/octet-stream" : "application/json");
    request.send(isFile ? body : JSON.stringify(body));
  });
}

const turns = new Map();

// One piece of work at a time in each place: a new one ends the one before.
function takeTurn(place) {
  turns.get(place)?.end();
  const turn = { over: false, cancelled: false, job: null, abort: () => {} };
  turn.stop = () => {
    turn.abort();
    if (turn.job) ask("DELETE", `/api/jobs/${turn.job}`).catch(() => {});
  };
  turn.end = () => { turn.over = true; turn.stop(); };
  turns.set(place, turn);
  return turn;
}

export function endTurns() {
  for (const turn of turns.values()) turn.end();
}

function showProgress(place, words, turn) {
  const step = make("span", { class: "doing" }, words);
  const bar = make("progress", { max: 1, "aria-label": words });
  const cancel = make("button", { type: "button", class: "small" }, "Cancel");
  cancel.addEventListener("click", () => { cancel.disabled = turn.cancelled = true; turn.stop(); });
  place.replaceChildren(make("div", { class: "progress" }, step, bar, cancel));
  announce(words);
  return (progress, what) => {
    if (typeof progress === "number") bar.value = progress;
    else bar.removeAttribute("value");
    step.textContent = what ? `${words}: ${what}` : words;
  };
}

// Asks in a place of the page and gives the answer, or null where there is none: an error is shown there, and only
// the last question asked there is answered. With words it shows progress and a way to cancel.
export async function work(place, words, begin) {
  const turn = takeTurn(place);
  const report = words ? showProgress(place, words, turn) : () => {};
  try {
    const result = await follow(await begin(turn, report), turn, report);
    if (turn.over) return null;
    if (turn.cancelled) throw new Error("Cancelled.");
    place.replaceChildren();
    return result;
  } catch (error) {
    if (turn.over) return null;
    if (turn.cancelled) showNote(place, "Cancelled.");
    else showError(place, error);
    return null;
  }
}

// The answer itself, or the result of the job that it names instead.
export async function follow(answer, turn, report) {
  if (!answer.job) return answer;
  turn.job = answer.job;
  if (turn.over || turn.cancelled) turn.stop();
  for (let pause = 60; ; pause = Math.min(1.5 * pause, 500)) {
    if (turn.over || turn.cancelled) throw new Error("Cancelled.");
    const { state, progress, step, result, error } = await ask("GET", `/api/jobs/${answer.job}`);
    if (["done", "failed", "cancelled"].includes(state)) turn.job = null;
    if (state === "done") return result;
    if (turn.job === null) throw new Error(error ?? "Cancelled.");
    report(progress, step);
    await new Promise((resume) => setTimeout(resume, pause));
  }
}
