"use strict";

// The page works without this script. It hides questions that other answers rule out, adds inputs, and says what the browser would not
// send. A field may have any name, such as "elements" or "action", and hides what the form has by that name: so nothing is asked of it.
const all = (selector) => [...document.querySelectorAll(selector)];
const inputs = () => all("form :is(input, select, textarea)");
const named = (name) => inputs().filter((e) => e.name === name && !e.disabled);
const values = (name) => named(name).filter((e) => !/^(radio|checkbox)$/.test(e.type) || e.checked).map((e) => e.value);

// Numbers are compared as the server stores them.
const canonical = (s) => s.normalize("NFKC").trim().replace(/[٠-٩۰-۹]/g, (d) => d.charCodeAt(0) & 15).replace("−", "-").replace(/[٫,]/, ".")
  .replace(/\.$/, "").replace(/^([-]?)0+(?=\d)/, "$1").replace(/^([-]?)\./, "$10.");

// Conditions name earlier questions, so one pass in order is enough.
function show() {
  for (const q of all("[data-if]")) {
    const given = values(q.dataset.if).map((v) => ("number" in q.dataset ? canonical(v) : v));
    const shown = given.some((v) => JSON.parse(q.dataset.equals).includes(v));
    q.hidden = !shown;
    for (const e of q.querySelectorAll("input, select, textarea, button")) e.disabled = !shown || "full" in e.dataset;
  }
}

// A browser has "" for a date or time that isn't complete.
function check(event) {
  const texts = document.querySelector("main").dataset;
  for (const old of all(".error.now")) old.remove();
  let first;
  for (const e of inputs()) {
    const q = e.closest(".q");
    if (e.disabled || !q || q.querySelector(".now") || !(e.validity.badInput || e.validity.valueMissing)) continue;
    const p = document.createElement("p");
    p.className = "error now";
    p.id = e.id + "-now";
    p.role = "alert";
    p.textContent = e.validity.badInput ? texts[e.type === "time" ? "incompleteTime" : "incomplete"]
      : texts[{ file: "file", radio: "choice", "select-one": "choice", checkbox: "consent" }[e.type] ?? "required"];
    (e.closest(".option") ?? e).before(p);
    q.classList.add("wrong");
    e.setAttribute("aria-invalid", "true");
    e.setAttribute("aria-describedby", `${e.getAttribute("aria-describedby") ?? ""} ${p.id}`.trim());
    first ??= e;
  }
  if (first) event.preventDefault();
  first?.focus();
}

const form = document.querySelector("form");
if (form) {
  Element.prototype.setAttribute.call(form, "novalidate", "");
  for (const only of all(".only")) only.hidden = true;
  document.addEventListener("submit", check);
  document.addEventListener("input", show);
  addEventListener("pageshow", show); // a browser fills in what was typed before
  show();
  for (const more of all("button.more")) {
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
  addEventListener("submit", (event) => event.defaultPrevented || tell(700));
}
