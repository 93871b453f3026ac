// What cannot wait for the page: a plain script, which ends before anything is shown.
"use strict";

document.documentElement.dataset.theme = localStorage.getItem("cellrisk-theme") ?? "";
