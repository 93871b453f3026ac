// The five steps, as the links at the top show them.
import { at } from "./elements.js";
import { page } from "./state.js";

// Steps that have nothing to show yet cannot be followed.
export function markSteps() {
  for (const link of document.querySelectorAll(".steps a")) {
    const early = !page.table && !["#load", "#ledger"].includes(link.hash);
    link.ariaDisabled = early ? "true" : null;
    link.tabIndex = early ? -1 : 0;
  }
}

export function watchSteps() {
  const links = new Map([...document.querySelectorAll(".steps a")].map((link) => [link.hash.slice(1), link]));
  const watcher = new IntersectionObserver((entries) => entries.filter((entry) => entry.isIntersecting).forEach((entry) => {
    for (const [id, link] of links) link.setAttribute("aria-current", id === entry.target.id ? "step" : "false");
  }), { rootMargin: "-45% 0px -50% 0px" });
  for (const id of links.keys()) watcher.observe(at(id));
  markSteps();
}
