// The libraries that receivers have on npm, unchanged, verify and parse what posthaste sends.

import assert from "node:assert/strict";
import { createPublicKey, verify } from "node:crypto";
import { after, before, test } from "node:test";

import { HTTP } from "cloudevents";
import { Webhook as StandardWebhook } from "standardwebhooks";
import { Webhook as SvixWebhook } from "svix";

import { Server, receiver } from "./serving.mjs";

const CLOUD_EVENT = {
  specversion: "1.0",
  id: "1",
  source: "/s",
  type: "order.paid",
  subject: "orders/1",
  mine: "kept",
  time: "2026-11-21T10:00:00.000Z",
  datacontenttype: "application/json",
  data: { amount: 12.5, zoë: "ä" },
};
const EVENT_GRID = {
  id: "1",
  eventType: "order.paid",
  subject: "orders/1",
  eventTime: "2026-11-21T10:00:00Z",
  dataVersion: "2.0",
  data: { amount: 12.5, zoë: "ä" },
};
const CUSTOM = { no: "1", kind: "order.paid", about: "orders/1", amount: 12.5, zoë: "ä" };
const MAPPING = {
  id: { sourceField: "no" },
  eventType: { sourceField: "kind" },
  subject: { sourceField: "about" },
};
const EVENTS = { CloudEvents: CLOUD_EVENT, EventGrid: EVENT_GRID, Custom: CUSTOM };
const BATCHED = { batching: { maxEventsPerBatch: 10 } };

// The forms of a request: what the topic accepts, and the members of the subscription.
const FORMS = {
  structured: ["CloudEvents", {}],
  binary: ["CloudEvents", { contentMode: "binary" }],
  batched: ["CloudEvents", BATCHED],
  "Event Grid": ["EventGrid", {}],
  "Event Grid, batched": ["EventGrid", BATCHED],
  "Event Grid as CloudEvents": ["EventGrid", { deliverySchema: "CloudEvents" }],
  "Event Grid as binary CloudEvents": ["EventGrid", { deliverySchema: "CloudEvents", contentMode: "binary" }],
  Custom: ["Custom", {}],
  "Custom, batched": ["Custom", BATCHED],
  "Custom as Event Grid": ["Custom", { deliverySchema: "EventGrid" }],
  "Custom as CloudEvents": ["Custom", { deliverySchema: "CloudEvents" }],
};

let server;
let topics = 0;
before(async () => (server = await Server.start()));
after(() => server.stop());

/** Verifies the one request that these events become, and returns what a receiver parses of it. */
async function receive(
  form,
  Webhook,
  parse,
  events,
  secretOf = (subscription) => subscription.signing.secrets[0],
) {
  const [schema, settings] = FORMS[form];
  let secret;
  const hook = await receiver(({ headers, body }) => {
    new Webhook(secret).verify(body, headers);
    return parse({ headers, body: body.toString() });
  });
  try {
    const input = { inputSchema: schema, ...(schema === "Custom" && { inputMapping: MAPPING }) };
    const topic = await server.createTopic(`node-${(topics += 1)}`, input, hook.url, settings);
    secret = secretOf(topic.subscription);
    const type = schema === "CloudEvents" ? "application/cloudevents-batch+json" : "application/json";
    const body = JSON.stringify(events ?? [EVENTS[schema]]);
    const headers = { "aeg-sas-key": topic.key, "content-type": type };
    const answer = await fetch(topic.url, { method: "POST", headers, body });
    assert.equal(answer.status, 200, await answer.text());
    return await hook.received;
  } finally {
    hook.close();
  }
}

for (const form of Object.keys(FORMS)) {
  test(`standardwebhooks verifies: ${form}`, () => receive(form, StandardWebhook, () => {}));
  test(`svix verifies: ${form}`, () => receive(form, SvixWebhook, () => {}));
}

test("what another secret signed is not taken", async () => {
  const other = () => "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
  for (const Webhook of [StandardWebhook, SvixWebhook]) {
    await assert.rejects(
      receive("structured", Webhook, () => {}, undefined, other),
      /No matching signature/,
    );
  }
});

test("a public key of the key set verifies v1a; the libraries, which do not know it, verify v1", async () => {
  let key, secret;
  const hook = await receiver(({ headers, body }) => {
    const signature = headers["webhook-signature"].split(" ").find((one) => one.startsWith("v1a,"));
    const content = Buffer.concat([
      Buffer.from(`${headers["webhook-id"]}.${headers["webhook-timestamp"]}.`),
      body,
    ]);
    const bytes = Buffer.from(signature.slice("v1a,".length), "base64");
    assert.ok(verify(null, content, key, bytes));
    assert.ok(!verify(null, Buffer.concat([content, Buffer.from(" ")]), key, bytes));
    new StandardWebhook(secret).verify(body, headers);
    new SvixWebhook(secret).verify(body, headers);
  });
  try {
    const topic = await server.createTopic("node-v1a", { inputSchema: "CloudEvents" }, hook.url, {});
    secret = topic.subscription.signing.secrets[0];
    await server.manage("POST", "/topics/node-v1a/subscriptions/all/rotate-secret", { kind: "v1a" });
    const set = await fetch(`${server.url}/.well-known/webhook-keys?topic=node-v1a&subscription=all`);
    key = createPublicKey({ key: (await set.json()).keys[0], format: "jwk" });
    const headers = { "aeg-sas-key": topic.key, "content-type": "application/cloudevents+json" };
    await fetch(topic.url, { method: "POST", headers, body: JSON.stringify(CLOUD_EVENT) });
    await hook.received;
  } finally {
    hook.close();
  }
});

for (const form of ["structured", "binary"]) {
  test(`cloudevents reads: ${form}`, async () => {
    const event = await receive(form, StandardWebhook, (message) => HTTP.toEvent(message));
    assert.deepEqual(JSON.parse(JSON.stringify(event)), CLOUD_EVENT);
  });
}

test("cloudevents reads: batched", async () => {
  const both = [CLOUD_EVENT, { ...CLOUD_EVENT, id: "2" }];
  const events = await receive("batched", StandardWebhook, (message) => HTTP.toEvent(message), both);
  assert.deepEqual(JSON.parse(JSON.stringify(events)), both);
});

const CONVERTED = {
  "Event Grid as CloudEvents": EVENT_GRID.data,
  "Event Grid as binary CloudEvents": EVENT_GRID.data,
  "Custom as CloudEvents": CUSTOM,
};
for (const [form, data] of Object.entries(CONVERTED)) {
  test(`cloudevents reads: ${form}`, async () => {
    const event = await receive(form, StandardWebhook, (message) => HTTP.toEvent(message));
    assert.deepEqual(
      [event.id, event.type, event.subject, event.data],
      ["1", "order.paid", "orders/1", data],
    );
  });
}
