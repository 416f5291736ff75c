// Runs the example requests of openapi.json in curl, Python and TypeScript: node run.mjs SERVER RECEIVER
//
// They run in the order of the document, deletions last, with the UUIDs of the replies in place of the document's.
// Each must make the request that its operation describes, and get a 2xx. FORMSVC_KEY has the key.
import { spawn, spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";

const [server, receiver] = process.argv.slice(2);
const root = new URL("../../../", import.meta.url).pathname;
const doc = JSON.parse(readFileSync(root + "httpx/openapi.json", "utf8"));
const dir = mkdtempSync(tmpdir() + "/samples-");
process.chdir(dir);
process.on("exit", () => rmSync(dir, { recursive: true }));
writeFileSync("passport.txt", "passport");
cpSync(root + "examples/clients/python/formsvc.py", "formsvc.py");
for (const name of ["package.json", "package-lock.json", "tsconfig.json", "formsvc.ts", "retry.ts"]) {
  cpSync(root + "examples/clients/typescript/" + name, name);
}

// The operations in the order in which they run: deletions last, and a response before its campaign.
const operations = [];
const deletions = [];
for (const [path, item] of Object.entries(doc.paths)) {
  for (const [method, operation] of Object.entries(item)) {
    const samples = Object.fromEntries((operation["x-codeSamples"] ?? []).map(({ label, source }) => [label, source]));
    const parameters = [...(item.parameters ?? []), ...(operation.parameters ?? [])];
    if (!samples.curl) continue;
    if (method === "delete") deletions.unshift({ method: "DELETE", path, parameters, operation, samples });
    else operations.push({ method: method.toUpperCase(), path, parameters, operation, samples });
    writeFileSync(operation.operationId + ".ts", samples.TypeScript);
  }
}
operations.push(...deletions);

// must runs a program that prepares the examples in TypeScript: they are checked strictly.
const must = (command) => {
  const { status, output } = spawnSync("sh", ["-c", command], { encoding: "utf8" });
  if (status !== 0) {
    console.log(command, output);
    process.exit(1);
  }
};
must("npm ci --no-audit --no-fund --ignore-scripts");
must(`npx openapi-typescript "${root}httpx/openapi.json" --output schema.d.ts`);
must("npx tsc");

// The proxy notes each request with its reply.
let seen = [];
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

let failed = 0;
for (const [label, command, extension] of [
  ["curl", "sh", ".sh"],
  ["Python", "python3", ".py"],
  ["TypeScript", "node", ".js"],
]) {
  const real = new Map([
    ["https://receiver.example.com/forms", receiver],
    ["http://127.0.0.1:8080", "http://127.0.0.1:" + proxy.address().port],
  ]);
  const replaced = (text) => [...real].reduce((all, [from, to]) => all.replaceAll(from, to), text);
  for (const { method, path, parameters, operation, samples } of operations) {
    const { operationId, responses } = operation;
    const source = replaced(extension === ".js" ? readFileSync(operationId + ".js", "utf8") : samples[label]);
    writeFileSync("run" + extension, source);
    let status, said;
    for (let tries = 0; tries < 50; tries++) {
      seen = [];
      said = "";
      const program = spawn(command, ["run" + extension], { stdio: ["ignore", "ignore", "pipe"] });
      program.stderr.on("data", (text) => (said += text));
      status = await new Promise((ended) => program.on("close", ended));
      if (!seen.at(-1)?.content.includes("delivery_in_progress")) break; // is over soon
    }
    let wanted = method + " " + path;
    for (const { $ref = "" } of parameters) {
      const parameter = doc.components.parameters[$ref.split("/").at(-1)];
      if (parameter?.in === "path") wanted = wanted.replace(`{${parameter.name}}`, replaced(parameter.example));
    }
    const good = status === 0 && seen.length > 0 && seen.every((one) => one.status >= 200 && one.status < 300 && one.line === wanted);
    if (!good) {
      failed++;
      console.log(`${operationId} in ${label}: want a 2xx of ${wanted}, got`, seen, said, "\n" + source);
    }
    const example = responses["201"]?.content["application/json"].example?.uuid;
    if (good && example) real.set(example, JSON.parse(seen[0].content).uuid);
  }
}
console.log(operations.length, "operations,", failed, "failures");
process.exit(failed || operations.length < 30 ? 1 : 0);
