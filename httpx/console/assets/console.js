"use strict";

// Pages work without this script: it shows local times and copies to the clipboard.
const zone = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
for (const time of document.querySelectorAll("time[datetime]")) {
  time.textContent = zone.format(new Date(time.dateTime));
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
