// A browser on the console of a running server. What a page must never do is noted: break its own policy, call
// another host, or run what was not the console's.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
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

const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");

/** Starts the browser. */
export function launch() {
  return chromium.launch({ executablePath: process.env.POSTHASTE_CHROMIUM ?? "/usr/bin/chromium", args: ARGUMENTS });
}

/** A visitor with a profile of its own, on the console of `server`. */
export class Visitor {
  static async come(browser, server, options = {}) {
    const visitor = new Visitor();
    visitor.server = server;
    visitor.faults = [];
    visitor.context = await browser.newContext({ baseURL: server.url, ...options });
    // axe runs in a world of its own, which the policy does not reach.
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
    const found = await this.page.evaluate(() =>
      globalThis.axe.run({ runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }),
    );
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
