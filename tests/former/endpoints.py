"""Endpoints on 127.0.0.1, each on a port of its own, so that each has a link of its own."""

import collections
import http.server
import json
import threading

# In the place of a status: the request gets no answer.
HANGS = None


class Endpoints:
    """Endpoints by name. Use it in a `with`."""

    def __init__(self, statuses):
        self.statuses, self.servers = dict(statuses), {}
        self.answered, self.ids = collections.Counter(), collections.defaultdict(set)
        self.open, self.end, self.lock = 0, threading.Event(), threading.Lock()
        for name in self.statuses:
            server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler(name))
            server.daemon_threads = True
            threading.Thread(target=server.serve_forever, daemon=True).start()
            self.servers[name] = server

    def _handler(self, name):
        endpoints = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                status = endpoints.statuses[name]
                if status is HANGS:
                    with endpoints.lock:
                        endpoints.open += 1
                    endpoints.end.wait()
                    self.close_connection = True
                    return
                with endpoints.lock:
                    endpoints.answered[name, status] += 1
                    if status < 300:
                        endpoints.ids[name].update(ids(dict(self.headers), body))
                self.send_response(status)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        return Handler

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end.set()
        for server in self.servers.values():
            server.shutdown()
            server.server_close()

    def url(self, name):
        return f"http://127.0.0.1:{self.servers[name].server_port}/{name}"

    def answer(self, name, status):
        self.statuses[name] = status

    def received(self, name, status):
        """How many requests were answered so."""
        with self.lock:
            return self.answered[name, status]

    def arrived(self, name):
        """The ids of the events that were taken."""
        with self.lock:
            return set(self.ids[name])

    def hanging(self):
        with self.lock:
            return self.open


def ids(headers, body):
    headers = {name.lower(): value for name, value in headers.items()}
    if "ce-id" in headers:
        return [headers["ce-id"]]
    events = json.loads(body)
    return [event["id"] for event in (events if isinstance(events, list) else [events])]
