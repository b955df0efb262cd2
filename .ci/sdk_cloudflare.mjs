// The simulator of Cloudflare's API, driven by Cloudflare's own client: node sdk_cloudflare.mjs NODE_MODULES ADDRESS TOKEN

import assert from "node:assert/strict";
import { createRequire } from "node:module";

const [modules, address, apiToken] = process.argv.slice(2);
const { Cloudflare } = createRequire(`${modules}/`)("cloudflare");
const client = (token) => new Cloudflare({ apiToken: token, baseURL: `${address}/client/v4`, maxRetries: 0 });
const { instances } = client(apiToken).containers.applications;
const account_id = "0123456789abcdef0123456789abcdef";
const application = "11111111-2222-4333-8444-555555555555";

async function listed(query) {
  const rows = [];
  for await (const row of instances.list(application, { account_id, ...query })) rows.push(row);
  return rows;
}

// Over more pages than one, each once; what sleeps is still listed, unless it is left out.
const all = await listed({ per_page: 2 });
assert.equal(new Set(all.map((row) => row.id)).size, 6);
const active = await listed({ per_page: 2, state: "active" });
assert.deepEqual(active.map((row) => row.status.state), Array(5).fill("running"));
const asleep = await listed({ state: "not-active" });
assert.deepEqual(asleep.map((row) => [row.status.state, row.status.exit_code]), [["stopped", 143]]);
assert.deepEqual((await listed({ name_prefix: "agent-3" })).map((row) => row.name), ["agent-3"]);

// By its id, and one that never was.
const one = await instances.get(active[0].id, { account_id, application_id: application });
assert.deepEqual(one, active[0]);
const refused = (status) => (error) => error.status === status && error.errors[0].message.length > 0;
await assert.rejects(instances.get("f".repeat(64), { account_id, application_id: application }), refused(404));
const stranger = client("another").containers.applications.instances;
await assert.rejects(async () => stranger.list(application, { account_id }), refused(403));
await assert.rejects(async () => instances.list(application, { account_id, per_page: 1001 }), refused(400));
console.log("cloudflare: the client met what it expects");
