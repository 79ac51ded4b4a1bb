// The console as people use it: pressing twice, going back, typing while a session ends, on a phone.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { Endpoint, Visitor, launch, stopClock } from "./console.mjs";
import { Server } from "./serving.mjs";

const FAILING = "/console/failing";
const BILLING = "/console/topics/orders/subscriptions/billing";

const SECTIONS = ["", "/topics", "/events", "/dead-letters", "/failing", "/pressure", "/replays", "/work"];

let browser;
let endpoint;
let server;

before(async () => {
  [browser, endpoint, server] = await Promise.all([launch(), Endpoint.start(), Server.start()]);
  await server.createTopic("other", {}, endpoint.url, {});
  const { url, key } = await server.createTopic("orders", {}, endpoint.url, {});
  await server.manage("PUT", "/topics/orders/subscriptions/billing", { endpoint: { url: endpoint.url } });
  await publish(url, key);
});

after(async () => {
  await browser?.close();
  endpoint?.stop();
  await server?.stop();
});

async function publish(url, key) {
  const event = { specversion: "1.0", id: "order-1", source: "/shop", type: "com.example.order.paid" };
  const answer = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/cloudevents+json", "aeg-sas-key": key },
    body: JSON.stringify(event),
  });
  assert.equal(answer.status, 200);
}

async function come(options) {
  const visitor = await Visitor.come(browser, server, options);
  await visitor.signIn();
  return visitor;
}

test("a button that is pressed twice acts once, and can be pressed on the next page", async () => {
  const visitor = await come();
  const { page } = visitor;
  await visitor.open(BILLING);
  let sent = 0;
  let release;
  const isReleased = new Promise((resolve) => (release = resolve));
  await page.route("**/test", async (route) => {
    sent += 1;
    await isReleased;
    await route.continue();
  });
  const button = page.getByRole("button", { name: "Send a test event", exact: true }).first();
  await button.scrollIntoViewIfNeeded();
  const { x, y } = await button.boundingBox();
  const loaded = page.waitForEvent("load");
  await page.mouse.click(x + 5, y + 5);
  await page.waitForTimeout(150);
  await page.mouse.click(x + 5, y + 5);
  release();
  await loaded;
  assert.equal(sent, 1);
  await visitor.open(BILLING);
  await visitor.press("Send a test event");
  assert.equal(sent, 2);
  await visitor.leave();
});

test("a page that the browser shows again as it was left can send again", async () => {
  const visitor = await come();
  const { page } = visitor;
  await visitor.open(BILLING);
  await page.evaluate(() => {
    globalThis.sent = 0;
    addEventListener("submit", (event) => {
      globalThis.sent += event.defaultPrevented ? 0 : 1;
      event.preventDefault();
    });
  });
  const button = page.getByRole("button", { name: "Send a test event", exact: true }).first();
  const pressed = () => button.evaluate((it) => (it.click(), [globalThis.sent, it.ariaBusy]));
  assert.deepEqual([await pressed(), await pressed()], [[1, "true"], [1, "true"]]);
  await page.evaluate(() => dispatchEvent(new PageTransitionEvent("pageshow", { persisted: true })));
  assert.equal(await button.getAttribute("aria-busy"), null);
  assert.deepEqual(await pressed(), [2, "true"]);
  await visitor.leave();
});

test("Back from the preview of an edit has the text that was typed", async () => {
  const visitor = await come();
  const { page } = visitor;
  await visitor.open(`${BILLING}/edit?tab=yaml`);
  const field = page.getByLabel("Settings as YAML");
  await field.fill(`${await field.inputValue()}\nautoDeleteOnIdle: P9D\n`);
  const typed = await field.inputValue();
  await visitor.press("Show what changes");
  await visitor.sees("autoDeleteOnIdle");
  await page.goBack();
  assert.equal(await field.inputValue(), typed);
  await visitor.press("Show what changes");
  await visitor.press("Go on editing");
  assert.equal(await field.inputValue(), typed);
  await visitor.leave();
});

test("a tab keeps what was typed, and Enter in a field shows what changes", async () => {
  const visitor = await come();
  const { page } = visitor;
  await visitor.open(`${BILLING}/edit`);
  await page.getByLabel("Time to answer").fill("PT7S");
  await visitor.press("YAML");
  assert.match(await page.getByLabel("Settings as YAML").inputValue(), /timeout: PT7S/);
  await visitor.press("Settings");
  assert.equal(await page.getByLabel("Time to answer").inputValue(), "PT7S");
  await page.getByLabel("Time to answer").press("Enter");
  await visitor.sees("endpoint.timeout", "PT7S", "Go on editing");
  await visitor.leave();
});

test("a field for a time is a picker in the visitor's zone, and says what it is in UTC", async () => {
  const visitor = await come({ timezoneId: "Europe/Berlin" });
  const { page } = visitor;
  await visitor.open("/console/events?topic=orders&from=2026-11-21T10:00:00.123Z");
  await page.locator("details.folded").evaluate((it) => (it.open = true));
  const field = page.locator("form.filters #from");
  const seen = async () => [await field.inputValue(), await page.locator("#from-hint").innerText()];
  assert.deepEqual(await seen(), ["2026-11-21T11:00", "2026-11-21 10:00:00 UTC."]);
  await page.getByRole("button", { name: "Show times in UTC" }).click();
  assert.deepEqual(await seen(), ["2026-11-21T10:00", ""]);
  await page.getByRole("button", { name: "Show times in Europe/Berlin" }).click();
  await field.fill("2126-06-21T12:00:00");
  assert.deepEqual(await seen(), ["2126-06-21T12:00", "2126-06-21 10:00:00 UTC. This is in the future."]);
  await field.fill("2026-11-22T08:30:00");
  assert.deepEqual(await visitor.violations(), []);
  await Promise.all([page.waitForEvent("load"), page.locator("form.filters button[type=submit]").click()]);
  const { searchParams } = new URL(page.url());
  assert.equal(searchParams.get("from"), "2026-11-22T07:30:00.000Z");
  // A word stays a word.
  await visitor.open("/console/events?topic=orders&from=1h");
  assert.equal(await field.inputValue(), "1h");
  await visitor.leave();
});

test("the zone that a visitor chooses holds for every page, without loading one again", async () => {
  const visitor = await come({ timezoneId: "Asia/Kolkata" });
  const { page } = visitor;
  await visitor.openUntil("/console/events?topic=orders", "order-1");
  const first = page.locator("td time").first();
  const utc = (await first.getAttribute("title")).replace(" UTC", "");
  assert.notEqual(await first.innerText(), utc);
  await page.getByRole("button", { name: "Show times in UTC" }).click();
  assert.equal(await first.innerText(), utc);
  await visitor.open("/console/events?topic=orders");
  assert.equal(await first.innerText(), utc);
  assert.match(await page.getByRole("contentinfo").innerText(), /^Times are in UTC\./);
  await visitor.leave();
});

test("what has not been answered for 10 s is said, with the age of what is shown", async () => {
  const visitor = await come();
  const { page } = visitor;
  await stopClock(page);
  await visitor.open(FAILING);
  await page.route("**/console/**", () => {});
  await page.clock.runFor(6_000);
  await page.clock.runFor(11_000);
  const said = page.getByRole("status").getByText(/^Not refreshed since .*: no answer for 10 s\. What .* \d+ s ago$/);
  await said.waitFor();
  const before = await said.innerText();
  await page.clock.runFor(3_000);
  assert.notEqual(await page.locator("#not-refreshed").innerText(), before);
  await page.unrouteAll();
  await visitor.context.close();
});

test("a form that is sent says after 10 s that it still waits", async () => {
  const visitor = await come();
  const { page } = visitor;
  await stopClock(page);
  await visitor.open(BILLING);
  await page.evaluate(() => addEventListener("submit", (event) => event.preventDefault()));
  await page.getByRole("button", { name: "Send a test event", exact: true }).first().click();
  await page.clock.runFor(9_000);
  assert.equal(await page.locator(".waiting").innerText(), "");
  await page.clock.runFor(3_000);
  assert.equal(await page.locator(".waiting").innerText(), "Still waiting, 12 s");
  await page.clock.runFor(20_000);
  assert.equal(await page.locator(".waiting").innerText(), "No answer came. What you sent may have been done.");
  await visitor.leave();
});

// Safari gives a button that is clicked no focus.
test("a part whose form waits for its answer is not refreshed, without focus too", async () => {
  const visitor = await come();
  const { page } = visitor;
  await stopClock(page);
  await visitor.open(BILLING);
  await page.evaluate(() => addEventListener("submit", (event) => event.preventDefault()));
  const button = page.getByRole("button", { name: "Send a test event", exact: true }).first();
  await button.click();
  await page.evaluate(() => document.activeElement.blur());
  const refreshed = page.waitForResponse((answer) => answer.url().endsWith(BILLING));
  await page.clock.runFor(6_000);
  await refreshed;
  await page.getByText(/^Paused while in use since/).waitFor();
  assert.equal(await button.getAttribute("aria-busy"), "true");
  assert.equal(await page.locator("#actions .waiting").count(), 1);
  await page.clock.runFor(30_000);
  assert.equal(await button.getAttribute("aria-busy"), null);
  assert.match(await page.locator(".waiting").innerText(), /^No answer came/);
  await visitor.leave();
});

test("the link of today is marked until the day is over, in the zone that is shown", async () => {
  const visitor = await come({ timezoneId: "Europe/Berlin" });
  const { page } = visitor;
  await stopClock(page, Date.parse("2026-11-21T22:59:00Z"));
  await visitor.open("/console/events?topic=orders&from=2026-11-20T23:00:00.000Z");
  const today = page.locator("a[data-day]");
  const marked = () => today.getAttribute("aria-current");
  assert.equal(await marked(), "true");
  await page.getByRole("button", { name: "Show times in UTC" }).click();
  assert.equal(await marked(), null);
  await page.getByRole("button", { name: "Show times in Europe/Berlin" }).click();
  assert.equal(await marked(), "true");
  await page.clock.runFor(62_000);
  assert.equal(await marked(), null);
  assert.match(await today.getAttribute("href"), /from=2026-11-21T23%3A00/);
  await visitor.leave();
});

test("a tab that leaves the form asks about what was typed", async () => {
  const visitor = await come();
  const { page } = visitor;
  await visitor.open(`${BILLING}/edit`);
  await page.getByLabel("Time to answer").fill("PT7S");
  await visitor.press("Danger");
  await visitor.sees("What you typed is not saved.");
  await visitor.press("Go on editing");
  assert.equal(await page.getByLabel("Time to answer").inputValue(), "PT7S");
  await page.getByLabel("Time to answer").fill("");
  await visitor.press("Now");
  await visitor.sees("Last attempts");
  await visitor.leave();
});

test("where the session ends elsewhere, a page keeps what was typed until a new sign-in", async () => {
  const visitor = await come();
  const { page } = visitor;
  await visitor.open(FAILING);
  await page.evaluate(() => {
    const field = `<label for="typed">Typed</label><input id="typed">`;
    document.querySelector("h1").insertAdjacentHTML("afterend", field);
  });
  await page.getByLabel("Typed").fill("half a word");
  const cookies = await visitor.context.cookies();
  await visitor.context.clearCookies();
  const signIn = page.getByRole("status").getByRole("link", { name: "Sign in in a new tab" });
  await signIn.waitFor();
  assert.equal(new URL(await signIn.evaluate((it) => it.href)).searchParams.get("next"), FAILING);
  assert.equal(await page.getByLabel("Typed").inputValue(), "half a word");
  assert.deepEqual(await visitor.violations(), []);
  await visitor.context.addCookies(cookies);
  await signIn.waitFor({ state: "detached" });
  // Where nothing was typed, the sign-in page says it all.
  await visitor.open(FAILING);
  await visitor.context.clearCookies();
  await page.getByLabel("Admin key").waitFor();
  await visitor.leave();
});

test("the page of what was deleted meanwhile says so, and asks no more", async () => {
  const visitor = await come();
  const { page } = visitor;
  await server.manage("PUT", "/topics/gone", {});
  await server.manage("PUT", "/topics/gone/subscriptions/all", { endpoint: { url: endpoint.url } });
  const path = "/console/topics/gone/subscriptions/all";
  await stopClock(page);
  await visitor.open(path);
  const headers = { authorization: `Bearer ${server.key}` };
  await fetch(`${server.url}/topics/gone/subscriptions/all`, { method: "DELETE", headers });
  await page.clock.runFor(5_000);
  await page.getByRole("status").getByText("What this page shows is not there any more.").waitFor();
  let asked = 0;
  page.on("request", () => (asked += 1));
  await page.clock.runFor(60_000);
  await page.waitForTimeout(500);
  assert.equal(asked, 0);
  await visitor.leave();
});

for (const width of [1280, 390]) {
  test(`the menu stands where it is on every page (${width} px)`, async () => {
    const visitor = await come({ viewport: { width, height: 844 } });
    const box = (it) => it.getBoundingClientRect().toJSON();
    const places = async (path) => {
      await visitor.open(`/console${path}`);
      const items = await visitor.page.locator("nav[aria-label=Sections] a, header").all();
      return Promise.all(items.map((item) => item.evaluate(box)));
    };
    const first = await places("");
    // On a phone the search box has a row of its own.
    const heightMax = width < 640 ? 180 : 130;
    assert.ok(first[0].height < heightMax, `${first[0].height} px`);
    for (const path of [...SECTIONS, "/topics/orders"]) assert.deepEqual(await places(path), first, path);
    await visitor.leave();
  });
}

test("fields of a filter stand in line beside a mistake, and leave room for rows on a phone", async () => {
  const visitor = await come();
  const { page } = visitor;
  const rows = async () => {
    const fields = await page.locator("form.filters :is(input:not([type=hidden]), select, button)").all();
    const boxes = await Promise.all(fields.map((field) => field.boundingBox()));
    return [...new Set(boxes.map(({ y, height }) => Math.round(y + height / 2)))];
  };
  await page.setViewportSize({ width: 1280, height: 800 });
  await visitor.open("/console/dead-letters/list?topic=orders&from=never");
  assert.equal(await page.locator("#from-mistake").count(), 1);
  assert.ok((await rows()).length <= 4, `${await rows()}`);
  // Folded away, so that what was found comes first.
  await page.setViewportSize({ width: 390, height: 844 });
  await visitor.openUntil("/console/events?topic=orders", "order-1");
  assert.equal(await page.locator("form.filters").isVisible(), false);
  const { y } = await page.locator("tbody tr").first().boundingBox();
  assert.ok(y < 600, `the first record begins at ${y} px`);
  await visitor.leave();
});

test("on a phone each row is a card, with the headings before its facts", async () => {
  const visitor = await come({ viewport: { width: 390, height: 844 } });
  const { page } = visitor;
  await visitor.openUntil("/console/events?topic=orders", "order-1");
  const table = page.locator("table.cards").first();
  const cells = await table.locator("tbody tr").first().locator("td:visible").all();
  const boxes = await Promise.all(cells.map((cell) => cell.boundingBox()));
  for (const [at, box] of boxes.entries()) {
    assert.ok(box.x >= 0 && box.x + box.width <= 390, `cell ${at} leaves the window`);
    assert.ok(at === 0 || box.y >= boxes[at - 1].y + boxes[at - 1].height - 1, `cell ${at} is not below the last`);
  }
  const label = await cells[0].evaluate((it) => getComputedStyle(it, "::before").content);
  assert.match(label, /Time/);
  // To a screen reader it is still a table.
  assert.equal(await page.getByRole("columnheader", { name: "Time" }).count(), 1);
  await visitor.leave();
});

test("something new is named at once, and after a mistake the focus is on what is wrong", async () => {
  const visitor = await come();
  const { page } = visitor;
  // A browser moves the focus when it first draws the page, which may be after the page has loaded.
  const focusIsOn = (wanted) =>
    page.waitForFunction((name) => {
      const { id, className } = document.activeElement;
      return id === name || className === name;
    }, wanted);
  for (const [path, button] of [
    ["/topics/new", "Create topic"],
    ["/topics/orders/subscriptions/new", "Show what changes"],
  ]) {
    await visitor.open(`/console${path}`);
    await focusIsOn("name");
    await page.getByLabel("Name of the").fill("no such name");
    await visitor.press(button);
    await focusIsOn("problem");
    assert.match(await page.title(), /^Mistake: New /);
    assert.deepEqual(await visitor.violations(), []);
  }
  await visitor.leave();
});

test("a connection that is refused has no time of its answer, and leaves the first steps", async () => {
  const own = await Server.start();
  const once = { retryPolicy: { maxDeliveryAttempts: 1 } };
  const { url, key } = await own.createTopic("orders", {}, "http://127.0.0.1:9/", once);
  await publish(url, key);
  const visitor = await Visitor.come(browser, own);
  await visitor.signIn();
  await visitor.openUntil("/console", "1 of 1 sent events failed");
  await visitor.sees("no answer in the last hour");
  await visitor.openUntil("/console", "No delivery has succeeded yet.");
  assert.deepEqual(await visitor.violations(), []);
  await visitor.leave();
  await own.stop();
});
