// The five steps: one is open, and the others are a line each that can be opened.
import { redrawCharts } from "./charts.js";
import { at, write } from "./elements.js";
import { page, writeAddress } from "./state.js";

const STEPS = ["load", "see", "decide", "act", "ledger"];
const isEarly = (step) => !page.table && !["load", "ledger"].includes(step);

// What a step has come to, for the line that it folds into.
export const tell = (step, words) => write(`${step}-told`, words);

export function openStep(step, { how = "pushState", focus = true } = {}) {
  page.step = isEarly(step) ? "load" : step;
  for (const each of STEPS) {
    at(each).classList.toggle("open", each === page.step);
    at(each).hidden = isEarly(each);
    at(`${each}-fold`).ariaExpanded = String(each === page.step);
  }
  for (const link of document.querySelectorAll(".steps a")) {
    const early = isEarly(link.dataset.step);
    link.ariaDisabled = early ? "true" : null;
    link.tabIndex = early ? -1 : 0;
    if (link.dataset.step === page.step) link.setAttribute("aria-current", "step");
    else link.removeAttribute("aria-current");
  }
  redrawCharts();
  if (how) writeAddress(how);
  if (!focus) return;
  at(`${page.step}-title`).focus({ preventScroll: true });
  at(page.step).scrollIntoView({ block: "start" });
}

export function watchSteps() {
  for (const step of STEPS) at(`${step}-fold`).addEventListener("click", () => openStep(step));
  for (const link of document.querySelectorAll(".steps a, button.next")) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      if (!isEarly(link.dataset.step)) openStep(link.dataset.step);
    });
  }
}
