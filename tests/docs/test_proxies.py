"""The proxies of "Operating serve" let the public through to what it needs, and to nothing else."""

import contextlib
import http.server
import os
import pathlib
import re
import socket
import subprocess
import tempfile
import threading
import time
import unittest

import pages

SECONDS_MAX = 60
POLL_SECONDS = 0.05
PAGE = pages.BOOK / "operating" / "serve.md"

CODE = "orders/billing/Zm9v_-1"
PUBLIC = [
    ("POST", "/topics/orders/events"),
    ("POST", "/topics/Orders-2/events?api-version=2018-01-01"),
    ("POST", "/topics/orders/api/events"),
    ("GET", "/.well-known/webhook-keys"),
    ("GET", "/.well-known/webhook-keys?topic=orders&subscription=a%2Fb"),
    ("GET", f"/validate/{CODE}"),
    ("POST", f"/validate/{CODE}?WebHook-Allowed-Rate=*"),
]
PRIVATE = [
    ("GET", "/topics/orders/events"),
    ("PUT", "/topics/orders/events"),
    ("DELETE", f"/validate/{CODE}"),
    ("GET", "/topics/orders/events/..%2f..%2f..%2ftopics"),
    ("POST", "/topics/orders/subscriptions/a/..%2f..%2fevents"),
    ("POST", "/topics/orders%2fevents"),
    ("POST", "/topics/..%2forders/events"),
    ("POST", "/topics/%2e%2e/events"),
    ("POST", "/topics/orders/subscriptions/a/test/%2E%2E/%2e%2E/%2e./events"),
    ("POST", "/topics/orders/../../topics/orders/events"),
    ("POST", "/topics/orders/keys/key1/regenerate?/topics/orders/events"),
    ("POST", "/topics/orders/events/1/resend"),
    ("POST", "/topics/orders/events%3fx"),
    ("POST", "/topics/orders//events"),
    ("POST", "//topics/orders/events"),
    ("POST", "/topics/orders/events/"),
    ("GET", "/validate/..%2ftopics"),
    ("GET", "/validate/..%2f..%2ftopics/orders/keys"),
    ("GET", "/validate/../topics"),
    ("GET", "/validate/a/b/..%5c..%5ctopics"),
    ("GET", "/topics/..%2fvalidate/a/b/c"),
    ("GET", "/.well-known/webhook-keys/../../topics"),
    ("GET", "/topics"),
    ("GET", "/metrics"),
    ("GET", "/health"),
    ("GET", "/console/sign-in"),
    ("GET", "/"),
]


class Behind(http.server.BaseHTTPRequestHandler):
    """The server behind the proxy. It notes the request line, and answers with it."""

    protocol_version = "HTTP/1.1"

    def answer(self):
        line = self.requestline.encode()
        self.send_response(200)
        self.send_header("content-length", str(len(line)))
        self.end_headers()
        self.wfile.write(line if self.command != "HEAD" else b"")

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = answer

    def log_message(self, *_):
        pass


class Proxies(unittest.TestCase):
    def test_nginx(self):
        def configuration(block, behind, port, folder):
            site = block.replace("127.0.0.1:8080", f"127.0.0.1:{behind}")
            site = re.sub(r"listen 443 ssl http2;", f"listen 127.0.0.1:{port};", site)
            site = re.sub(r" *ssl_certificate.*\n", "", site)
            temporary = "".join(
                f"{name}_temp_path {folder}/{name};\n" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
            )
            return (
                f"daemon off; pid {folder}/pid; error_log stderr; events {{}}\n"
                f"http {{ access_log off;\n{temporary}{site}}}\n"
            )

        self.check("nginx", configuration, lambda program, file: [program, "-e", "stderr", "-c", file])

    def test_caddy(self):
        def configuration(block, behind, port, _folder):
            site = block.replace("127.0.0.1:8080", f"127.0.0.1:{behind}")
            site = site.replace("hooks.example.com {", f"http://hooks.example.com:{port} {{\n\tbind 127.0.0.1", 1)
            return f"{{\n\tadmin off\n}}\n{site}"

        arguments = ("run", "--adapter", "caddyfile", "--config")
        self.check("caddy", configuration, lambda program, file: [program, *arguments, file])

    def check(self, language, configuration, command):
        [block] = [block for block in pages.Page(PAGE).blocks() if block.language == language]
        program = os.environ[f"POSTHASTE_{language.upper()}"]
        with tempfile.TemporaryDirectory(prefix="proxy-") as folder, behind() as server, free_port() as port:
            file = pathlib.Path(folder) / "configuration"
            file.write_text(configuration(block.text, server, port, folder))
            environment = {**os.environ, "HOME": folder}
            process = subprocess.Popen(
                command(program, str(file)), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE, env=environment,
            )
            try:
                self.wait_until_listening(process, port)
                for method, path in PUBLIC:
                    with self.subTest(proxy=language, path=f"{method} {path}"):
                        expected = (200, f"{method} {path} HTTP/1.1")
                        self.assertEqual(asked(port, method, path), expected)
                for method, path in PRIVATE:
                    with self.subTest(proxy=language, path=f"{method} {path}"):
                        self.assertIn(asked(port, method, path)[0], (400, 404))
            finally:
                # Not killed: nginx has processes of its own, which it ends first.
                process.terminate()
                process.wait()
                process.stderr.close()

    def wait_until_listening(self, process, port):
        deadline = time.monotonic() + SECONDS_MAX
        while process.poll() is None and time.monotonic() < deadline:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                return
            time.sleep(POLL_SECONDS)
        process.kill()
        self.fail(process.stderr.read().decode())


@contextlib.contextmanager
def behind():
    """A server on a port of its own."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Behind)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


@contextlib.contextmanager
def free_port():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    yield port


def asked(port, method, path):
    """The status and the body of the answer to a request line that no client has made neat."""
    request = f"{method} {path} HTTP/1.1\r\nhost: hooks.example.com\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS_MAX) as stream:
        stream.sendall(request.encode())
        answer = b""
        while piece := stream.recv(65536):
            answer += piece
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split(b" ")[1]), body.decode()


if __name__ == "__main__":
    unittest.main()
