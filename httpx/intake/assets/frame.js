"use strict";

// A page that embeds this one may give its frame the height that is needed. Only the owner's sites are told. Every page tells its own:
// the form, the form with errors, and the thanks.
if (parent !== window) {
  const outer = location.ancestorOrigins?.[0]; // not in every browser
  const origins = document.currentScript.dataset.origins.split(" ").filter((origin) => !outer || origin === outer);
  const tell = () => {
    const formHeight = Math.min(20000, Math.ceil(document.documentElement.offsetHeight / 10) * 10);
    for (const origin of origins) parent.postMessage({ formHeight }, origin);
  };
  new ResizeObserver(tell).observe(document.documentElement);
  addEventListener("message", (event) => event.source === parent && tell()); // it may have begun to listen later
}
