"use strict";

document.documentElement.classList.add("scripts");

// Pages work without this script: it tells the server the time zone, shows new records, and copies to the clipboard.

// The server writes times in the browser's zone once it knows it. Without cookies it never does.
const { zone, base } = document.documentElement.dataset;
const here = Intl.DateTimeFormat().resolvedOptions().timeZone;
if (here && zone !== here && base && performance.getEntriesByType("navigation")[0]?.type !== "reload") {
  fetch(base + "zone", { method: "POST", body: new URLSearchParams({ zone: here }) }).then((reply) => {
    if (reply.ok) location.reload();
  }).catch(() => {});
}

// reloaded returns an element of a page as it is now, or null.
async function reloaded(selector, address = location.href) {
  const reply = await fetch(address);
  const page = new DOMParser().parseFromString(await reply.text(), "text/html");
  return reply.ok ? page.querySelector(selector) : null;
}

// A summary goes on until all responses are counted.
async function count() {
  let shown = document.querySelector("[data-more]");
  while (shown?.matches("[data-more]")) {
    const next = await reloaded("#summary");
    if (!next) return;
    shown.replaceWith(next);
    shown = next;
  }
}
count();

// A search goes on until it finds something.
async function search() {
  let shown = document.querySelector("[data-searching]");
  while (shown) {
    const onward = shown.querySelector("a").href;
    const next = await reloaded("[data-searching]", onward);
    if (!next) {
      location.replace(onward);
      return;
    }
    shown.replaceWith(next);
    shown = next;
  }
}
search();

// A list shows what is new. Only rows and counts are replaced, so that selection, focus and scrolling stay; where that can't be, a note says so.
const list = document.querySelector("#list, [data-live]");
const news = document.getElementById("news");

// merge puts the fresh rows into a table, and reports whether that takes nothing away from somebody at work in it.
function merge(body, fresh) {
  const rows = new Map([...body.rows].map((row) => [row.dataset.key, row]));
  const keys = new Set([...fresh.rows].map((row) => row.dataset.key));
  const gone = [...body.rows].filter((row) => !keys.has(row.dataset.key));
  if (keys.has(undefined) || gone.some((row) => row.contains(document.activeElement) || row.querySelector(":checked"))) return false;
  gone.forEach((row) => row.remove());
  let next = body.rows[0] ?? null;
  for (const row of [...fresh.rows]) {
    const old = rows.get(row.dataset.key);
    [...old?.cells ?? []].forEach((cell, i) => {
      if (cell.innerHTML !== row.cells[i].innerHTML && !cell.contains(document.activeElement)) cell.innerHTML = row.cells[i].innerHTML;
    });
    if (old && old === next) next = old.nextElementSibling;
    else body.insertBefore(old ?? row, next);
  }
  return true;
}

async function refresh() {
  const reply = await fetch(location.href);
  if (!reply.ok) return;
  const page = new DOMParser().parseFromString(await reply.text(), "text/html");
  const fresh = page.querySelector("#list, [data-live]");
  if (!fresh) return;
  const busy = list.contains(document.activeElement) && !document.activeElement.matches(".scroll") || list.querySelector(":checked:not(option), details[open]");
  const [head, heads] = [list, fresh].map((part) => part.querySelector("thead")?.textContent);
  const [body, bodies] = [list, fresh].map((part) => part.querySelector("tbody"));
  if (head && head === heads) {
    if (!merge(body, bodies)) {
      if (busy) {
        news.hidden = false;
        return;
      }
      body.replaceWith(bodies);
    }
  } else if (busy) {
    news.hidden = false;
    return;
  } else {
    list.replaceChildren(...fresh.childNodes);
  }
  for (const old of document.querySelectorAll("[data-count]")) {
    const now = page.querySelector(`[data-count="${old.dataset.count}"]`);
    if (now && now.outerHTML !== old.outerHTML && !old.contains(document.activeElement)) old.replaceWith(now);
  }
  choose();
}

// The box in the head selects the rows of the page.
function choose(changed) {
  const all = list.querySelector("[data-all]"), boxes = [...list.querySelectorAll("[name=response]")];
  if (!all) return;
  if (changed === all) boxes.forEach((box) => { box.checked = all.checked; });
  all.hidden = false;
  all.checked = boxes.length > 0 && boxes.every((box) => box.checked);
  all.indeterminate = !all.checked && boxes.some((box) => box.checked);
}
if (list) {
  choose();
  list.addEventListener("change", (event) => choose(event.target));
}

// A browser has few connections to a host, so one tab at a time has a stream: the last that was looked at. The others ask now and then,
// and hidden ones when they are shown again.
function watch() {
  let since = list.dataset.since, source, timer, wait = 1000, once = false;
  const open = () => {
    source?.close();
    clearTimeout(timer);
    if (document.hidden) return;
    source = new EventSource(`${list.dataset.live}?since=${since}${once ? "&once=1" : ""}`);
    source.onopen = () => { wait = 1000; };
    source.onmessage = (event) => {
      since = event.lastEventId;
      refresh().catch(() => { news.hidden = false; });
    };
    source.addEventListener("off", () => { document.getElementById("off").hidden = false; });
    source.onerror = () => { // an error page ends a source for good
      if (source.readyState !== EventSource.CLOSED) return;
      clearTimeout(timer);
      timer = setTimeout(open, wait *= 2);
      wait = Math.min(wait, 60000);
    };
  };
  const begin = () => {
    once = false;
    navigator.locks?.request("formsvc-live", { steal: true }, () => new Promise(() => {})).catch(() => {
      once = true;
      open();
    });
    open();
  };
  document.addEventListener("visibilitychange", () => document.hidden ? open() : begin());
  addEventListener("focus", () => { if (once) begin(); });
  addEventListener("pagehide", () => source?.close());
  begin();
}
if (list?.dataset.live) watch();

// After a button or a link that shows this page anew, the focus is on what that did, or where it was.
const words = (at) => (at.getAttribute("aria-label") ?? at.textContent).replace(/[↑↓]|^(Up|Down):/g, "").trim();
const pressed = JSON.parse(sessionStorage.getItem("pressed") ?? "{}");
sessionStorage.removeItem("pressed");
if (pressed.path === location.pathname && !document.querySelector("[autofocus]")) {
  const same = [...document.querySelectorAll(`main ${pressed.tag}`)].filter((at) => words(at) === pressed.words);
  const at = document.querySelector("main > .note[role=status]:not([hidden])") ?? same.find((at) => at.value === pressed.value) ?? same[0];
  const shown = at?.checkVisibility() === false ? at.closest("details:not([open])")?.querySelector("summary") : at;
  if (shown?.matches(".note")) shown.tabIndex = -1;
  (shown ?? document.getElementById("content")).focus({ focusVisible: pressed.byKey });
}
let press;
addEventListener("click", (event) => {
  const at = event.target.closest?.("main a, main button");
  if (at) press = { path: location.pathname, tag: at.tagName, value: at.value, words: words(at), byKey: event.detail === 0 };
});
addEventListener("pagehide", () => {
  if (press) sessionStorage.setItem("pressed", JSON.stringify(press));
});

// On a response, j and k lead to the next and the previous one.
if (document.querySelector("[data-keys]")) {
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select")) return;
    document.querySelector({ j: "[data-keys] [rel=next]", k: "[data-keys] [rel=prev]" }[event.key] ?? "#none")?.click();
  });
}

// The editor: buttons for questions change the page in place, so that Back leaves the editor and not a question; what isn't saved is kept
// in this browser for a day, and comes back after leaving, Back, or signing in again.
const editor = document.querySelector("form[data-edits]");
const drafts = () => Object.keys(localStorage).filter((key) => key.startsWith("draft:"));
if (/[?&]note=campaign-(saved|created)/.test(location.search)) {
  const sent = sessionStorage.getItem("sent");
  if (sent) localStorage.removeItem(sent);
  sessionStorage.removeItem("sent");
}
for (const out of document.querySelectorAll("form[action$='/sign-out']")) {
  out.addEventListener("submit", () => drafts().forEach((key) => localStorage.removeItem(key)));
}
if (editor) edit(editor);

function edit(form) {
  const key = "draft:" + location.pathname, area = form.closest(".editor"), frame = area.querySelector("iframe");
  let dirty = form.matches("[data-dirty]"), leaving = false, timer, shows;
  const typed = () => [...new FormData(form)].filter(([name]) => name !== "token" && name !== "once");
  const keep = () => localStorage.setItem(key, JSON.stringify({ at: Date.now(), typed: typed() }));
  const cards = () => [...form.querySelectorAll(".question")];
  const opened = () => cards().findIndex((card) => card.querySelector("details").open);
  const post = (data, does) => {
    data.set("token", form.elements.namedItem("token").value);
    data.set("do", does);
    data.set("open", opened() + 1);
    return fetch(form.getAttribute("action"), { method: "POST", body: new URLSearchParams(data) });
  };

  // place shows a reply of the server in place of the form. does is the button that was pressed, and focus the field that had the focus.
  async function place(reply, does = "", focus) {
    const page = new DOMParser().parseFromString(await reply.text(), "text/html");
    const fresh = page.querySelector("form[data-edits]");
    if (!fresh) return false;
    form.replaceWith(fresh);
    form = fresh;
    dirty = true;
    listen();
    const [verb] = does.split("."), card = cards()[opened()];
    const button = card?.querySelector(`[value^="${verb}."]:enabled`) ?? card?.querySelector("summary");
    const undo = verb === "remove" && form.querySelector("[value=undo]");
    const next = form.querySelector("[autofocus]") ?? (/^(up|down)$/.test(verb) ? button : undo || focus && form.querySelector(`[name="${focus}"]`));
    (next ?? form).focus();
    document.getElementById("said").textContent = form.dataset.said ?? "";
    keep();
    preview();
    return true;
  }

  const again = () => form.requestSubmit(form.querySelector("[value=stay]"));

  // follow scrolls the preview to the question in work.
  function follow() {
    const inside = frame?.contentDocument, card = cards()[opened()];
    const name = card?.querySelector("[name^='name.']").value;
    const field = name && [...inside?.querySelectorAll("[name], [data-name]") ?? []].find((input) => (input.dataset.name ?? input.name) === name);
    if (!field) return;
    field.dispatchEvent(new Event("reveal", { bubbles: true }));
    frame.contentWindow.scrollTo({ top: field.closest(".q").offsetTop - 24, behavior: "smooth" });
  }

  function listen() {
    form.addEventListener("toggle", follow, true);
    form.addEventListener("input", () => {
      dirty = true;
      keep();
      preview();
    });
    form.addEventListener("change", (event) => { // shows what depends on the type, or the choices of the question that it depends on
      if (!/^(showModule|type)\./.test(event.target.name)) return;
      event.target.focus();
      again();
    });
    form.addEventListener("focusin", follow);
    const list = form.querySelector(".questions");
    for (const grip of list.querySelectorAll(".grip")) grip.hidden = false;
    Sortable.create(list, {
      handle: ".grip",
      animation: 150,
      forceFallback: true, // a pointer moves it, on touch screens too
      onEnd: () => {
        cards().forEach((card, i) => { card.querySelector("[name^='position.']").value = i + 1; });
        again();
      },
    });
    form.addEventListener("keydown", (event) => {
      const menu = event.key === "Escape" && event.target.closest(".insert[open]");
      if (menu) {
        menu.open = false;
        menu.querySelector("summary").focus();
      }
      if (event.key === "Enter" && event.target.matches("input")) event.preventDefault();
    });
    form.addEventListener("submit", async (event) => {
      const does = event.submitter?.value ?? "stay";
      if (does === "preview") return;
      if (does === "save") {
        keep();
        sessionStorage.setItem("sent", key);
        leaving = true;
        return;
      }
      event.preventDefault();
      const at = does === "stay" || does.startsWith("stay.") ? document.activeElement?.name : "";
      const reply = await post(new FormData(form), does);
      if (!await place(reply, does, at)) {
        keep();
        leaving = true;
        location.reload(); // asks to sign in if the session has ended, and brings back what was typed
      }
    });
  }

  addEventListener("beforeunload", (event) => {
    if (dirty && !leaving) event.preventDefault();
  });

  // answers returns what was tried in the preview, and answer fills it in again.
  const inputs = () => [...frame.contentDocument?.querySelectorAll("input:not([type=hidden], [type=file]), select, textarea") ?? []];
  const answers = () => inputs().map((input) => [input.name, input.value, input.checked, input.type]);
  function answer(tried) {
    for (const input of inputs()) {
      const option = input.matches("[type=radio], [type=checkbox]");
      const was = tried.find(([name, value, , type]) => name === input.name && type === input.type && (!option || value === input.value));
      if (!was) continue;
      if (option) input.checked = was[2];
      else input.value = was[1];
      input.dispatchEvent(new Event("input", { bubbles: true }));
      input.dispatchEvent(new Event("change", { bubbles: true }));
    }
  }

  function preview() {
    clearTimeout(timer);
    if (shows) timer = setTimeout(shows, 500);
  }

  if (frame) {
    let asked = 0;
    shows = async () => {
      const number = ++asked;
      const reply = await post(new FormData(form), "preview");
      const text = await reply.text();
      if (number !== asked) return;
      const at = frame.contentWindow.scrollY, tried = answers();
      frame.addEventListener("load", () => {
        frame.contentDocument.addEventListener("submit", (event) => event.preventDefault(), true); // nothing is sent from it
        answer(tried);
        frame.contentWindow.scrollTo(0, at);
        follow();
      }, { once: true });
      frame.srcdoc = text; // adds nothing to the history
    };
    frame.hidden = false;
  }
  listen();
  area.querySelector("[data-discards]")?.addEventListener("click", () => {
    localStorage.removeItem(key);
    leaving = true;
  });
  let draft = null;
  try {
    draft = JSON.parse(localStorage.getItem(key));
  } catch {
    localStorage.removeItem(key);
  }
  if (dirty || !draft || Date.now() - draft.at > 86_400_000 || JSON.stringify(draft.typed) === JSON.stringify(typed())) {
    if (dirty) keep();
    shows?.();
    return;
  }
  const note = document.createElement("p");
  note.className = "note";
  note.setAttribute("role", "status");
  note.textContent = "Your edits that weren't saved are back. ";
  const drop = document.createElement("button");
  drop.type = "button";
  drop.className = "plain";
  drop.textContent = "Discard them";
  drop.addEventListener("click", () => {
    localStorage.removeItem(key);
    leaving = true;
    location.reload();
  });
  note.append(drop);
  const data = new FormData();
  for (const [name, value] of draft.typed) data.append(name, value);
  post(data, "stay").then((reply) => place(reply, "stay")).then((back) => { if (back) area.before(note); });
}

// Browsers offer the clipboard only over TLS and on localhost.
if (navigator.clipboard) {
  for (const text of document.querySelectorAll("pre.copy")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "plain copies";
    button.textContent = "Copy";
    button.setAttribute("aria-label", "Copy: " + text.getAttribute("aria-label"));
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(text.textContent);
        button.textContent = "Copied";
      } catch {
        button.textContent = "Not copied";
      }
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    });
    const block = document.createElement("div");
    block.className = "copyable";
    text.replaceWith(block);
    block.append(text, button);
  }
}

// A deletion in steps goes on.
document.querySelector("form[data-goes-on]")?.requestSubmit();
