// The console in a real browser: an installation from its first page to its last.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { after, before, test } from "node:test";

import { Endpoint, Visitor, launch, stopClock } from "./console.mjs";
import { Server } from "./serving.mjs";

// wake looks for replays once a minute.
const REPLAY_MS = 90_000;

const SECTIONS = ["", "/topics", "/events", "/dead-letters", "/failing", "/pressure", "/replays", "/work"];
const EMPTY_PAGES = [...SECTIONS, "/topics/new", "/search", "/search?q=none"];

const PAGES = [
  ...EMPTY_PAGES,
  "/topics/orders",
  "/topics/orders/edit",
  "/topics/orders/subscriptions/new",
  "/topics/orders/subscriptions/billing",
  "/topics/orders/subscriptions/billing?tab=danger",
  "/topics/orders/subscriptions/billing/edit",
  "/topics/orders/subscriptions/billing/edit?tab=yaml",
  "/topics/orders/events/order-1?payload=true",
  "/events?topic=orders&result=delivered",
  "/search?q=order-1",
  "/dead-letters?topic=orders&subscription=billing",
  "/dead-letters/list?topic=orders&subscription=billing",
  "/dead-letters/send-since?topic=orders&subscription=billing",
  "/dead-letters/send-since?topic=orders&subscription=billing&from=1h",
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
  await page.getByLabel("URL", { exact: true }).fill(endpoint.url);
  await page.getByLabel("Delay", { exact: true }).fill("PT0S");
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

  // What its receiver has of the request leads to it too, from any page, as the host of an endpoint leads
  // to its subscription.
  await visitor.open("/console/audit");
  const { headers } = endpoint.requests.at(-1);
  await page.getByRole("searchbox").fill(headers["webhook-id"]);
  await visitor.press("Search");
  assert.equal(new URL(page.url()).pathname, "/console/topics/orders/events/order-1");
  await page.getByRole("searchbox").fill(new URL(endpoint.url).host);
  await visitor.press("Search");
  assert.equal(new URL(page.url()).pathname, "/console/topics/orders/subscriptions/billing");

  // A refused event becomes a dead letter.
  endpoint.status = 400;
  endpoint.body = "no such order";
  await publish("order-2");
  await visitor.openUntil("/console/dead-letters/list?topic=orders&subscription=billing", "order-2");
  const { deadLetters } = await server.manage("GET", "/topics/orders/dead-letters");
  await visitor.open(`/console/search?q=${encodeURIComponent(deadLetters[0].object)}`);
  assert.equal(new URL(page.url()).pathname, "/console/dead-letters/record");
  await visitor.sees("order-2");

  // The endpoint breaks, and its link goes down.
  endpoint.status = 503;
  for (let at = 0; at < 15; at += 1) await publish(`lost-${at}`);
  await visitor.openUntil("/console/failing", "Retry now");
  assert.deepEqual(await visitor.violations(), []);

  // It is repaired, and tried at once.
  Object.assign(endpoint, { status: 200, body: "" });
  await visitor.open("/console/topics/orders/subscriptions/billing");
  await visitor.press("Retry now");
  await visitor.sees("Events that wait go out within a minute");

  // What was refused is sent again, after a dry run.
  await visitor.open("/console/dead-letters/list?topic=orders&subscription=billing");
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
  await visitor.follow("Danger");
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
    response.end(`<a href="${server.url}/console/failing">to the console</a>`);
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
    assert.equal(new URL(page.url()).pathname, isSignedIn ? "/console/failing" : "/console/sign-in");
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

const FAILING = "/console/failing";

/** Answers a page with what `change` makes of it, from now on. The script asks for it like a browser. */
async function answerWith({ page }, path, change) {
  await page.unroute(path).catch(() => {});
  await page.route(path, async (route) => {
    const answer = await route.fetch();
    await route.fulfill({ response: answer, body: change(await answer.text()) });
  });
}

/** Waits until the page has refreshed itself this many times more. */
async function awaitRefreshes(visitor, path, times) {
  for (let at = 0; at < times; at += 1) {
    const answer = await visitor.page.waitForResponse((it) => new URL(it.url()).pathname === path);
    await answer.finished();
  }
  await visitor.page.waitForTimeout(200);
}

/** A table of links that is wider than a phone, of which the first has failed this many times. */
const linksTable = (failures) => (html) =>
  html.replace(
    /(<section id="failing"[^>]*>).*?<\/section>/s,
    `$1<div class="scroll" tabindex="0" role="region" aria-label="Links that are not well"><table><tbody><tr>
     <td><span class="badge bad">down</span></td><td>${"wide".repeat(200)}</td>
     <td>failed ${failures} times</td></tr></tbody></table></div></section>`,
  );

test("a table that has the focus after a click keeps it and its scroll, and is still refreshed", async () => {
  const visitor = await Visitor.come(browser, server, { viewport: { width: 390, height: 844 } });
  const { page } = visitor;
  await visitor.signIn();
  await answerWith(visitor, "**/console/failing", linksTable(1));
  await visitor.open(FAILING);
  await page.locator("#failing").getByText("down", { exact: true }).click();
  const scroll = page.locator(".scroll");
  await scroll.evaluate((it) => (it.scrollLeft = 120));
  await answerWith(visitor, "**/console/failing", linksTable(2));
  await page.getByText("failed 2 times").waitFor();
  assert.equal(await scroll.evaluate((it) => it.scrollLeft), 120);
  assert.equal(await scroll.evaluate((it) => document.activeElement === it), true);
  await page.getByText(/^Refreshed \d\d:\d\d:\d\d$/).waitFor();
  await visitor.page.unrouteAll();
  await visitor.leave();
});

/** A form and a part to open in the place of the links. */
const linksForm = (failures) => (html) =>
  html.replace(
    /(<section id="failing"[^>]*>).*?<\/section>/s,
    `$1<p>failed ${failures} times</p><label for="typed">Typed</label><input id="typed">
     <details><summary>More</summary><p>opened</p></details></section>`,
  );

test("a text that is typed and a part that is open are kept, and the page says that it waits", async () => {
  const visitor = await Visitor.come(browser, server);
  const { page } = visitor;
  await visitor.signIn();
  await answerWith(visitor, "**/console/failing", linksForm(1));
  await visitor.open(FAILING);
  await answerWith(visitor, "**/console/failing", linksForm(2));
  await page.getByLabel("Typed").fill("half a word");
  await awaitRefreshes(visitor, FAILING, 1);
  await page.getByText(/^Paused while in use since \d\d:\d\d:\d\d$/).waitFor();
  assert.equal(await page.getByText("failed 1 times").count(), 1);
  assert.equal(await page.getByLabel("Typed").inputValue(), "half a word");
  await page.getByText("More").click();
  await awaitRefreshes(visitor, FAILING, 1);
  assert.equal(await page.getByText("opened").isVisible(), true);
  assert.equal(await page.getByText("failed 1 times").count(), 1);
  // Once nothing is open and no control has the focus, the part is refreshed, and the text is still there.
  await page.getByText("More").click();
  await page.evaluate(() => document.activeElement.blur());
  await page.getByText("failed 2 times").waitFor();
  assert.equal(await page.getByLabel("Typed").inputValue(), "half a word");
  await visitor.page.unrouteAll();
  await visitor.leave();
});

test("a page that cannot be refreshed says since when, and why", async () => {
  const visitor = await Visitor.come(browser, server);
  const { page } = visitor;
  await visitor.signIn();
  await visitor.open(FAILING);
  await page.getByText(/^Refreshed \d\d:\d\d:\d\d$/).waitFor();
  assert.equal(await page.getByRole("status").innerText(), "");
  await page.route("**/console/failing", (route) => route.fulfill({ status: 503, body: "busy" }));
  const age = "What is shown was read \\d+ (s|min) ago";
  const since = (why) => page.getByRole("status").getByText(new RegExp(`^Not refreshed since .*: ${why}. ${age}$`));
  await since("the server answers 503").waitFor();
  await page.unrouteAll();
  await page.route("**/console/failing", (route) => route.abort());
  await since("the server does not answer").waitFor();
  await page.unrouteAll();
  await page.getByText(/^Refreshed \d\d:\d\d:\d\d$/).waitFor();
  assert.equal(await page.getByRole("status").innerText(), "");
  await visitor.leave();
});

test("no tile of the overview moves while it refreshes, even when a link goes down", async () => {
  const visitor = await Visitor.come(browser, server, { viewport: { width: 1280, height: 1600 } });
  const { page } = visitor;
  await visitor.signIn();
  const settings = { subscriptions: { down: { endpoint: { url: `${endpoint.url}/down` } } } };
  await server.manage("PUT", "/topics/moves", settings);
  const { key1 } = await server.manage("GET", "/topics/moves/keys");
  await visitor.open("/console");
  // What stands below the table moves when it gets a row. A row keeps its place: later ones come after it.
  const place = () => page.locator(".tile").evaluateAll((all) => all.map((it) => it.getBoundingClientRect().top));
  const before = await place();
  endpoint.status = 503;
  const event = { specversion: "1.0", source: "/shop", type: "order.paid" };
  for (let at = 0; at < 15; at += 1) {
    const answer = await fetch(`${server.url}/topics/moves/events`, {
      method: "POST",
      headers: { "content-type": "application/cloudevents+json", "aeg-sas-key": key1 },
      body: JSON.stringify({ ...event, id: `moves-${at}` }),
    });
    assert.equal(answer.status, 200);
  }
  await page.locator("#failing").getByText(new URL(endpoint.url).origin).first().waitFor();
  await awaitRefreshes(visitor, "/console", 2);
  endpoint.status = 200;
  assert.deepEqual(await place(), before);
  await visitor.leave();
});

test("a page that nobody touches refreshes once a minute, until somebody does", async () => {
  const visitor = await Visitor.come(browser, server);
  const { page } = visitor;
  await visitor.signIn();
  await stopClock(page);
  await visitor.open(FAILING);
  let asked = 0;
  page.on("request", (request) => (asked += request.url().endsWith(FAILING) ? 1 : 0));
  const refreshed = (said) => page.locator(`#refreshed:not([data-said="${said}"])`).waitFor();
  const pass = async (ms, expected, go = "runFor") => {
    asked = 0;
    const said = await page.locator("#refreshed").getAttribute("data-said");
    await page.clock[go](ms);
    await (expected > 0 ? refreshed(said) : page.waitForTimeout(500));
    assert.equal(asked, expected, `${ms} ms`);
  };
  await pass(5_000, 1);
  await pass(600_000, 1, "fastForward");
  await pass(55_000, 0);
  await pass(5_000, 1);
  await page.keyboard.press("Shift");
  await pass(5_000, 1);
  await visitor.leave();
});

test("times are in the zone of the visitor, which the page names; without JavaScript in UTC", async () => {
  const timezoneId = "Asia/Kolkata";
  const visitor = await Visitor.come(browser, server, { timezoneId });
  await visitor.signIn();
  await visitor.open("/console");
  const footer = visitor.page.getByRole("contentinfo");
  const words = "Times are in Asia/Calcutta (UTC+5:30). Point at one to see UTC.";
  assert.ok((await footer.innerText()).includes(words), await footer.innerText());
  const axis = visitor.page.locator("svg [data-time]").first();
  const check = async () => {
    const [at, shown, utc] = await axis.evaluate((it) => [
      it.dataset.time,
      it.firstChild.data,
      it.querySelector("title").textContent,
    ]);
    const later = new Date(new Date(at).getTime() + 5.5 * 3_600_000).toISOString();
    assert.deepEqual([shown, utc], [later.slice(11, 16), `${at.slice(0, 16).replace("T", " ")} UTC`]);
    await visitor.sees("Times in Asia/Calcutta");
  };
  await check();
  await awaitRefreshes(visitor, "/console", 1);
  await check();
  await visitor.leave();
  const plain = await Visitor.come(browser, server, { timezoneId, javaScriptEnabled: false });
  await plain.signIn();
  await plain.open("/console");
  await plain.sees("Times in UTC");
  assert.match(await plain.page.getByRole("contentinfo").innerText(), /^Times are in UTC\.\s+Words of this console$/);
  await plain.leave();
});

test("the notice of an action is not in the address that a visitor keeps", async () => {
  const visitor = await Visitor.come(browser, server);
  const { page } = visitor;
  await visitor.signIn();
  await visitor.open("/console/topics/orders?x=1&done=saved&at=1700000000000#publish");
  const { pathname, search, hash } = new URL(page.url());
  assert.deepEqual([pathname, search, hash], ["/console/topics/orders", "?x=1", "#publish"]);
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
