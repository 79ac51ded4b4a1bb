// The console in a real browser: an installation from its first page to its last.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { after, before, test } from "node:test";

import { Endpoint, Visitor, launch } from "./console.mjs";
import { Server } from "./serving.mjs";

// wake looks for replays once a minute.
const REPLAY_MS = 90_000;

const SECTIONS = ["", "/topics", "/events", "/dead-letters", "/links", "/pressure", "/replays"];
const EMPTY_PAGES = [...SECTIONS, "/topics/new"];

const PAGES = [
  ...EMPTY_PAGES,
  "/topics/orders",
  "/topics/orders/edit",
  "/topics/orders/subscriptions/new",
  "/topics/orders/subscriptions/billing",
  "/topics/orders/subscriptions/billing/edit",
  "/topics/orders/events/order-1?payload=true",
  "/events?topic=orders&result=delivered",
  "/dead-letters?topic=orders&subscription=billing",
];

let browser;
let endpoint;
let server;

before(async () => {
  [browser, endpoint, server] = await Promise.all([launch(), Endpoint.start(), Server.start()]);
});

after(async () => {
  await browser?.close();
  endpoint?.stop();
  await server?.stop();
});

/** Publishes events of these ids. */
async function publish(...ids) {
  const { key1 } = await server.manage("GET", "/topics/orders/keys");
  const common = { specversion: "1.0", source: "/shop", type: "order.paid" };
  const events = ids.map((id) => ({ ...common, id, data: { id } }));
  const answer = await fetch(`${server.url}/topics/orders/events`, {
    method: "POST",
    headers: { "content-type": "application/cloudevents-batch+json", "aeg-sas-key": key1 },
    body: JSON.stringify(events),
  });
  assert.equal(answer.status, 200, await answer.text());
}

for (const colorScheme of ["light", "dark"]) {
  test(`an empty installation's pages have no fault of accessibility (${colorScheme})`, async () => {
    const visitor = await Visitor.come(browser, server, { colorScheme });
    await visitor.open("/console/sign-in");
    assert.deepEqual(await visitor.violations(), []);
    await visitor.signIn();
    for (const path of EMPTY_PAGES) {
      assert.equal(await visitor.open(`/console${path}`), 200, path);
      assert.deepEqual(await visitor.violations(), [], path);
    }
    await visitor.leave();
  });
}

test("an operator wires a subscription, follows an event, mends its endpoint and sends again", async () => {
  const visitor = await Visitor.come(browser, server);
  const { page } = visitor;
  await visitor.signIn();

  // The first pages lead to the first subscription.
  await visitor.follow("New topic");
  await page.getByLabel("Name of the topic").fill("orders");
  await visitor.press("Create topic");
  await visitor.follow("Make the first subscription");
  await page.getByLabel("Name of the subscription").fill("billing");
  const settings = `endpoint: { url: "${endpoint.url}" }\ndeadLetter: { delay: PT0S }\n`;
  await page.getByLabel("Settings as YAML").fill(settings);
  await visitor.press("Show what changes");
  await visitor.sees(endpoint.url);
  await visitor.press("Save");
  await visitor.sees("whsec_");

  // An event is delivered, and the page of its attempts says so.
  await publish("order-1");
  await visitor.openUntil("/console/events?topic=orders", "order-1");
  await visitor.follow("order-1");
  await visitor.sees("delivered", "billing");
  assert.deepEqual(await visitor.violations(), []);

  // A refused event becomes a dead letter.
  endpoint.status = 400;
  endpoint.body = "no such order";
  await publish("order-2");
  await visitor.openUntil("/console/dead-letters?topic=orders&subscription=billing", "order-2");

  // The endpoint breaks, and its link goes down.
  endpoint.status = 503;
  for (let at = 0; at < 15; at += 1) await publish(`lost-${at}`);
  await visitor.openUntil("/console/links", "glitch");
  assert.deepEqual(await visitor.violations(), []);

  // It is repaired, and forced.
  Object.assign(endpoint, { status: 200, body: "" });
  await visitor.open("/console/topics/orders/subscriptions/billing");
  await visitor.press("Force");
  await visitor.sees("hold");

  // What was refused is sent again, after a dry run.
  await visitor.open("/console/dead-letters?topic=orders&subscription=billing");
  await visitor.press("Show what a replay would send");
  await visitor.sees("order-2");
  await visitor.press("Start the replay");
  const replay = new URL(page.url()).pathname;

  // One event is sent again.
  const before = endpoint.requests.length;
  await visitor.open("/console/topics/orders/events/order-1");
  await visitor.press("Send again to billing");
  await visitor.sees("sent again");
  await visitor.openUntil("/console/topics/orders/events/order-1", "sent again by its id");
  assert.ok(endpoint.requests.length > before);

  // The secret is rotated, and shown once.
  await visitor.open("/console/topics/orders/subscriptions/billing");
  await page.getByText("Rotate the signing secret").click();
  await visitor.press("Rotate the secret");
  await visitor.sees("whsec_", "never shown again");
  const secret = await page.getByLabel("Signing secret").innerText();
  await visitor.open("/console/topics/orders/subscriptions/billing");
  assert.ok(!(await page.content()).includes(secret));

  await visitor.openUntil(replay, "done to orders", REPLAY_MS);
  await visitor.press("Sign out");
  await page.getByLabel("Admin key").waitFor();
  await visitor.open(replay);
  await page.getByLabel("Admin key").waitFor();
  await visitor.leave();
});

test("a link from another site leads to the page, or to the sign-in page", async () => {
  const other = createServer((_, response) => {
    response.setHeader("content-type", "text/html");
    response.end(`<a href="${server.url}/console/links">to the console</a>`);
  });
  other.listen(0, "127.0.0.1");
  await once(other, "listening");
  const site = `http://localhost:${other.address().port}/`;
  for (const isSignedIn of [true, false]) {
    const visitor = await Visitor.come(browser, server);
    if (isSignedIn) await visitor.signIn();
    // What is asked of the other site is no fault here.
    await visitor.page.route(`${site}favicon.ico`, (route) => route.abort());
    await visitor.page.goto(site);
    await visitor.page.getByText("to the console").click();
    const { page } = visitor;
    const button = isSignedIn ? "Sign out" : "Sign in";
    await page.getByRole("button", { name: button }).waitFor();
    assert.equal(new URL(page.url()).pathname, isSignedIn ? "/console/links" : "/console/sign-in");
    await visitor.context.close();
  }
  other.close();
});

test("a live page shows what happens without being loaded again", async () => {
  const visitor = await Visitor.come(browser, server);
  await visitor.signIn();
  await visitor.open("/console/topics/orders/events/order-live");
  await visitor.page.evaluate(() => (globalThis.wasLoadedOnce = true));
  await publish("order-live");
  await visitor.page.locator("main").getByText("delivered").first().waitFor();
  assert.equal(await visitor.page.evaluate(() => globalThis.wasLoadedOnce), true);
  await visitor.leave();
});

for (const [name, options] of [
  ["light", { colorScheme: "light" }],
  ["dark", { colorScheme: "dark" }],
  ["phone", { viewport: { width: 390, height: 844 } }],
]) {
  test(`pages with something on them have no fault of accessibility (${name})`, async () => {
    const visitor = await Visitor.come(browser, server, options);
    await visitor.signIn();
    for (const path of PAGES) {
      assert.equal(await visitor.open(`/console${path}`), 200, path);
      assert.deepEqual(await visitor.violations(), [], path);
      const width = await visitor.page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(width <= 0, `${path} is ${width} px wider than the window`);
    }
    await visitor.leave();
  });
}

test("without JavaScript a visitor signs in, reads pages and signs out", async () => {
  const visitor = await Visitor.come(browser, server, { javaScriptEnabled: false });
  await visitor.signIn();
  for (const path of PAGES) assert.equal(await visitor.open(`/console${path}`), 200, path);
  await visitor.open("/console/topics/orders/events/order-1");
  await visitor.sees("UTC", "delivered");
  await visitor.press("Sign out");
  await visitor.page.getByLabel("Admin key").waitFor();
  assert.match(visitor.page.url(), /\/console\/sign-in$/);
  await visitor.leave();
});
