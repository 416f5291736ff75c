// Runs the example requests of openapi.json in one language: node run.mjs LABEL COMMAND EXTENSION SERVER RECEIVER
// With --write it writes the ones in TypeScript to files instead.
//
// They run in the order of the document, deletions last, with the UUIDs of the replies in place of the document's.
// Each must make the request that its operation describes, and get a 2xx.
import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { spawn } from "node:child_process";

const [label, command, extension, server, receiver] = process.argv.slice(2);
const doc = JSON.parse(readFileSync("openapi.json", "utf8"));
const real = new Map([["https://receiver.example.com/forms", receiver]]);
let seen = [];

// The proxy notes each request with its reply.
const proxy = createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const { host, connection, ...headers } = request.headers;
  const body = chunks.length ? Buffer.concat(chunks) : undefined;
  const reply = await fetch(server + request.url, { method: request.method, headers, body });
  const content = Buffer.from(await reply.arrayBuffer());
  seen.push({ line: request.method + " " + request.url.split("?")[0], status: reply.status, content: content.toString() });
  const type = reply.headers.get("content-type");
  response.writeHead(reply.status, type ? { "content-type": type } : {}).end(content);
});
await new Promise((listening) => proxy.listen(0, "127.0.0.1", listening));
real.set("http://127.0.0.1:8080", "http://127.0.0.1:" + proxy.address().port);

const replaced = (text) => [...real].reduce((all, [from, to]) => all.replaceAll(from, to), text);

const run = async () => {
  seen = [];
  const program = spawn(command, ["run" + extension], { stdio: ["ignore", "ignore", "inherit"] });
  const status = await new Promise((ended) => program.on("exit", ended));
  return status === 0 && seen.length > 0 && seen.every((one) => one.status >= 200 && one.status < 300);
};

const operations = [];
for (const [path, item] of Object.entries(doc.paths)) {
  for (const [method, operation] of Object.entries(item)) {
    const sample = operation["x-codeSamples"]?.find((one) => one.label === (label === "--write" ? "TypeScript" : label));
    if (!sample) continue;
    const one = { method: method.toUpperCase(), path, operation, parameters: [...(item.parameters ?? []), ...(operation.parameters ?? [])], sample };
    if (method === "delete") operations.unshift(one); // taken last, and the response before its campaign
    else operations.push(one);
  }
}
const deletions = operations.filter(({ method }) => method === "DELETE");

if (label === "--write") {
  for (const { operation, sample } of operations) writeFileSync(operation.operationId + ".ts", sample.source);
  process.exit();
}

let failed = 0;
for (const { method, path, operation, parameters, sample } of [...operations.filter(({ method }) => method !== "DELETE"), ...deletions]) {
  const name = operation.operationId;
  const compiled = extension === ".js" ? readFileSync(name + ".js", "utf8") : sample.source;
  writeFileSync("run" + extension, replaced(compiled));
  let good = await run();
  for (let i = 0; i < 50 && !good && seen.at(-1)?.content.includes("delivery_in_progress"); i++) good = await run();
  let wanted = path;
  for (const { $ref = "" } of parameters) {
    const parameter = doc.components.parameters[$ref.split("/").at(-1)];
    if (parameter?.in === "path") wanted = wanted.replace(`{${parameter.name}}`, replaced(parameter.example));
  }
  if (!good || seen.some(({ line }) => line !== method + " " + wanted)) {
    failed++;
    console.log(`${name} in ${label}: want a 2xx of ${method} ${wanted}, got`, seen, "\n" + replaced(sample.source));
  }
  const example = operation.responses["201"]?.content["application/json"].example?.uuid;
  if (good && example) real.set(example, JSON.parse(seen[0].content).uuid);
}
console.log(operations.length, "ran,", failed, "failed");
proxy.close();
process.exit(failed || operations.length < 30 ? 1 : 0);
