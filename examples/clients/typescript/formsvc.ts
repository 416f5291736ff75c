import createClient from "openapi-fetch";
import { retrying } from "./retry.js";
import type { paths } from "./schema.js";

// Returns a client of the service at baseURL. It retries for a minute; a call's own signal ends it earlier. A DELETE whose reply was
// lost gets 404 on its second attempt.
export const connect = (baseURL: string, key: string) =>
  createClient<paths>({ baseUrl: baseURL.replace(/\/$/, ""), headers: { Authorization: `Bearer ${key}` }, fetch: retrying(60_000) });
