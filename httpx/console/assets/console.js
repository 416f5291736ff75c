"use strict";

// Pages work without this script: it shows local times, new records, and copies to the clipboard.
const zone = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
function localTimes(part) {
  for (const time of part.querySelectorAll("time[datetime]")) {
    time.textContent = zone.format(new Date(time.dateTime));
  }
}
localTimes(document);

// A list shows what is new, unless somebody is at work in it.
const list = document.querySelector("[data-live]");
if (list) {
  new EventSource(list.dataset.live).addEventListener("message", async () => {
    if (list.contains(document.activeElement) || list.querySelector(":checked:not(option), details[open]")) {
      document.getElementById("news").hidden = false;
      return;
    }
    const reply = await fetch(location.href);
    const page = new DOMParser().parseFromString(await reply.text(), "text/html");
    const fresh = page.querySelector("[data-live]");
    if (reply.ok && fresh) {
      list.replaceChildren(...fresh.childNodes);
      localTimes(list);
    }
  });
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
