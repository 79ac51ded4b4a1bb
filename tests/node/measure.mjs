// Measures the console's pages with 10,000 topics, a million attempts in the delivery log and the outage of
// outage.mjs: `POSTHASTE_BIN=… node measure.mjs [FILE]`. Prints the median of five requests of each page, in
// milliseconds, and its bytes; a file gets them as JSON. Takes some minutes.

import { writeFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";

import { Outage } from "./outage.mjs";

const TOPICS = 10_000;
const ATTEMPTS = 1_000_000;
const SUBSCRIBERS = 10;
const BATCH = 1_000;
const AT_ONCE = 8;
const ROUNDS = 5;

const PAGES = [
  "",
  "/failing",
  "/links",
  "/topics",
  "/topics/orders",
  "/topics/orders/subscriptions/shop-0",
  "/topics/orders/subscriptions/shop-0/edit",
  "/topics/busy/subscriptions/sink-0",
  "/events?topic=orders",
  "/events?topic=busy",
  "/events?topic=busy&subscription=sink-3",
  "/topics/orders/events/order-5",
  "/topics/busy/events/busy-77",
  "/find?id=busy-77",
  "/search?q=busy-77",
  "/search?q=shop-3",
  "/search?q=all-7777",
  "/dead-letters",
  "/dead-letters?topic=orders",
  "/pressure",
  "/replays",
  "/work",
  "/audit",
];

/** Does `work` for each number below `count`, some at once. */
async function inTurns(count, work) {
  let next = 0;
  const turn = async () => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, turn));
}

/** Publishes a batch of events of the topic busy. */
async function publish(server, key, number) {
  const common = { specversion: "1.0", source: "/load", type: "com.example.load" };
  const events = Array.from({ length: BATCH }, (_, at) => ({ ...common, id: `busy-${number * BATCH + at}` }));
  const request = {
    method: "POST",
    headers: { "content-type": "application/cloudevents-batch+json", "aeg-sas-key": key },
    body: JSON.stringify(events),
  };
  for (;;) {
    const answer = await fetch(`${server.url}/topics/busy/events`, request);
    if (answer.ok) return;
    if (answer.status !== 429 && answer.status !== 503) throw new Error(`${answer.status} ${await answer.text()}`);
    await sleep(1_000);
  }
}

/** A signed-in visitor's cookie. */
async function signIn(server) {
  const page = await fetch(`${server.url}/console/sign-in`);
  const form = (await page.text()).match(/name="form" value="([^"]*)"/)[1];
  const cookie = (answer) => answer.headers.getSetCookie()[0].split(";")[0];
  const answer = await fetch(`${server.url}/console/sign-in`, {
    method: "POST",
    redirect: "manual",
    headers: {
      cookie: cookie(page),
      "content-type": "application/x-www-form-urlencoded",
      "sec-fetch-site": "same-origin",
    },
    body: new URLSearchParams({ form, key: server.key }),
  });
  return cookie(answer);
}

async function measurePage(server, cookie, path) {
  const took = [];
  let bytes = 0;
  let status = 0;
  for (let round = 0; round < ROUNDS; round += 1) {
    const began = performance.now();
    const answer = await fetch(`${server.url}/console${path}`, { headers: { cookie } });
    bytes = (await answer.arrayBuffer()).byteLength;
    took.push(performance.now() - began);
    status = answer.status;
  }
  const sorted = took.toSorted((one, other) => one - other);
  return { path, status, ms: sorted[Math.floor(ROUNDS / 2)], firstMs: took[0], bytes };
}

const outage = await Outage.begin();
const { server } = outage;
const well = await outage.receive({ status: 200, body: "" });
await inTurns(TOPICS, (number) => server.createTopic(`tenant-${number}`, {}, well, {}));
const sinks = Array.from({ length: SUBSCRIBERS }, (_, at) => [
  `sink-${at}`,
  { endpoint: { url: well }, batching: { maxEventsPerBatch: 100 } },
]);
await server.manage("PUT", "/topics/busy", { subscriptions: Object.fromEntries(sinks) });
const { key1 } = await server.manage("GET", "/topics/busy/keys");
const batches = ATTEMPTS / SUBSCRIBERS / BATCH;
await inTurns(batches, (number) => publish(server, key1, number));
// The last deliveries, and their records.
await sleep(60_000);
const cookie = await signIn(server);
const measured = [];
for (const path of PAGES) measured.push(await measurePage(server, cookie, path));
for (const { path, status, ms, firstMs, bytes } of measured) {
  console.log(`${path.padEnd(48)} ${status} ${ms.toFixed(1).padStart(8)} ms, first ${firstMs.toFixed(1)} ms, ${bytes} bytes`);
}
if (process.argv[2]) await writeFile(process.argv[2], JSON.stringify(measured, null, 1));
await outage.end();
