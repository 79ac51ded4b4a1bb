// A browser on the console of a running server. What a page must never do is noted: break its own policy,
// call another host, or run what was not the console's.

import assert from "node:assert/strict";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { createRequire } from "node:module";

import { chromium } from "playwright-core";

// Chromium looks for its maker's hosts unless it is told not to. Root needs the first one.
const ARGUMENTS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

// WCAG 2.2 AA, and what else axe recommends.
const RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];

const PAGE_BYTES_MAX = 200_000;

// A delivery is in the log some seconds after it was made; a wait that ends with nothing is a failure.
const PATIENCE_MS = 120_000;

// A clock is stopped at a moment that must not have passed since it was installed.
const CLOCK_AHEAD_MS = 60_000;

const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");

/** Starts the browser. */
export function launch() {
  const executablePath = process.env.POSTHASTE_CHROMIUM ?? "/usr/bin/chromium";
  return chromium.launch({ executablePath, args: ARGUMENTS });
}

/** Stops the clock of the pages that `page` shows from now on. It goes on by `page.clock.runFor` only: one that is
 * installed and not stopped goes on with real time, in which a busy machine may take seconds for a click. */
export async function stopClock(page, at = Date.now() + CLOCK_AHEAD_MS) {
  await page.clock.install({ time: at - CLOCK_AHEAD_MS });
  await page.clock.pauseAt(at);
}

/** A visitor with a profile of its own, on the console of `server`. */
export class Visitor {
  static async come(browser, server, options = {}) {
    const visitor = new Visitor();
    visitor.server = server;
    visitor.faults = [];
    visitor.context = await browser.newContext({ baseURL: server.url, ...options });
    visitor.context.setDefaultTimeout(PATIENCE_MS);
    visitor.page = await visitor.context.newPage();
    visitor.page.on("console", (message) => {
      const text = message.text();
      if (/Content Security Policy|Refused to|violates/.test(text)) visitor.faults.push(text);
    });
    visitor.page.on("pageerror", (error) => visitor.faults.push(String(error)));
    visitor.page.on("dialog", (dialog) => {
      visitor.faults.push(`a dialog: ${dialog.message()}`);
      dialog.dismiss();
    });
    visitor.page.on("response", async (answer) => {
      if (answer.request().isNavigationRequest() && answer.ok()) {
        const { length } = await answer.body().catch(() => "");
        if (length > PAGE_BYTES_MAX) visitor.faults.push(`${answer.url()} has ${length} bytes`);
      }
    });
    visitor.page.on("request", (request) => {
      if (new URL(request.url()).origin !== server.url) visitor.faults.push(`asked ${request.url()}`);
    });
    return visitor;
  }

  /** Opens a page and waits until it stands. */
  async open(path) {
    const answer = await this.page.goto(path, { waitUntil: "load" });
    return answer.status();
  }

  /** Loads a page again and again until it has `text`. */
  async openUntil(path, text, patienceMs = PATIENCE_MS) {
    const until = Date.now() + patienceMs;
    do {
      await this.open(path);
      if ((await this.page.locator("main").innerText()).includes(text)) return;
    } while (Date.now() < until);
    assert.fail(`${path} does not show ${text}:\n${await this.page.locator("main").innerText()}`);
  }

  /** Presses a button, and waits for the page that comes of it. */
  async press(name) {
    await Promise.all([
      this.page.waitForEvent("load"),
      this.page.getByRole("button", { name, exact: true }).first().click(),
    ]);
  }

  /** Follows a link, and waits for its page. */
  async follow(name) {
    await Promise.all([
      this.page.waitForEvent("load"),
      this.page.locator("main").getByRole("link", { name }).first().click(),
    ]);
  }

  /** Checks that the page has each of these texts. */
  async sees(...texts) {
    const shown = await this.page.locator("main").innerText();
    for (const text of texts) assert.ok(shown.includes(text), `${text} is missing in:\n${shown}`);
  }

  async signIn() {
    await this.open("/console/sign-in");
    await this.page.getByLabel("Admin key").fill(this.server.key);
    await this.page.getByRole("button", { name: "Sign in" }).click();
    await this.page.getByRole("button", { name: "Sign out" }).waitFor();
  }

  /** The violations of accessibility on the page as it stands, in words. */
  async violations() {
    // A policy without eval does not keep out what the browser's own tools run.
    await this.page.evaluate(await readFile(AXE, "utf8"));
    const found = await this.page.evaluate((runOnly) => globalThis.axe.run({ runOnly }), RULES);
    return found.violations.map(
      ({ id, help, nodes }) => `${id}: ${help}: ${nodes.map((node) => node.html.slice(0, 200)).join(" | ")}`,
    );
  }

  /** Checks what was noted, and leaves. */
  async leave() {
    await this.context.close();
    assert.deepEqual(this.faults, []);
  }
}

/** An endpoint that answers as it is told, and keeps what it was sent. */
export class Endpoint {
  static async start() {
    const endpoint = new Endpoint();
    Object.assign(endpoint, { status: 200, headers: {}, body: "", requests: [] });
    endpoint.server = createServer(async (request, response) => {
      const pieces = [];
      for await (const piece of request) pieces.push(piece);
      endpoint.requests.push({ headers: request.headers, body: Buffer.concat(pieces).toString() });
      response.writeHead(endpoint.status, endpoint.headers).end(endpoint.body);
    });
    endpoint.server.listen(0, "127.0.0.1");
    await once(endpoint.server, "listening");
    endpoint.url = `http://127.0.0.1:${endpoint.server.address().port}/hooks`;
    return endpoint;
  }

  stop() {
    this.server.close();
    this.server.closeAllConnections();
  }
}
