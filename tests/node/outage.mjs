// An outage to look at: ten endpoints that fail in five ways, one that is well, and 10,000 deliveries
// that wait or were given up.

import { once } from "node:events";
import { createServer } from "node:http";

import { Server } from "./serving.mjs";

/** Subscriptions of the topic orders that fail. */
export const FAILING = 10;

/** Events of the topic orders. Each goes to every subscription, so ten times as many deliveries wait. */
export const EVENTS = 1_000;

/** Events of one publish request. */
const BATCH = 100;

/** What the endpoints of the failing subscriptions answer, in turn. */
const ANSWERS = [
  { status: 503, body: "maintenance until ten" },
  { status: 500, body: "stack overflow in line 7" },
  { status: 429, body: "slow down", headers: { "retry-after": "600" } },
  { status: 410, body: "this shop has closed" },
  { status: 401, body: "the key has changed" },
];

/** An installation in an outage. */
export class Outage {
  static async begin() {
    const outage = new Outage();
    outage.receivers = [];
    outage.server = await Server.start();
    const subscriptions = {};
    for (let at = 0; at < FAILING; at += 1) {
      const url = await outage.receive(ANSWERS[at % ANSWERS.length]);
      subscriptions[`shop-${at}`] = { endpoint: { url }, deadLetter: { delay: "PT0S" } };
    }
    subscriptions.well = { endpoint: { url: await outage.receive({ status: 200, body: "thanks" }) } };
    await outage.server.manage("PUT", "/topics/orders", { subscriptions });
    const { key1 } = await outage.server.manage("GET", "/topics/orders/keys");
    for (let from = 0; from < EVENTS; from += BATCH) await outage.publish(key1, from);
    return outage;
  }

  /** Publishes a batch of events whose ids count on from `from`. */
  async publish(key, from) {
    const numbers = Array.from({ length: BATCH }, (_, at) => from + at);
    const common = { specversion: "1.0", source: "/shop", type: "com.example.order.paid" };
    const events = numbers.map((number) => ({ ...common, id: `order-${number}`, data: { number } }));
    const answer = await fetch(`${this.server.url}/topics/orders/events`, {
      method: "POST",
      headers: { "content-type": "application/cloudevents-batch+json", "aeg-sas-key": key },
      body: JSON.stringify(events),
    });
    if (!answer.ok) throw new Error(`publish: ${answer.status} ${await answer.text()}`);
  }

  /** Starts an endpoint that always answers this, and returns its URL. */
  async receive({ status, body, headers }) {
    const receiver = createServer((request, response) => {
      request.resume().on("end", () => response.writeHead(status, headers).end(body));
    });
    receiver.listen(0, "127.0.0.1");
    await once(receiver, "listening");
    this.receivers.push(receiver);
    return `http://127.0.0.1:${receiver.address().port}/hooks`;
  }

  async end() {
    for (const receiver of this.receivers) {
      receiver.close();
      receiver.closeAllConnections();
    }
    await this.server.stop();
  }
}
