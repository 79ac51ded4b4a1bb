// What producers and endpoints write is shown on the console's pages, and does nothing there. Every visitor
// notes dialogs, requests to other hosts, and what the policy of the pages had to refuse.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { Endpoint, Visitor, launch, stopClock } from "./console.mjs";
import { Server } from "./serving.mjs";

const SCRIPT = `<script>hacked()</script>`;
const IMAGE = `"><img src=x onerror=hacked()>`;
const LINK = `<a href="javascript:hacked()">click</a>`;
const FRAME = `</pre></textarea></title><iframe srcdoc="<script>parent.hacked()</script>"></iframe>`;
const STYLE = `<style>body{display:none}</style><link rel=stylesheet href=//evil.example/x.css>`;
const TEMPLATE = `{{constructor.constructor("hacked()")()}}\${hacked()}`;
const RIGHT_TO_LEFT = `invoice\u202Efdp.exe\u2066\u200F`;
const ALL = [SCRIPT, IMAGE, LINK, FRAME, STYLE, TEMPLATE, RIGHT_TO_LEFT];

const MEGABYTE = 1_000_000;

// No page of the console has any of these.
const FOREIGN = ["iframe", "main img", "main style", "main script", "main link", `a[href^="javascript:"]`];

let browser;
let endpoint;
let server;

before(async () => {
  [browser, endpoint, server] = await Promise.all([launch(), Endpoint.start(), Server.start()]);
  const subscription = {
    endpoint: { url: endpoint.url },
    deadLetter: { delay: "PT0S" },
    deliveryHeaders: [
      { name: "x-shown", value: SCRIPT },
      { name: "x-secret", value: `${IMAGE} s3cret`, isSecret: true },
    ],
    filter: { subjectBeginsWith: "" },
  };
  await server.manage("PUT", "/topics/orders", { subscriptions: { billing: subscription } });
});

after(async () => {
  await browser?.close();
  endpoint?.stop();
  await server?.stop();
});

/** Publishes one event, made of `members` and the least that an event has. */
async function publish(members) {
  const { key1 } = await server.manage("GET", "/topics/orders/keys");
  const event = { specversion: "1.0", source: "/shop", type: "order.paid", ...members };
  const answer = await fetch(`${server.url}/topics/orders/events`, {
    method: "POST",
    headers: { "content-type": "application/cloudevents+json", "aeg-sas-key": key1 },
    body: JSON.stringify(event),
  });
  assert.equal(answer.status, 200, await answer.text());
}

async function come() {
  const visitor = await Visitor.come(browser, server);
  await visitor.context.exposeFunction("hacked", () => visitor.faults.push("foreign code ran"));
  await visitor.signIn();
  return visitor;
}

/** Checks that the page is whole, and that nothing in it is of a foreign text. */
async function isInert(visitor) {
  const { page } = visitor;
  for (const foreign of FOREIGN) {
    assert.equal(await page.locator(foreign).count(), 0, `${foreign} on ${page.url()}`);
  }
  assert.ok(await page.locator("h1").isVisible());
  for (const link of await page.locator("main a").all()) {
    assert.match(await link.getAttribute("href"), /^(\/console|\/schema\.json$|#)/);
  }
}

const eventPage = (id, query = "") => `/console/topics/orders/events/${encodeURIComponent(id)}${query}`;

test("ids, types, sources and subjects of events are text", async () => {
  const visitor = await come();
  for (const [at, text] of ALL.entries()) {
    const id = `${at} ${text}`;
    await publish({ id, type: text, source: encodeURI(`/shop/${at}`), subject: text, data: {} });
    await visitor.openUntil(eventPage(id), "delivered");
    await isInert(visitor);
  }
  await visitor.openUntil("/console/events?topic=orders", "hacked()");
  await isInert(visitor);
  // Marks that would hide how a name ends are written out.
  assert.ok((await visitor.page.locator("main").innerText()).includes("U+202E"));
  await visitor.leave();
});

test("data of events is text, and a large one is cut", async () => {
  const visitor = await come();
  await publish({ id: "data", data: { all: ALL, [FRAME]: SCRIPT } });
  await visitor.openUntil(eventPage("data", "?payload=true"), "hacked()");
  await isInert(visitor);
  await publish({ id: "large", data: SCRIPT.repeat(MEGABYTE / SCRIPT.length / 2) });
  await visitor.openUntil(eventPage("large"), "delivered");
  await visitor.open(eventPage("large", "?payload=true"));
  await isInert(visitor);
  await visitor.leave();
});

test("answers of endpoints are text, in the log and in a test", async () => {
  const visitor = await come();
  endpoint.status = 400;
  endpoint.headers = { "content-type": "text/html", "x-answer": IMAGE, "set-cookie": "posthaste-console=x" };
  endpoint.body = `${ALL.join("\n")}${"x".repeat(MEGABYTE)}`;
  await publish({ id: "answer", data: {} });
  await visitor.openUntil(eventPage("answer"), "hacked()");
  await isInert(visitor);
  await visitor.open("/console/topics/orders/subscriptions/billing");
  await isInert(visitor);
  await visitor.press("Send a test event");
  await visitor.sees("hacked()");
  await isInert(visitor);
  assert.ok(!(await visitor.page.content()).includes("s3cret"));
  await visitor.leave();
});

test("dead letters are text", async () => {
  const visitor = await come();
  const id = `dead ${IMAGE}`;
  const data = { all: ALL, large: "y".repeat(MEGABYTE / 2) };
  await publish({ id, type: SCRIPT, subject: RIGHT_TO_LEFT, data });
  await visitor.openUntil("/console/dead-letters/list?topic=orders&subscription=billing", "dead ");
  await isInert(visitor);
  const record = visitor.page.locator('main a[href^="/console/dead-letters/record"]').first();
  await visitor.open(await record.getAttribute("href"));
  await isInert(visitor);
  await visitor.leave();
});

test("settings that another operator wrote are text, also in the editor", async () => {
  const visitor = await come();
  for (const path of ["", "?tab=danger", "/edit", "/edit?tab=yaml"]) {
    assert.equal(await visitor.open(`/console/topics/orders/subscriptions/billing${path}`), 200);
    await isInert(visitor);
    assert.ok(!(await visitor.page.content()).includes("s3cret"));
  }
  const text = await visitor.page.getByLabel("Settings as YAML").inputValue();
  assert.ok(text.includes(SCRIPT), text);
  await visitor.leave();
});

test("addresses that somebody made up are text", async () => {
  const visitor = await come();
  for (const text of ALL) {
    const part = encodeURIComponent(text);
    const made = [`/topics/${part}`, `/events?topic=${part}&type=${part}`, `/replays/${part}`, `/${part}`];
    made.push(`/dead-letters?topic=orders&type=${part}`, `/dead-letters?topic=${part}`);
    made.push(`/topics/orders/subscriptions/${part}?done=${part}`);
    for (const path of made) {
      await visitor.open(`/console${path}`);
      await isInert(visitor);
    }
  }
  await visitor.open(`/console/sign-in?next=${encodeURIComponent("https://evil.example/")}`);
  await isInert(visitor);
  await visitor.leave();
});

test("what is searched for is text, also while its answer is awaited", async () => {
  const visitor = await come();
  const { page } = visitor;
  for (const text of ALL) {
    await visitor.open(`/console/search?q=${encodeURIComponent(text)}`);
    await isInert(visitor);
    assert.equal(await page.locator("#search-text").inputValue(), text);
  }
  await stopClock(page);
  await visitor.open(`/console/search?q=${encodeURIComponent(FRAME)}`);
  await page.evaluate(() => addEventListener("submit", (event) => event.preventDefault()));
  await page.locator("#search-text").fill(IMAGE);
  await page.locator("#search-text").press("Enter");
  await page.clock.runFor(12_000);
  assert.equal(await page.locator("form.search .waiting").innerText(), "Still waiting, 12 s");
  await isInert(visitor);
  await visitor.leave();
});

test("what a page must not do is noted", async () => {
  const visitor = await come();
  await visitor.page.evaluate((markup) => {
    document.querySelector("main").innerHTML = markup;
  }, `<img src="https://evil.example/x.png" onerror="hacked()">`);
  await visitor.page.waitForFunction(() => document.querySelector("main img").complete);
  const until = Date.now() + 10_000;
  while (visitor.faults.length === 0 && Date.now() < until) await visitor.page.evaluate(() => 1);
  assert.notDeepEqual(visitor.faults, []);
  await visitor.context.close();
});
