// The ten questions of an outage, each asked from the front page by somebody who has never seen the console: ten
// endpoints fail, and 10,000 deliveries wait or were given up.

import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";

import { Visitor, launch } from "./console.mjs";
import { Outage } from "./outage.mjs";

// An outage takes a while to be seen whole: attempts, their records, the first incidents.
const OUTAGE_MS = 120_000;

let browser;
let outage;
let visitor;
let clicks;

before(async () => {
  [browser, outage] = await Promise.all([launch(), Outage.begin()]);
  visitor = await Visitor.come(browser, outage.server, { viewport: { width: 1280, height: 900 } });
  await visitor.signIn();
  await visitor.openUntil("/console/topics/orders/events/order-5", "given up", OUTAGE_MS);
  for (const name of ["shop-0", "shop-1", "shop-2", "shop-3", "shop-4"]) {
    await visitor.openUntil("/console", `orders / ${name}`, OUTAGE_MS);
  }
});

after(async () => {
  await visitor?.leave();
  await browser?.close();
  await outage?.end();
});

beforeEach(async () => {
  await visitor.open("/console");
  clicks = 0;
});

/** Presses a button or a link, and waits for the page that comes of it. */
async function press(role, name, scope = visitor.page.locator("main")) {
  clicks += 1;
  await Promise.all([visitor.page.waitForEvent("load"), scope.getByRole(role, { name }).first().click()]);
}

async function search(text) {
  const box = visitor.page.getByRole("search");
  await box.getByRole("searchbox").fill(text);
  await press("button", "Search", box);
}

/** The row of a subscription in the table of what fails. */
function failingRow(name) {
  return visitor.page.getByRole("row").filter({ hasText: `orders / ${name}` }).first();
}

/** Checks that the page, or a part of it, shows each of these, and how many presses that took. */
async function shows(presses, patterns, scope = visitor.page.locator("main")) {
  const shown = (await scope.innerText()).replace(/\s+/g, " ");
  for (const pattern of patterns) assert.match(shown, pattern);
  assert.equal(clicks, presses);
}

test("did you deliver order-5", async () => {
  await search("order-5");
  await shows(1, [/Event order-5/, /1 delivered, \d+ waiting .*, \d+ given up/]);
});

test("what did shop-1 answer to order-5", async () => {
  await search("order-5");
  const row = visitor.page.getByRole("row").filter({ hasText: "shop-1" }).first();
  await shows(1, [/waiting/, /500/], row);
});

test("what waits, and until when", async () => {
  await shows(0, [/[\d,]+ oldest .* (in \d+ (s|min) \d{4}-|now)/], failingRow("shop-0"));
});

test("send one event again", async () => {
  await search("order-7");
  await press("button", /Send again/);
  await shows(2, [/The event is sent again/]);
});

test("send again what failed since the outage began", async () => {
  await press("link", /Send again/, failingRow("shop-4"));
  await shows(1, [/would send [\d,]+ events/]);
  await press("button", /^Start/);
  await shows(2, [/shop-4/]);
});

test("which endpoints fail, since when, and why", async () => {
  await shows(0, [/down|failing/, /127\.0\.0\.1/, /\d+ (s|min) ago/, /500/], failingRow("shop-1"));
  await shows(0, [/disabled/, /410/, /missed/], failingRow("shop-3"));
  await shows(0, [/Unauthorized \(401\)/], failingRow("shop-4"));
});

test("pause one that fails", async () => {
  await press("button", /^Pause/, failingRow("shop-2"));
  await shows(1, [/The subscription is paused/]);
});

test("who changed what", async () => {
  await press("link", "Audit", visitor.page.getByRole("navigation", { name: "Sections" }));
  await shows(1, [/console session/, /Outcome/]);
});

test("who is told", async () => {
  await press("link", /told/);
  await shows(1, [/Who is told/, /orders/]);
});

test("is anything lost", async () => {
  await shows(0, [/Is anything lost\? .* nothing was dropped or skipped; .* wait, and are kept/]);
});
