"use strict";

// The API is one segment above the page, under any host and prefix.
const base = location.origin + location.pathname.replace(/\/docs$/, "");

for (const place of document.querySelectorAll("[data-base]")) {
  place.textContent = base;
}

// Browsers offer the clipboard only over TLS and on localhost.
if (navigator.clipboard) {
  const status = document.getElementById("status");
  for (const pre of document.querySelectorAll("main pre")) {
    const block = document.createElement("div");
    const button = document.createElement("button");
    block.className = "copyable";
    button.type = "button";
    button.textContent = "Copy";
    button.setAttribute("aria-label", "Copy: " + pre.getAttribute("aria-label"));
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(pre.textContent);
        status.textContent = "Copied";
      } catch {
        status.textContent = "The browser does not allow copying";
      }
      button.textContent = status.textContent === "Copied" ? "Copied" : "Not copied";
      setTimeout(() => {
        button.textContent = "Copy";
        status.textContent = "";
      }, 2000);
    });
    pre.replaceWith(block);
    block.append(pre, button);
  }
}

// How the reference shows the document. Calls go to the page's own origin, since the
// page's policy forbids others, even another address of the same server. Fields begin
// empty: an example of a filter or an Idempotency-Key would be sent.
const adapted = (doc) => {
  const parameters = {};
  for (const [name, parameter] of Object.entries(doc.components?.parameters ?? {})) {
    parameters[name] = { ...parameter, example: parameter.schema?.type === "array" ? [] : "" };
  }
  return { ...doc, servers: [{ url: base }], components: { ...doc.components, parameters } };
};

const adapting = () => ({
  statePlugins: { spec: { wrapActions: { updateJsonSpec: (update) => (doc) => update(adapted(doc)) } } },
});

SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#swagger-ui",
  presets: [SwaggerUIBundle.presets.apis],
  plugins: [adapting],
  deepLinking: true,
  displayRequestDuration: true,
  defaultModelsExpandDepth: 0,
  persistAuthorization: false, // the key is kept nowhere
  validatorUrl: null, // nothing is sent elsewhere
});
