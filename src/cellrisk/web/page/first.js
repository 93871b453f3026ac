// What cannot wait for the page: a plain script, which ends before anything is shown and before plotly is loaded.
"use strict";

{
  // Plotly carries the style sheet of its maps and adds it when it loads. The page has no maps, and its
  // Content-Security-Policy allows no style elements: leave them out before the browser has to refuse them.
  const [head, append] = [document.head, document.head.appendChild];
  head.appendChild = (node) => (node instanceof HTMLStyleElement ? node : append.call(head, node));

  document.documentElement.dataset.theme = localStorage.getItem("cellrisk-theme") ?? "";
}
