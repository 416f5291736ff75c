// Checks verify.mjs against the golden vectors: node vectors.mjs vectors.json
import { readFileSync } from "node:fs";
import { verify } from "./verify.mjs";

let count = 0;
for (const v of JSON.parse(readFileSync(process.argv[2])).service) {
  if (v.want === "too_large") continue; // the code that reads the body limits it
  const body = v.fill ? Buffer.alloc(v.fill.count, v.fill.byte) : Buffer.from(v.body, "base64");
  let verdict;
  try {
    verdict = verify(v.secrets, v.headers["x-service-signature"]?.join(", "), body) ? "ok" : "refused";
  } catch (error) {
    verdict = error.message === "no secret" ? "no_secret" : `failed: ${error.message}`;
  }
  const want = ["ok", "no_secret"].includes(v.want) ? v.want : "refused";
  if (verdict !== want) {
    console.log(`WRONG ${v.name}: ${verdict}`);
    process.exitCode = 1;
  }
  count++;
}
console.log(`${count} vectors`);
