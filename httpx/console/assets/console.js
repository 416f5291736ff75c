"use strict";

// Pages work without this script: it shows local times, new records, and copies to the clipboard.
const zone = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
function localTimes(part) {
  for (const time of part.querySelectorAll("time[datetime]")) {
    time.textContent = zone.format(new Date(time.dateTime));
  }
}
localTimes(document);

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
    localTimes(next);
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

// A list shows what is new, unless somebody is at work in it.
const list = document.querySelector("[data-live]");
if (list) {
  new EventSource(list.dataset.live).addEventListener("message", async () => {
    if (list.contains(document.activeElement) || list.querySelector(":checked:not(option), details[open]")) {
      document.getElementById("news").hidden = false;
      return;
    }
    const fresh = await reloaded("[data-live]");
    if (fresh) {
      list.replaceChildren(...fresh.childNodes);
      localTimes(list);
    }
  });
}

// The editor shows the form that is being made.
const preview = document.querySelector("iframe");
if (preview) {
  const button = document.querySelector("[value=preview]");
  let timer, asked = 0;
  const show = async () => {
    const number = ++asked;
    const reply = await fetch(button.form.action, { method: "POST", body: new URLSearchParams(new FormData(button.form, button)) });
    const text = await reply.text();
    if (number !== asked) return;
    const at = preview.contentWindow.scrollY;
    preview.addEventListener("load", () => preview.contentWindow.scrollTo(0, at), { once: true });
    preview.srcdoc = text; // adds nothing to the history
  };
  button.form.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(show, 500);
  });
  preview.hidden = false;
  show();
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
