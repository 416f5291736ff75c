"use strict";

// Pages work without this: it shows times in the reader's zone, and copies.
const zone = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
for (const time of document.querySelectorAll("time[datetime]")) {
  time.textContent = zone.format(new Date(time.dateTime));
}

// Browsers have a clipboard only where nobody between can change the page.
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
