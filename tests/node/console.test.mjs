// The console in a real browser.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { Visitor, launch } from "./console.mjs";
import { Server } from "./serving.mjs";

let browser;
let server;

before(async () => {
  [browser, server] = await Promise.all([launch(), Server.start()]);
});

after(async () => {
  await browser?.close();
  await server?.stop();
});

for (const colorScheme of ["light", "dark"]) {
  test(`an empty installation's pages have no fault of accessibility (${colorScheme})`, async () => {
    const visitor = await Visitor.come(browser, server, { colorScheme });
    await visitor.open("/console/sign-in");
    assert.deepEqual(await visitor.violations(), []);
    await visitor.signIn();
    for (const path of ["", "/topics", "/events", "/dead-letters", "/links", "/pressure", "/replays"]) {
      assert.equal(await visitor.open(`/console${path}`), 200, path);
      assert.deepEqual(await visitor.violations(), [], path);
    }
    await visitor.leave();
  });
}

test("without JavaScript a visitor signs in, sees pages and signs out", async () => {
  const visitor = await Visitor.come(browser, server, { javaScriptEnabled: false });
  await visitor.signIn();
  assert.equal(await visitor.open("/console/links"), 200);
  await visitor.page.getByRole("button", { name: "Sign out" }).click();
  await visitor.page.getByLabel("Admin key").waitFor();
  assert.match(visitor.page.url(), /\/console\/sign-in$/);
  await visitor.leave();
});
