"use strict";

// For pages that embed a form in a frame: gives each frame of this server the height that its form needs. Without this script, frames keep theirs.
(function (origin) {
  const frames = () => [...document.querySelectorAll("iframe")];
  addEventListener("message", (event) => {
    const frame = event.origin === origin && frames().find((f) => f.contentWindow === event.source), height = event.data?.formHeight;
    if (frame && Number.isFinite(height) && height >= 100 && height <= 20000) frame.height = Math.ceil(height);
  });
  addEventListener("load", (event) => { // another page of the form begins at its top
    const frame = event.target;
    if (!frame.matches?.("iframe") || !frame.src.startsWith(origin + "/")) return;
    if (frame.dataset.formPages && frame.getBoundingClientRect().top < 0) frame.scrollIntoView();
    frame.dataset.formPages = "more";
  }, true);
  for (const frame of frames()) if (frame.src.startsWith(origin + "/")) frame.contentWindow.postMessage("formHeight", "*"); // says nothing
})(new URL(document.currentScript.src).origin);
