// A client that `openapi-typescript` types from the served description compiles, manages and publishes.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { copyFile, mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";

import { Server, receiver } from "./serving.mjs";

const run = promisify(execFile);
const HERE = import.meta.dirname;
const COMPILE = [
  "--strict",
  "--target",
  "es2022",
  "--module",
  "nodenext",
  "--skipLibCheck",
  "generated-client.ts",
];
const CLOUD_EVENT = {
  specversion: "1.0",
  source: "/s",
  type: "order.paid",
  mine: "kept",
  data: { amount: 12.5 },
};

let server;
let folder;
let client;

before(async () => {
  server = await Server.start();
  // Beside the installed packages, so that the compiler finds them.
  folder = await mkdtemp(join(HERE, "generated-"));
  const answer = await fetch(`${server.url}/openapi.json`);
  await writeFile(join(folder, "openapi.json"), await answer.text());
  await writeFile(join(folder, "package.json"), '{"type":"module"}');
  await copyFile(join(HERE, "generated-client.ts"), join(folder, "generated-client.ts"));
  const tool = (name) => join(HERE, "node_modules", ".bin", name);
  await run(tool("openapi-typescript"), ["openapi.json", "-o", "api.d.ts"], { cwd: folder });
  await run(tool("tsc"), COMPILE, { cwd: folder }).catch((error) => {
    throw new Error(`${error.stdout}${error.stderr}`);
  });
  client = await import(join(folder, "generated-client.js"));
});

after(async () => {
  await rm(folder, { recursive: true, force: true });
  await server.stop();
});

/** Publishes to a topic of this schema, and answers the body of the one request that comes of it. */
async function roundTrip(topic, schema, events) {
  const hook = await receiver(({ body }) => JSON.parse(body.toString()));
  try {
    const key = await client.createTopic(server.url, server.key, topic, schema, hook.url);
    assert.equal(await client.publish(server.url, key, topic, events), undefined);
    return await hook.received;
  } finally {
    hook.close();
  }
}

test("a CloudEvent is published", async () => {
  const event = { ...CLOUD_EVENT, id: "1" };
  assert.deepEqual(await roundTrip("typed-one", "CloudEvents", event), event);
});

test("an array of CloudEvents is published", async () => {
  const event = { ...CLOUD_EVENT, id: "1" };
  assert.deepEqual(await roundTrip("typed-batch", "CloudEvents", [event]), event);
});

test("an Event Grid event is published", async () => {
  const event = {
    id: "1",
    eventType: "t",
    subject: "/s",
    eventTime: "2026-11-21T10:00:00Z",
    data: 1,
    dataVersion: "1",
  };
  const [received] = await roundTrip("typed-event-grid", "EventGrid", [event]);
  assert.equal(received.id, "1");
});

test("a refusal names the member, and topics are listed", async () => {
  const key = await client.createTopic(
    server.url,
    server.key,
    "typed-refused",
    "CloudEvents",
    "http://127.0.0.1:9/",
  );
  const member = await client.publish(server.url, key, "typed-refused", { ...CLOUD_EVENT, id: "" });
  assert.equal(member, "id");
  assert.ok((await client.topicNames(server.url, server.key)).includes("typed-refused"));
});
