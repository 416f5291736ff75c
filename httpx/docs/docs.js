"use strict";

// The page is one segment below where the API is, whatever the server calls itself.
const base = location.origin + location.pathname.replace(/\/docs$/, "");

for (const place of document.querySelectorAll("[data-base]")) {
  place.textContent = base;
}

// Browsers have a clipboard only where nobody between can change the page.
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

// How the reference shows the document. Calls go to where the page came from: another
// address of the same server would be another origin for the browser, which the page
// may not call. Fields begin empty, since what is in them is sent, and an example of a
// filter or an Idempotency-Key is not meant to be.
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
