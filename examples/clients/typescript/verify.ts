// Verifies webhooks with Web Crypto. body has the bytes as received: parsing and serializing them again changes them. The secrets are
// the webhook's, several while one replaces another.

const utf8 = new TextEncoder();

// Reports whether x-service-signature is an HMAC-SHA-256 of the body.
export async function verify(secrets: string[], headers: Pick<Headers, "get">, body: Uint8Array<ArrayBuffer>): Promise<boolean> {
  const hex = headers.get("x-service-signature") ?? "";
  if (!/^[0-9a-f]{64}$/.test(hex)) return false;
  const signature = Uint8Array.from(hex.match(/../g)!, (byte) => parseInt(byte, 16));
  return matches(secrets.map((secret) => utf8.encode(secret)), [signature], body);
}

// Reports whether the headers of Standard Webhooks have a signature of the body, sent within tolerance seconds of now. Unlike verify it
// detects replays.
export async function verifyStandard(
  secrets: string[], headers: Pick<Headers, "get">, body: Uint8Array<ArrayBuffer>, tolerance = 300, now = Date.now() / 1000,
): Promise<boolean> {
  const id = headers.get("webhook-id") ?? "", time = headers.get("webhook-timestamp") ?? "";
  const list = headers.get("webhook-signature") ?? "";
  const signatures = list.split(" ").filter((s) => /^v1,[A-Za-z0-9+/]{43}=$/.test(s));
  if (list.includes(", ")) return false; // the header came twice
  if (!/^[^.]+$/.test(id) || !/^(0|[1-9][0-9]{0,11})$/.test(time) || Math.abs(now - Number(time)) > tolerance) return false;
  const head = utf8.encode(`${id}.${time}.`), signed = new Uint8Array(head.length + body.length);
  signed.set(head);
  signed.set(body, head.length);
  return matches(secrets.map(standardKey), signatures.map((s) => decode(s.slice(3))), signed);
}

// A secret "whsec_" and base64 is the decoded key, unless that is empty or all zeros: anyone could sign with it.
function standardKey(secret: string): Uint8Array<ArrayBuffer> {
  const text = /^whsec_((?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?)$/.exec(secret)?.[1];
  const key = decode(text ?? "");
  return key.some((byte) => byte !== 0) ? key : utf8.encode(secret);
}

const decode = (base64: string) => Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));

// crypto.subtle.verify compares in constant time. All pairs are tried, so that the time doesn't tell which secret signs.
async function matches(keys: Uint8Array<ArrayBuffer>[], signatures: Uint8Array<ArrayBuffer>[], signed: Uint8Array<ArrayBuffer>) {
  if (keys.length === 0 || keys.some((key) => key.length === 0)) throw new Error("no secret");
  let found = false;
  for (const raw of keys) {
    const key = await crypto.subtle.importKey("raw", raw, { name: "HMAC", hash: "SHA-256" }, false, ["verify"]);
    for (const signature of signatures) found = (await crypto.subtle.verify("HMAC", key, signature, signed)) || found;
  }
  return found;
}
