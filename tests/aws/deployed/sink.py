"""An endpoint on 127.0.0.1 that answers as it is told, path by path, and remembers what it received."""

import collections
import http.server
import queue
import threading

from waiting import PATIENCE_SECS


class Received:
    """One request as the sink read it. Header names are in lower case."""

    def __init__(self, path, headers, body):
        self.path, self.body = path, body
        self.headers = {name.lower(): value for name, value in headers.items()}


class Sink:
    """Answers 200, but for what `answer` told it. Use it in a `with`."""

    def __init__(self):
        self.requests = collections.defaultdict(queue.Queue)
        self.statuses = collections.defaultdict(queue.Queue)
        self.held = {}
        sink = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                # Before the answer: whoever has it may ask at once what was received.
                status = sink.answered(Received(self.path, dict(self.headers), body))
                if held := sink.held.get(self.path):
                    held.wait(PATIENCE_SECS)
                self.send_response(status)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def url(self, path):
        return f"http://127.0.0.1:{self.server.server_port}{path}"

    def answer(self, path, *statuses):
        """What the next requests to a path are answered."""
        for status in statuses:
            self.statuses[path].put(status)

    def hold(self, path):
        """Has requests to a path wait for their answers, until `release`."""
        self.held[path] = threading.Event()

    def release(self, path):
        """Answers the requests to a path that wait, and all others at once again."""
        self.held.pop(path).set()

    def answered(self, received):
        """Remembers a request, and answers its status."""
        status = self.next_status(received.path)
        self.requests[received.path].put(received)
        return status

    def next_status(self, path):
        try:
            return self.statuses[path].get_nowait()
        except queue.Empty:
            return 200

    def take(self, path, count=1, patience_secs=PATIENCE_SECS):
        """The next requests to a path."""
        return [self.requests[path].get(timeout=patience_secs) for _ in range(count)]

    def left(self, path):
        """How many requests nobody has taken."""
        return self.requests[path].qsize()
