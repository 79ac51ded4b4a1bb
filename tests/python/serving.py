"""A `posthaste serve` process, its API, and a sink that remembers what it received."""

import http.server
import json
import os
import pathlib
import queue
import subprocess
import tempfile
import threading
import time
import urllib.request

# Far longer than anything takes, so that a busy machine fails no test.
PATIENCE_SECS = 180
POLL_SECS = 0.02


# The server that all tests share; main.py starts it.
SERVER = None


class Received:
    """One request as the sink read it, what its judge made of it, and what the judge raised."""

    def __init__(self, path, headers, body):
        self.path, self.headers, self.body = path, headers, body
        self.read, self.error = None, None


class Sink:
    """An endpoint on a free port. It answers 200 to what its judge takes, and `refusal` where the judge raises."""

    def __init__(self, judge=lambda request: None, refusal=400):
        self.requests = queue.Queue()
        requests = self.requests

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                request = Received(self.path, dict(self.headers), body)
                try:
                    request.read = judge(request)
                except Exception as error:  # Whatever it is, the receiver does not take the request.
                    request.error = error
                requests.put(request)
                self.send_response(200 if request.error is None else refusal)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def url(self, path):
        return f"http://127.0.0.1:{self.server.server_port}{path}"

    def take(self, count):
        """The next requests, each of which the judge must have taken."""
        requests = [self.requests.get(timeout=PATIENCE_SECS) for _ in range(count)]
        for request in requests:
            if request.error is not None:
                raise request.error
        return requests


class Server:
    """The program, on a data folder of its own, which `prepare` fills first, with these further options. Use it in
    a `with`."""

    def __init__(self, program, prepare=lambda folder: None, options=()):
        self.folder = tempfile.TemporaryDirectory(prefix="posthaste-python-")
        prepare(pathlib.Path(self.folder.name))
        arguments = ["serve", "--listen", "127.0.0.1:0", "--allow-endpoints", "127.0.0.0/8", "--log", "json", *options]
        self.process = subprocess.Popen(
            [program, *arguments, "--data-dir", self.folder.name],
            env={name: value for name, value in os.environ.items() if name != "POSTHASTE_KEY"},
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.url = self._read_url()
        self.key = (pathlib.Path(self.folder.name) / "admin.key").read_text().strip()
        # The rest of the log is read and thrown away, so that the process never waits for a full pipe.
        threading.Thread(target=lambda: list(self.process.stderr), daemon=True).start()

    def _read_url(self):
        lines = []
        for line in self.process.stderr:
            lines.append(line)
            entry = json.loads(line) if line.startswith("{") else {}
            if entry.get("message", "").startswith("listening"):
                return entry["url"]
        raise RuntimeError("the server ended at once:\n" + "".join(lines))

    def __enter__(self):
        return self

    def stop(self):
        self.process.terminate()
        return self.process.wait(timeout=PATIENCE_SECS)

    def __exit__(self, *_):
        code = self.stop()
        self.folder.cleanup()
        if code != 0:
            raise RuntimeError(f"SIGTERM ended the server with {code}")

    def manage(self, method, path, settings=None):
        """A call of the management API, answered with its JSON."""
        headers = {"authorization": f"Bearer {self.key}", "content-type": "application/json"}
        body = None if settings is None else json.dumps(settings).encode()
        request = urllib.request.Request(self.url + path, body, headers, method=method)
        with urllib.request.urlopen(request, timeout=PATIENCE_SECS) as answer:
            return json.load(answer)

    def create_topic(self, name, schema, endpoint, mapping=None, **subscription):
        """A topic with one subscription: where to publish, its key, and the secret it signs with."""
        settings = {
            "inputSchema": schema,
            **({"inputMapping": mapping} if mapping else {}),
            "subscriptions": {"all": {"endpoint": {"url": endpoint}, **subscription}},
        }
        created = self.manage("PUT", f"/topics/{name}", settings)
        secret = created["subscriptions"]["all"]["signing"]["secrets"][0]
        key = self.manage("GET", f"/topics/{name}/keys")["key1"]
        return f"{self.url}/topics/{name}/events", key, secret

    def wait_for_dead_letter(self, topic):
        """The first dead letter of a topic's subscription."""
        deadline = time.monotonic() + PATIENCE_SECS
        while time.monotonic() < deadline:
            listed = self.manage("GET", f"/topics/{topic}/subscriptions/all/dead-letters")["deadLetters"]
            if listed:
                return self.manage("GET", f"/dead-letters/{listed[0]['object']}")[0]
            time.sleep(POLL_SECS)
        raise TimeoutError(f"there is no dead letter of {topic}")
