// Repeats requests that failed for a moment, for Node.js and browsers.

// Returns a fetch that tries again for limit milliseconds, or until the request's signal aborts. Every POST gets an Idempotency-Key,
// the same on each attempt. A body is kept in memory to be sent again. Replies in JSON are read whole, since they can break off too.
export const retrying = (limit: number) => async (request: Request): Promise<Response> => {
  const headers = new Headers(request.headers);
  if (request.method === "POST" && !headers.has("Idempotency-Key")) headers.set("Idempotency-Key", crypto.randomUUID());
  const body = request.method === "GET" || request.method === "HEAD" ? null : await request.arrayBuffer();
  for (let end = Date.now() + limit, pause = 250; ; pause = Math.min(2 * pause, 8000)) {
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(new Error(`no reply within ${limit} ms`)), end - Date.now());
    let reply: Response | undefined, failure: unknown;
    try {
      reply = await fetch(new Request(request, { headers, body, signal: AbortSignal.any([request.signal, late.signal]) }));
      if (reply.body && isJSON(reply)) reply = new Response(await reply.arrayBuffer(), reply);
    } catch (error) {
      [reply, failure] = [undefined, error];
    } finally {
      clearTimeout(timer);
    }
    if (reply && !(await passes(reply))) return reply;
    const after = reply?.headers.get("Retry-After") ?? "0"; // seconds or a date
    const wait = pause * Math.random() + Math.max(0, Number(after) * 1000 || Date.parse(after) - Date.now() || 0);
    request.signal.throwIfAborted();
    if (Date.now() + wait >= end) return reply ?? Promise.reject(failure);
    await reply?.body?.cancel();
    await new Promise((resolve) => (request.signal.addEventListener("abort", resolve, { signal: late.signal }), setTimeout(resolve, wait)));
    late.abort(); // removes the listener
    request.signal.throwIfAborted();
  }
};

const isJSON = (reply: Response) => /[/+]json\b/.test(reply.headers.get("Content-Type") ?? "");

// Reports whether a later attempt can succeed. Of conflicts only a request that is still in progress passes.
async function passes(reply: Response): Promise<boolean> {
  const code = isJSON(reply) && (reply.status === 409 || reply.status === 502) ? (await reply.clone().json()).code : undefined;
  return reply.status === 409 ? code === "idempotency_in_flight" : [408, 429, 502, 503, 504].includes(reply.status) && code !== "blob_corrupt";
}
