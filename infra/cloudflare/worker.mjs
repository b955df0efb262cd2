// Furlough's companion Worker: what Cloudflare's own API can't do to one sandbox.
//
//   POST /v1/instances/ID/destroy       ends a container that runs            {"before": STATE, "after": STATE}
//   PUT  /v1/instances/ID/sleep-after   {"seconds": N}: how long it may idle  {"state": STATE}
//
// ID is the 64 hexadecimal digits of Cloudflare's listing; it must be of the namespace that is bound as SANDBOX. The
// class there is one of @cloudflare/containers or @cloudflare/sandbox 0.12. Both routes begin with getState() and answer
// 409 unless the container runs: they call getState(), destroy() and setSleepAfter(), none of which reaches the container,
// so that none starts it. A caller shows FURLOUGH_KEY as its bearer token; while that is unset everybody is refused.

const RUNS = new Set(["running", "healthy"]);
const MOST_BYTES = 1024;
const answer = (status, body) => Response.json(body, { status });

// Compared by their digests, in a time that tells neither where they differ nor how long the key is.
async function allowed(request, key) {
  if (typeof key !== "string" || key.trim() === "") return false;
  const bytes = (text) => crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  const [shown, wanted] = await Promise.all([
    bytes(request.headers.get("authorization") ?? ""),
    bytes(`Bearer ${key.trim()}`),
  ]);
  return crypto.subtle.timingSafeEqual(shown, wanted);
}

async function seconds(request) {
  try {
    const text = await request.text();
    const { seconds } = text.length > MOST_BYTES ? {} : JSON.parse(text);
    // Nothing, and what is less than a second, would put it to sleep at once.
    return Number.isSafeInteger(seconds) && seconds >= 1 ? seconds : undefined;
  } catch {
    return undefined;
  }
}

async function route(request, env) {
  if (!(await allowed(request, env.FURLOUGH_KEY))) return answer(401, { error: "the key is wrong, or none is set" });
  const [, id, verb] = new URL(request.url).pathname.match(/^\/v1\/instances\/([0-9a-f]{64})\/([a-z-]+)$/) ?? [];
  const call = `${request.method} ${verb}`;
  if (call !== "POST destroy" && call !== "PUT sleep-after") return answer(404, { error: "no such route" });
  const after = verb === "sleep-after" ? await seconds(request) : undefined;
  if (verb === "sleep-after" && after === undefined) return answer(400, { error: "`seconds` is a whole number from 1" });
  let durable;
  try {
    durable = env.SANDBOX.idFromString(id);
  } catch {
    return answer(400, { error: "the id is of another namespace than this Worker's" });
  }
  const sandbox = env.SANDBOX.get(durable);
  const before = await sandbox.getState();
  if (!RUNS.has(before?.status)) return answer(409, { error: "it does not run", state: before });
  if (verb === "sleep-after") {
    await sandbox.setSleepAfter(after);
    return answer(200, { state: before });
  }
  await sandbox.destroy();
  return answer(200, { before, after: await sandbox.getState() });
}

export default {
  async fetch(request, env) {
    try {
      return await route(request, env);
    } catch (error) {
      return answer(502, { error: `the sandbox's object failed: ${error?.message ?? error}` });
    }
  },
};
