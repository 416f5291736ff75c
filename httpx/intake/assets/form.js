"use strict";

// The page works without this script. It hides questions that other answers rule out, adds inputs, and says what the browser would not
// send. A field may have any name, such as "elements" or "action", and hides what the form has by that name: so nothing is asked of it.
const all = (selector) => [...document.querySelectorAll(selector)];
const inputs = () => all("form :is(input, select, textarea)");
const named = (name) => inputs().filter((e) => e.name === name && !e.disabled);
const values = (name) => named(name).filter((e) => !/^(radio|checkbox)$/.test(e.type) || e.checked).map((e) => e.value);

// Numbers are compared as the server stores them: mark is the language's separator before decimals, "" if people differ.
const canonical = (s, mark) => {
  s = s.normalize("NFKC").replace(/[٠-٩۰-۹]/g, (d) => d.charCodeAt(0) & 15).replace(/[\s'’ʼ٬\p{Cf}]/gu, "").replace(/^[−–‐‑]/, "-").replace(/^\+/, "");
  const group = s.match(/^-?[1-9]\d{0,2}([.,])(?:\d\d\1)*\d{3}(?:\1\d{3})*$/)?.[1];
  s = group && (group !== mark || s.indexOf(group) !== s.lastIndexOf(group)) ? s.replaceAll(group, "") : s.replace(/[.,](?=.*[.,٫])/g, "").replace(/[٫,]/, ".");
  return s.replace(/\.$/, "").replace(/^(-?)0+(?=\d)/, "$1").replace(/^(-?)\./, "$10.").replace(/^-(?=[0.]*$)/, "");
};

// Conditions name earlier questions, so one pass in order is enough.
function show() {
  for (const q of all("[data-if]")) {
    const given = values(q.dataset.if).map((v) => ("number" in q.dataset ? canonical(v, q.dataset.number) : v));
    const shown = given.some((v) => JSON.parse(q.dataset.equals).includes(v));
    q.hidden = !shown;
    for (const e of q.querySelectorAll("input, select, textarea, button")) e.disabled = !shown || "full" in e.dataset;
  }
}

// One's own answer counts while "Other" is chosen, and typing one chooses it.
function own(event) {
  for (const e of all(".own")) {
    const q = e.closest(".q"), other = q.querySelector("[data-own]"), choice = other.tagName === "OPTION" ? "selected" : "checked";
    e.dataset.name ??= e.name;
    if (event?.target === e && e.value.trim()) other[choice] = true;
    e.name = other[choice] ? e.dataset.name : "";
  }
}

// fault returns an input whose value the browser wouldn't send, or that must have one, and what to say about it.
function fault(q, texts) {
  const needed = q.dataset.needed;
  for (const e of q.querySelectorAll("input, select, textarea")) {
    const v = e.validity, missing = v.valueMissing || e.name === needed && !values(needed).some((s) => s.trim());
    if (e.disabled || q.hidden) continue;
    if (v.badInput) return [e, texts[e.type === "time" ? "incompleteTime" : "incomplete"]];
    if (missing) {
      const type = { file: "file", radio: "choice", "select-one": "choice", checkbox: q.querySelector("fieldset") ? "choice" : "consent" }[e.type];
      return [e, texts[type ?? "required"]];
    }
    if (turns && v.typeMismatch && /^[ -~]*$/.test(e.value)) return [e, texts[e.type]]; // else the server may take it
    if (turns && (v.rangeUnderflow || v.rangeOverflow)) return [e, q.querySelector(".note[id$=range]").textContent];
  }
}

// A browser has "" for a date or time that isn't complete. check says what is wrong with questions, and reports whether nothing is.
function check(questions) {
  for (const old of all(".error.now")) old.remove();
  let first;
  for (const q of questions) {
    const [e, text] = fault(q, document.querySelector("main").dataset) ?? [];
    if (!e) continue;
    const p = document.createElement("p");
    p.className = "error now";
    p.id = e.id + "-now";
    p.role = "alert";
    p.textContent = text;
    (e.closest(".option") ?? e).before(p);
    q.classList.add("wrong");
    e.setAttribute("aria-invalid", "true");
    e.setAttribute("aria-describedby", `${e.getAttribute("aria-describedby") ?? ""} ${p.id}`.trim());
    first ??= e;
  }
  if (first) turns?.to(first);
  first?.focus();
  return !first;
}

// A section may begin a page. Without this script, and on paper, the form is one long page. A page without a question to ask is skipped.
function paged() {
  const pages = [[]], texts = document.querySelector("main").dataset, send = document.querySelector("form > button:not([type])");
  for (const q of all("form > .q")) {
    if ("page" in q.dataset) pages.push([]);
    pages.at(-1).push(q);
  }
  const make = (tag, name, text = "") => Object.assign(document.createElement(tag), { className: name, textContent: text });
  const progress = make("p", "progress"), back = make("button", "back", texts.back), next = make("button", "next", texts.next);
  back.type = next.type = "button";
  progress.role = "status";
  progress.tabIndex = -1;
  pages[0][0].before(progress);
  send.before(back, next);
  const sections = (page) => page.filter((q) => q.matches(".section")), asked = (page) => page.filter((q) => !q.matches(".section"));
  const open = () => pages.filter((page) => page === at || (asked(page).length ? asked(page) : page).some((q) => !q.hidden));
  let at = pages[0];
  function show(page) {
    at = page;
    const list = open(), i = list.indexOf(at);
    let n = 0;
    const said = texts.progress.replace(/%(?:\[(\d)\])?d/g, (_, arg) => [i + 1, list.length][(arg || ++n) - 1]);
    if (progress.textContent !== said) progress.textContent = said;
    for (const page of pages) page.forEach((q) => q.classList.toggle("off", page !== at));
    back.classList.toggle("off", i === 0);
    next.classList.toggle("off", i === list.length - 1);
    send.classList.toggle("off", i < list.length - 1);
  }
  function turn(step) {
    const list = open();
    show(list[list.indexOf(at) + step]);
    progress.scrollIntoView();
    (sections(at).find((q) => !q.hidden)?.querySelector("h2") ?? progress).focus({ preventScroll: true });
  }
  back.addEventListener("click", () => turn(-1));
  next.addEventListener("click", () => { if (check(at)) turn(1); });
  return {
    to: (element) => show(pages.find((page) => page.some((q) => q.contains(element))) ?? at),
    again: () => show(at),
    next: () => next.matches(".off") ? false : (next.click(), true),
  };
}

let turns; // undefined for a form of one page
const form = document.querySelector("form");
if (form) {
  Element.prototype.setAttribute.call(form, "novalidate", "");
  for (const only of all(".only")) only.hidden = true;
  document.addEventListener("submit", (event) => { // the Enter key sends a form too
    if (turns?.next() || !check(all(".q"))) event.preventDefault();
  });
  const update = (event) => {
    if (event) own(event); // at first a browser must find the names, to fill in what was typed before
    show();
    turns?.again();
  };
  document.addEventListener("input", update);
  addEventListener("pageshow", update); // it has done so then
  update();
  if (document.querySelector("[data-page]")) turns = paged();
  turns?.to(document.querySelector(".q.wrong"));
  for (const problem of all(".summary a")) problem.addEventListener("click", () => turns?.to(document.getElementById(problem.hash.slice(1))));
  document.addEventListener("reveal", (event) => turns?.to(event.target)); // an editor shows the question in work
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
