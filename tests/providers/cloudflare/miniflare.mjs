// infra/cloudflare/worker.mjs on the real runtime, before Durable Objects that stand in for sandboxes: their container is
// a word in their storage, and they tell every call that came to them.
//
//   node miniflare.mjs NODE_MODULES WORKER KEY     prints {"app", "worker", "keyless"}: addresses; ends with its input
//
// At `app`, of a sandbox's name: /make and /sleep (its container begins and ends), /calls.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const [modules, file, key] = process.argv.slice(2);
const { Miniflare } = createRequire(`${modules}/`)("miniflare");

const app = `
import { DurableObject } from "cloudflare:workers";
export class Sandbox extends DurableObject {
  #calls = [];
  #state = { status: "stopped", lastChange: 0 };
  hand(status) { this.#state = { status, lastChange: Date.now() }; }
  told() { return this.#calls; }
  fetch() { this.#calls.push("fetch"); return new Response("it was started"); }
  getState() { this.#calls.push("getState"); return this.#state; }
  destroy() { this.#calls.push("destroy"); this.#state = { status: "stopped_with_code", lastChange: Date.now(), exitCode: 137 }; }
  setSleepAfter(after) { this.#calls.push("setSleepAfter " + JSON.stringify(after)); }
}
export default {
  async fetch(request, env) {
    const { pathname, searchParams } = new URL(request.url);
    const id = env.SANDBOX.idFromName(searchParams.get("name"));
    const sandbox = env.SANDBOX.get(id);
    if (pathname === "/make") await sandbox.hand("healthy");
    if (pathname === "/sleep") await sandbox.hand("stopped");
    return Response.json({ id: id.toString(), calls: await sandbox.told() });
  },
};`;

const common = { modules: true, compatibilityDate: "2026-04-01", unsafeDirectSockets: [{ host: "127.0.0.1", port: 0 }] };
const companion = (name, bindings) => ({
  ...common,
  name,
  script: readFileSync(file, "utf8"),
  bindings,
  durableObjects: { SANDBOX: { className: "Sandbox", scriptName: "app" } },
});
const miniflare = new Miniflare({
  host: "127.0.0.1",
  port: 0,
  workers: [
    { ...common, name: "app", script: app, durableObjects: { SANDBOX: "Sandbox" } },
    companion("worker", { FURLOUGH_KEY: key }),
    companion("keyless", {}),
  ],
});
await miniflare.ready;
const address = async (name) => (await miniflare.unsafeGetDirectURL(name)).toString().replace(/\/$/, "");
console.log(JSON.stringify({ app: await address("app"), worker: await address("worker"), keyless: await address("keyless") }));
process.stdin.resume().on("end", () => miniflare.dispose().then(() => process.exit(0)));
