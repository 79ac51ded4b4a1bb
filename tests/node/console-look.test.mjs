// Every page of the console on narrow windows, at 200 %, by keyboard, and without JavaScript.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { Endpoint, Visitor, launch } from "./console.mjs";
import { Server } from "./serving.mjs";

const BILLING = "/topics/orders/subscriptions/billing";

const PAGES = [
  "",
  "?hours=24",
  "/topics",
  "/topics/new",
  "/topics/orders",
  "/topics/orders/edit",
  "/topics/orders/subscriptions/new",
  BILLING,
  `${BILLING}?tab=danger`,
  `${BILLING}/edit`,
  `${BILLING}/edit?tab=yaml`,
  "/topics/orders/events/order-1?payload=true",
  "/events",
  "/events?topic=orders",
  "/events?topic=orders&from=1h&result=delivered",
  "/search?q=order-1",
  "/dead-letters",
  "/dead-letters?topic=orders&subscription=billing",
  "/dead-letters/list?topic=orders&subscription=billing",
  "/failing",
  "/kept",
  "/told",
  "/pressure",
  "/work",
  "/replays",
  "/audit",
  "/sessions",
  "/words",
];

// A window of 1280 × 800 px at 200 % has half as many CSS pixels.
const WINDOWS = [
  ["320 px, light", { viewport: { width: 320, height: 640 }, colorScheme: "light" }],
  ["390 px, dark", { viewport: { width: 390, height: 844 }, colorScheme: "dark" }],
  ["200 %, light", { viewport: { width: 640, height: 400 }, deviceScaleFactor: 2, colorScheme: "light" }],
  ["200 %, dark", { viewport: { width: 640, height: 400 }, deviceScaleFactor: 2, colorScheme: "dark" }],
  ["1280 px, dark", { viewport: { width: 1280, height: 800 }, colorScheme: "dark" }],
];

// Most presses of Tab on a page.
const STOPS_MAX = 200;

let browser;
let endpoint;
let server;

before(async () => {
  [browser, endpoint, server] = await Promise.all([launch(), Endpoint.start(), Server.start()]);
  await server.createTopic("empty", {}, endpoint.url, {});
  const { url, key } = await server.createTopic("orders", {}, endpoint.url, {});
  await server.manage("PUT", BILLING, { endpoint: { url: endpoint.url } });
  const event = { specversion: "1.0", id: "order-1", source: "/shop", type: "com.example.order.paid" };
  const headers = { "content-type": "application/cloudevents+json", "aeg-sas-key": key };
  const answer = await fetch(url, { method: "POST", headers, body: JSON.stringify(event) });
  assert.equal(answer.status, 200);
});

after(async () => {
  await browser?.close();
  endpoint?.stop();
  await server?.stop();
});

async function come(options) {
  const visitor = await Visitor.come(browser, server, options);
  await visitor.signIn();
  await visitor.openUntil("/console/events?topic=orders", "order-1");
  return visitor;
}

for (const [name, options] of WINDOWS) {
  for (const javaScriptEnabled of [true, false]) {
    const script = javaScriptEnabled ? "with" : "without";
    test(`no page is wider than its window (${name}, ${script} JavaScript)`, async () => {
      const visitor = await come({ ...options, javaScriptEnabled });
      for (const path of PAGES) {
        assert.equal(await visitor.open(`/console${path}`), 200, path);
        const { scrollWidth } = await visitor.page.locator("html").evaluate((it) => ({ scrollWidth: it.scrollWidth }));
        const { width } = options.viewport;
        assert.ok(scrollWidth <= width, `${path} is ${scrollWidth - width} px wider than the window`);
      }
      await visitor.leave();
    });
  }

  test(`no page has a fault of accessibility (${name})`, async () => {
    const visitor = await come(options);
    for (const path of PAGES) {
      await visitor.open(`/console${path}`);
      assert.deepEqual(await visitor.violations(), [], path);
    }
    await visitor.leave();
  });
}

test("every control of every page is reached by the keyboard, and is seen where it has the focus", async () => {
  const visitor = await come({ viewport: { width: 1280, height: 800 } });
  const { page } = visitor;
  for (const path of PAGES) {
    await visitor.open(`/console${path}`);
    const missed = await controls(page);
    await page.evaluate(() => document.activeElement.blur());
    for (let at = 0; at < STOPS_MAX && missed.size > 0; at += 1) {
      await page.keyboard.press("Tab");
      const [id, isOutlined] = await page.evaluate(() => {
        const { activeElement } = document;
        return [activeElement.dataset.control, getComputedStyle(activeElement).outlineStyle !== "none"];
      });
      assert.ok(id === undefined || isOutlined, `${path}: ${id} is not outlined`);
      missed.delete(id);
    }
    assert.deepEqual([...missed], [], path);
  }
  await visitor.leave();
});

/** Numbers what can be used in the content of a page. Of radio buttons, Tab reaches one. */
async function controls(page) {
  const names = await page.evaluate(() => {
    const all = "main :is(a[href], button, input:not([type=hidden]), select, textarea, summary)";
    const shown = [...document.querySelectorAll(all)].filter((it) => it.checkVisibility() && it.type !== "radio");
    return shown.map((it, at) => (it.dataset.control = `${at} ${it.textContent.trim().slice(0, 40)}`));
  });
  return new Set(names);
}

test("filters are folded until something is to be changed in them", async () => {
  const visitor = await come({ viewport: { width: 320, height: 640 }, javaScriptEnabled: false });
  const { page } = visitor;
  const isOpen = () => page.locator("details.folded").evaluate((it) => it.open);
  for (const [path, expected] of [
    ["/events?topic=orders", false],
    ["/events", true],
    ["/events?topic=orders&status=x", true],
    ["/events?topic=orders&type=none", true],
    ["/audit", false],
  ]) {
    await visitor.open(`/console${path}`);
    assert.equal(await isOpen(), expected, path);
  }
  await visitor.open("/console/events?topic=orders");
  await page.locator("details.folded > summary").click();
  await page.locator("form.filters").getByRole("link", { name: "15 min" }).click();
  await visitor.sees("topic orders", "from 15m", "order-1");
  await visitor.leave();
});
