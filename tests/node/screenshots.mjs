// Takes the screenshots of the documents: `POSTHASTE_BIN=… node screenshots.mjs FOLDER`. It runs an
// installation for eight minutes, so that the charts have something to show.

import { setTimeout as sleep } from "node:timers/promises";

import { Endpoint, Visitor, launch } from "./console.mjs";
import { Server } from "./serving.mjs";

const RUN_MS = 480_000;

const folder = process.argv[2] ?? ".";
const [browser, server] = await Promise.all([launch(), Server.start()]);
const [well, slow, broken] = await Promise.all([Endpoint.start(), Endpoint.start(), Endpoint.start()]);
const deadLetter = { delay: "PT0S" };
const to = (endpoint, more = {}) => ({ endpoint: { url: endpoint.url }, deadLetter, ...more });
await server.manage("PUT", "/topics/orders", {
  subscriptions: {
    billing: to(well, { deliveryHeaders: [{ name: "x-key", value: "s3cret", isSecret: true }] }),
    crm: to(slow, { filter: { includedEventTypes: ["com.example.order.paid"] } }),
    warehouse: to(broken, { retryPolicy: { maxDeliveryAttempts: 5 } }),
  },
});
await server.manage("PUT", "/topics/customers", { subscriptions: { newsletter: to(well) } });

const keys = {};
for (const topic of ["orders", "customers"]) {
  keys[topic] = (await server.manage("GET", `/topics/${topic}/keys`)).key1;
}

let number = 1000;
async function publish(topic, type) {
  number += 1;
  const event = { specversion: "1.0", id: `${topic.slice(0, -1)}-${number}`, source: "/shop", type };
  await fetch(`${server.url}/topics/${topic}/events`, {
    method: "POST",
    headers: { "content-type": "application/cloudevents+json", "aeg-sas-key": keys[topic] },
    body: JSON.stringify({ ...event, subject: `${topic}/${number}`, data: { total: number / 10 } }),
  });
}

const began = Date.now();
for (let round = 0; Date.now() - began < RUN_MS; round += 1) {
  const share = (Date.now() - began) / RUN_MS;
  broken.status = share > 0.55 ? 503 : round % 40 === 0 ? 400 : 200;
  broken.body = broken.status === 200 ? "" : `{"error":"no stock for order ${number}"}`;
  slow.status = round % 25 === 0 ? 429 : 200;
  const events = 4 + Math.round(6 * Math.abs(Math.sin(share * 9)));
  for (let at = 0; at < events; at += 1) await publish("orders", "com.example.order.paid");
  if (round % 3 === 0) await publish("customers", "com.example.customer.created");
  await sleep(900);
}

const event = "order-1010";
const pages = [
  ["overview", ""],
  ["subscription", "/topics/orders/subscriptions/warehouse"],
  ["events", "/events?topic=orders"],
  ["event", `/topics/orders/events/${event}`],
  ["dead-letters", "/dead-letters?topic=orders&subscription=warehouse"],
  ["failing", "/failing"],
  ["pressure", "/pressure"],
  ["edit", "/topics/orders/subscriptions/billing/edit"],
];
const looks = [
  ["", { colorScheme: "light", viewport: { width: 1280, height: 800 } }, pages],
  ["-dark", { colorScheme: "dark", viewport: { width: 1280, height: 800 } }, [pages[0], pages[3]]],
  ["-phone", { colorScheme: "light", viewport: { width: 390, height: 844 } }, [pages[0], pages[3]]],
];
for (const [suffix, options, shown] of looks) {
  const visitor = await Visitor.come(browser, server, options);
  await visitor.signIn();
  for (const [name, path] of shown) {
    await visitor.open(`/console${path}`);
    await visitor.page.screenshot({ path: `${folder}/${name}${suffix}.png` });
  }
  await visitor.leave();
}
await browser.close();
for (const endpoint of [well, slow, broken]) endpoint.stop();
await server.stop();
