"use strict";

// The page works without this script. It hides questions that other answers rule out, and adds inputs.
const form = document.querySelector("form");
const named = (name) => [...form.elements].filter((e) => e.name === name && !e.disabled);
const values = (name) => named(name).filter((e) => !/^(radio|checkbox)$/.test(e.type) || e.checked).map((e) => e.value);
const conditional = [...document.querySelectorAll("[data-if]")];

// Conditions name earlier questions, so one pass in order is enough.
function show() {
  for (const q of conditional) {
    const shown = values(q.dataset.if).some((v) => JSON.parse(q.dataset.equals).includes(v));
    q.hidden = !shown;
    for (const e of q.querySelectorAll("input, select, textarea, button")) e.disabled = !shown;
  }
}

if (form) {
  for (const only of form.querySelectorAll(".only")) only.hidden = true;
  form.addEventListener("input", show);
  addEventListener("pageshow", show); // a browser fills in what was typed before
  show();
  for (const more of form.querySelectorAll("button.more")) {
    more.hidden = false;
    more.addEventListener("click", () => {
      const last = more.previousElementSibling;
      const next = last.cloneNode();
      next.value = "";
      next.id = "";
      last.after(next);
      next.focus();
    });
  }
}
document.querySelector(".summary")?.focus();

// A page that embeds this one may give its frame the height that is needed. Pages without a form have no script.
if (parent !== window) {
  const tell = (height) => parent.postMessage({ formHeight: height }, "*");
  new ResizeObserver(() => tell(document.documentElement.offsetHeight)).observe(document.documentElement);
  addEventListener("pagehide", () => tell(700));
}
