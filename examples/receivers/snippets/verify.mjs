import { createHmac, timingSafeEqual } from "node:crypto";

// Tells whether body, the raw bytes of a request, was signed with one of the
// secrets. signature is the value of the header x-service-signature. In Express
// the raw bytes are request.body behind express.raw({ type: "*/*", limit: "2mb" }).
export function verify(secrets, signature, body) {
  if (secrets.length === 0 || secrets.some((secret) => !secret)) throw new Error("no secret");
  const got = Buffer.from(signature ?? "");
  return secrets.some((secret) => {
    const want = Buffer.from(createHmac("sha256", secret).update(body).digest("hex"));
    return got.length === want.length && timingSafeEqual(got, want);
  });
}
