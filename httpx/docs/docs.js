"use strict";

// The API is one segment above the page, under any host and prefix.
const base = location.origin + location.pathname.replace(/\/docs$/, "");
const said = document.getElementById("status"); // what it has is read out

const unknown = document.querySelector("[data-base]").textContent; // stands for the address in examples

for (const place of document.querySelectorAll("[data-base]")) {
  place.textContent = base;
}

// element makes an element with properties, attributes ("aria-…") and content.
const element = (tag, properties, ...content) => {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in made) made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...content);
  return made;
};

// copyable puts a button beside a text. Browsers offer the clipboard only over TLS and on localhost.
const copyable = (pre) => {
  const block = element("div", { className: "copyable" });
  pre.replaceWith(block);
  block.append(pre);
  if (!navigator.clipboard) return block;
  const button = element("button", { type: "button" }, "Copy");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(pre.textContent);
      said.textContent = "Copied";
    } catch {
      said.textContent = "The browser does not allow copying";
    }
    button.textContent = said.textContent === "Copied" ? "Copied" : "Not copied";
    setTimeout(() => {
      button.textContent = "Copy";
      said.textContent = "";
    }, 2000);
  });
  button.setAttribute("aria-label", "Copy: " + pre.getAttribute("aria-label"));
  block.append(button);
  return block;
};

document.querySelectorAll("main pre").forEach(copyable);

// --- Example requests ------------------------------------------------------------------

// The chosen language, for all operations. It is the only thing that the page stores.
const stored = "formsvc-docs-language";
let language = "curl";
try {
  language = localStorage.getItem(stored) ?? language;
} catch {
  // The browser stores nothing for this page.
}

const choose = (label) => {
  language = label;
  document.querySelectorAll(".samples").forEach((block) => block.show());
  try {
    localStorage.setItem(stored, label);
  } catch {
    // As above.
  }
};

// sampleBlock shows one of the samples of an operation, and a radio button for each language.
const sampleBlock = (samples, operation) => {
  const pre = element("pre", { role: "group", tabIndex: 0, "aria-label": "Example" }, element("code", {}));
  const languages = element("fieldset", {}, element("legend", {}, "Example"));
  const block = element("div", { className: "samples" }, languages, pre);
  for (const { label } of samples) {
    const radio = element("input", { type: "radio", name: "language-" + operation, value: label });
    radio.addEventListener("change", () => choose(label));
    languages.append(element("label", {}, radio, label));
  }
  block.show = () => {
    const shown = samples.find(({ label }) => label === language) ?? samples[0];
    pre.firstChild.textContent = shown.source;
    languages.querySelector(`[value="${CSS.escape(shown.label)}"]`).checked = true;
  };
  block.show();
  copyable(pre);
  return block;
};

// withSamples puts the samples before the parameters.
const withSamples = (Parameters, { React }) => (props) => {
  const samples = props.operation.get("x-codeSamples")?.toJS();
  const place = (div) => div?.hasChildNodes() || div?.append(sampleBlock(samples, props.operation.get("operationId")));
  return React.createElement(
    React.Fragment,
    null,
    samples && React.createElement("div", { ref: place }),
    React.createElement(Parameters, props),
  );
};

// --- Reference -------------------------------------------------------------------------

// How the reference shows the document. Calls go to the page's own origin, since the
// page's policy forbids others, even another address of the same server. Fields begin
// empty: an example of a filter or an Idempotency-Key would be sent.
const adapted = (doc) => {
  const parameters = {};
  for (const [name, parameter] of Object.entries(doc.components?.parameters ?? {})) {
    parameters[name] = { ...parameter, example: parameter.schema?.type === "array" ? [] : "" };
  }
  const server = new URL(doc.servers[0].url, unknown).href.replace(/\/$/, "");
  for (const operation of operationsOf(doc)) {
    for (const sample of operation["x-codeSamples"] ?? []) {
      sample.source = sample.source.replaceAll(server, base);
    }
  }
  return { ...doc, servers: [{ url: base }], components: { ...doc.components, parameters } };
};

const operationsOf = (doc) =>
  Object.values(doc.paths).flatMap((item) => Object.values(item).filter((operation) => operation.operationId));

const adapting = () => ({
  statePlugins: { spec: { wrapActions: { updateJsonSpec: (update) => (doc) => update(adapted(doc)) } } },
  wrapComponents: { parameters: withSamples, DeepLink: () => withoutLink },
  components: { ServersContainer: () => null }, // there is one
});

// withoutLink replaces links inside of buttons, which lead where the buttons do.
const withoutLink = ({ text }) => text;

// What scrolls must be reachable by keyboard, fields have labels, and headings skip no level.
const swagger = document.getElementById("swagger-ui");
new MutationObserver(() => {
  swagger.querySelectorAll("pre:not([tabindex])").forEach((pre) => pre.setAttribute("tabindex", "0"));
  for (const field of swagger.querySelectorAll("tr :is(input, select, textarea):not([aria-label])")) {
    const { paramName, propertyName } = field.closest("tr").dataset;
    field.setAttribute("aria-label", paramName ?? propertyName ?? "Value");
  }
  swagger.querySelectorAll(".body-param__text").forEach((field) => field.setAttribute("aria-label", "Request body"));
  swagger.querySelectorAll("button:empty").forEach((button) => button.setAttribute("aria-label", "Copy"));
  swagger.querySelectorAll(".models > h4").forEach((heading) => heading.setAttribute("aria-level", "3"));
}).observe(swagger, { childList: true, subtree: true });

const reference = SwaggerUIBundle({
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

// --- Search ----------------------------------------------------------------------------

// entry has a name and a kind, the text that is searched and shown, and what leads to it.
const entry = (kind, name, text, go, names = name) => ({
  kind, name, go,
  text: text.replaceAll("`", ""),
  names: names.toLowerCase(),
  all: (names + " " + text).toLowerCase().replaceAll("`", ""),
});

const toHeading = (heading) => () => {
  location.hash = heading.id;
  heading.tabIndex = -1;
  heading.focus();
};

const toOperation = (operation) => () => {
  reference.layoutActions.show(["operations-tag", operation.tags[0]], true);
  reference.layoutActions.show(["operations", operation.tags[0], operation.operationId], true);
  const wait = (times) => {
    const summary = document.querySelector(`[id^="operations-"][id$="-${operation.operationId}"] .opblock-summary-control`);
    if (!summary) return times && setTimeout(wait, 20, times - 1); // is being drawn
    summary.scrollIntoView();
    summary.focus({ preventScroll: true });
  };
  wait(60);
};

// guideEntries has an entry for each heading, with the text below it.
const guideEntries = () => {
  const list = [];
  for (const heading of document.querySelectorAll("main section > :is(h2, h3)")) {
    let text = "";
    for (let next = heading.nextElementSibling; next && !next.matches("h2, h3, #swagger-ui"); next = next.nextElementSibling) {
      text += (next.querySelector("pre") ?? next).textContent.replace(/\s+/g, " ") + " ";
    }
    list.push(entry("guide", heading.textContent, text, toHeading(heading)));
  }
  return list;
};

// referenceEntries has the operations, and the fields, parameters and problem codes with the first operation that has them.
const referenceEntries = (doc) => {
  const operations = [];
  const parts = new Map();
  const resolve = (part) => {
    while (part?.$ref) part = part.$ref.slice(2).split("/").reduce((at, name) => at?.[name.replaceAll("~1", "/")], doc);
    return part;
  };
  const add = (kind, name, text, operation) => {
    const key = [kind, name, text].join("\n");
    const part = parts.get(key) ?? { kind, name, text, operation, others: new Set() };
    parts.set(key, part);
    if (part.operation !== operation) part.others.add(operation);
  };
  const walk = (schema, operation, seen, status) => {
    schema = resolve(schema);
    if (!schema || seen.has(schema)) return;
    seen.add(schema);
    for (const [name, property] of Object.entries(schema.properties ?? {})) {
      const { description = "", enum: values } = resolve(property);
      if (name === "code" && values) values.forEach((code) => add("problem code", code, status, operation));
      else if (!status) add("field", name, [property.description ?? description, ...(values ?? [])].join(" "), operation);
      walk(property, operation, seen, status);
    }
    [schema.items, schema.additionalProperties, ...(schema.allOf ?? []), ...(schema.anyOf ?? []), ...(schema.oneOf ?? [])].forEach(
      (part) => typeof part === "object" && walk(part, operation, seen, status),
    );
  };
  for (const [path, item] of Object.entries(doc.paths)) {
    for (const [method, operation] of Object.entries(item)) {
      if (!operation.operationId) continue;
      const { summary, operationId, description = "" } = operation;
      const line = method.toUpperCase() + " " + path;
      operations.push(entry("operation", summary, line + " " + description, toOperation(operation), [summary, line, operationId].join(" ")));
      for (const parameter of [...(item.parameters ?? []), ...(operation.parameters ?? [])].map(resolve)) {
        add("parameter", parameter.name, parameter.description ?? "", operation);
      }
      const seen = new Set();
      for (const { schema } of Object.values(operation.requestBody?.content ?? {})) walk(schema, operation, seen, "");
      for (const [status, response] of Object.entries(operation.responses)) {
        for (const { schema } of Object.values(resolve(response).content ?? {})) {
          walk(schema, operation, status < "400" ? seen : new Set(), status < "400" ? "" : "Status " + status + ".");
        }
      }
    }
  }
  const others = [...parts.values()].map(({ kind, name, text, operation, others }) =>
    entry(kind, name, `${operation.summary}${others.size ? ` and ${others.size} more` : ""}. ${text}`, toOperation(operation), name),
  );
  return [...operations, ...others];
};

const search = document.getElementById("search");
const query = document.getElementById("query");
const results = document.getElementById("results");
let entries;
let found = [];
let current = 0;
let entered = false;

// find returns the entries with all words, best first: by names that are or begin with the query, then by names, then by text.
const find = (text) => {
  const wanted = text.trim().toLowerCase();
  const words = wanted.split(/\s+/);
  const rank = ({ names, name, all }) => {
    if (!words.every((word) => all.includes(word))) return 9;
    if (name.toLowerCase() === wanted) return 0;
    if (names.startsWith(wanted)) return 1;
    return words.every((word) => names.includes(word)) ? 2 : 3;
  };
  return wanted ? entries.map((one) => [rank(one), one]).filter(([n]) => n < 9).sort(([a], [b]) => a - b).slice(0, 20).map(([, one]) => one) : [];
};

// extract returns the part of a text around the first word of the query.
const extract = ({ text }) => {
  const at = text.toLowerCase().indexOf(query.value.trim().toLowerCase().split(/\s+/)[0]);
  const from = at > 60 ? text.lastIndexOf(" ", at - 30) + 1 : 0;
  return (from ? "… " : "") + text.slice(from, from + 110).trim() + (text.length > from + 110 ? " …" : "");
};

const mark = (at) => {
  current = at;
  [...results.children].forEach((row, i) => row.setAttribute("aria-selected", String(i === at)));
  if (found.length) query.setAttribute("aria-activedescendant", "result-" + at);
  else query.removeAttribute("aria-activedescendant");
  results.children[at]?.scrollIntoView({ block: "nearest" });
};

const close = () => {
  results.hidden = true;
  query.setAttribute("aria-expanded", "false");
  query.removeAttribute("aria-activedescendant");
};

const go = (one) => {
  close();
  said.textContent = "";
  one.go();
};

const show = () => {
  const doc = entries ? null : reference.specSelectors.specJson().toJS();
  if (doc?.paths) entries = [...guideEntries(), ...referenceEntries(doc)];
  if (!entries) return; // the document is still loading
  found = find(query.value);
  results.replaceChildren(
    ...found.map((one, i) => {
      const row = element("li", { role: "option", id: "result-" + i }, element("b", {}, one.name), element("span", {}, one.kind), element("small", {}, extract(one)));
      row.addEventListener("mousedown", (event) => event.preventDefault()); // the field keeps the focus
      row.addEventListener("click", () => go(one));
      return row;
    }),
  );
  said.textContent = query.value.trim() ? (found.length ? found.length + " results" : "Nothing found") : "";
  results.hidden = found.length === 0;
  query.setAttribute("aria-expanded", String(!results.hidden));
  mark(0);
};

query.addEventListener("input", show);
query.addEventListener("focus", () => query.value && show());
query.addEventListener("blur", close);
query.addEventListener("keydown", (event) => {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (event.key === "Escape") {
    close();
  } else if (step && found.length) {
    event.preventDefault();
    if (results.hidden) show();
    else mark((current + step + found.length) % found.length);
  } else if (event.key === "Enter") {
    event.preventDefault();
    entered = !event.isComposing && !results.hidden;
  }
});
query.addEventListener("keyup", (event) => {
  if (event.key !== "Enter" || !entered) return;
  entered = false;
  go(found[current]); // now, since the key would press the button that gets the focus
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select")) return;
  event.preventDefault();
  query.focus();
  query.select();
});
search.hidden = false;
