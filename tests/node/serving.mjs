// A `posthaste serve` process, its API, and a receiver that answers 200 only to what its judge takes.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

/** The program that POSTHASTE_BIN names, on a data folder of its own. */
export class Server {
  static async start() {
    const server = new Server();
    server.folder = await mkdtemp(join(tmpdir(), "posthaste-node-"));
    const options = ["--listen", "127.0.0.1:0", "--allow-endpoints", "127.0.0.0/8", "--log", "json"];
    server.process = spawn(process.env.POSTHASTE_BIN, ["serve", ...options, "--data-dir", server.folder], {
      env: { ...process.env, POSTHASTE_KEY: "" },
      stdio: ["ignore", "ignore", "pipe"],
    });
    server.url = await urlIn(server.process.stderr);
    server.key = (await readFile(join(server.folder, "admin.key"), "utf8")).trim();
    return server;
  }

  /** Ends it in order, and wants it to end well. */
  async stop() {
    this.process.kill("SIGTERM");
    const [code] = await once(this.process, "exit");
    await rm(this.folder, { recursive: true });
    if (code !== 0) throw new Error(`SIGTERM ended the server with ${code}`);
  }

  /** A call of the management API, answered with its JSON. */
  async manage(method, path, settings) {
    const headers = { authorization: `Bearer ${this.key}`, "content-type": "application/json" };
    const answer = await fetch(this.url + path, {
      method,
      headers,
      body: settings && JSON.stringify(settings),
    });
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
    return answer.json();
  }

  /** Makes a topic with one subscription. Returns the publish URL, its key and the subscription. */
  async createTopic(name, topic, endpoint, subscription) {
    const settings = { ...topic, subscriptions: { all: { endpoint: { url: endpoint }, ...subscription } } };
    const created = await this.manage("PUT", `/topics/${name}`, settings);
    const { key1 } = await this.manage("GET", `/topics/${name}/keys`);
    return { url: `${this.url}/topics/${name}/events`, key: key1, subscription: created.subscriptions.all };
  }
}

/** The address that the server logs. The rest of its log is thrown away, so that the pipe is never full. */
function urlIn(log) {
  return new Promise((resolve, reject) => {
    const lines = [];
    createInterface(log)
      .on("line", (line) => {
        lines.push(line);
        const entry = line.startsWith("{") ? JSON.parse(line) : {};
        if (entry.message?.startsWith("listening")) resolve(entry.url);
      })
      .on("close", () => reject(new Error(`the server ended at once:\n${lines.join("\n")}`)));
  });
}

/** Receives one request. Answers 200 with what `judge` makes of it, or 400 with the error it throws. */
export async function receiver(judge) {
  let settle;
  const received = new Promise((resolve, reject) => (settle = { resolve, reject }));
  // The request may come before the test awaits it; a rejection is not unhandled until then.
  received.catch(() => {});
  const server = createServer(async (request, response) => {
    const pieces = [];
    for await (const piece of request) pieces.push(piece);
    try {
      settle.resolve(await judge({ headers: request.headers, body: Buffer.concat(pieces) }));
      response.writeHead(200).end();
    } catch (error) {
      settle.reject(error);
      response.writeHead(400).end();
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const close = () => {
    server.close();
    server.closeAllConnections();
  };
  return { url: `http://127.0.0.1:${server.address().port}/hook`, received, close };
}
