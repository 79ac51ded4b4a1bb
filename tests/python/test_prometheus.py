"""Prometheus reads what `serve` shows, in both forms, and answers the queries of the rules and of the dashboard in
samples/monitoring.

Run by main.py. POSTHASTE_PROMETHEUS is the folder of prometheus and promtool."""

import contextlib
import json
import os
import pathlib
import re
import socket
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

import serving

PROGRAMS = pathlib.Path(os.environ["POSTHASTE_PROMETHEUS"])
SAMPLES = pathlib.Path(__file__).parents[2] / "samples/monitoring"

# Queries of what this test does not cause.
WITHOUT_DATA = re.compile(r"posthaste_(dead_letters|dropped_events|skipped_events)_total")

# What Grafana puts in for its variables.
VARIABLES = {"$__rate_interval": "10s", "$job": "posthaste", "$topic": ".*"}


class Prometheus:
    """A Prometheus with the configuration of the samples, which looks at one server each second. Use it in a
    `with`."""

    def __init__(self, server):
        self.folder = tempfile.TemporaryDirectory(prefix="posthaste-prometheus-")
        folder = pathlib.Path(self.folder.name)
        text = (SAMPLES / "prometheus.yml").read_text()
        for old, new in (("127.0.0.1:8080", urllib.parse.urlsplit(server.url).netloc), (": 15s", ": 1s")):
            assert old in text, old
            text = text.replace(old, new)
        (folder / "prometheus.yml").write_text(text)
        (folder / "posthaste.rules.yml").write_text((SAMPLES / "posthaste.rules.yml").read_text())
        with socket.create_server(("127.0.0.1", 0)) as free:
            address = f"127.0.0.1:{free.getsockname()[1]}"
        self.url = f"http://{address}"
        self.process = subprocess.Popen(
            [
                PROGRAMS / "prometheus",
                f"--config.file={folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address={address}",
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.log = []
        # Read all the time, so that the process never waits for a full pipe.
        self.reader = threading.Thread(target=lambda: self.log.extend(self.process.stderr), daemon=True)
        self.reader.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(timeout=serving.PATIENCE_SECS)
        self.folder.cleanup()

    def ask(self, path, **parameters):
        """An answer of its API; `None` while it is not there."""
        url = f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=serving.PATIENCE_SECS) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            if error.code == 503:
                return None
            raise AssertionError(f"{parameters}: {error.read().decode()}") from error
        except urllib.error.URLError:
            if self.process.poll() is not None:
                raise RuntimeError("Prometheus ended at once:\n" + "".join(self.log)) from None
            return None

    def wait_for(self, path, is_it, **parameters):
        """The first answer that is what somebody waits for."""
        until = time.monotonic() + serving.PATIENCE_SECS
        while True:
            answer = self.ask(path, **parameters)
            if answer is not None and is_it(answer):
                return answer
            if time.monotonic() > until:
                raise AssertionError(f"{path} {parameters}: {answer}")
            time.sleep(serving.POLL_SECS)


def page(server, accept):
    request = urllib.request.Request(server.url + "/metrics", headers={"accept": accept})
    with urllib.request.urlopen(request, timeout=serving.PATIENCE_SECS) as answer:
        return answer.headers["content-type"], answer.read()


def promtool(*arguments, given=b""):
    """What promtool has to say, and whether it is content."""
    ran = subprocess.run([PROGRAMS / "promtool", *arguments], input=given, capture_output=True)
    return ran.returncode, (ran.stdout + ran.stderr).decode()


def dashboard():
    """The queries of the dashboard, with values in the place of its variables."""
    panels = json.loads((SAMPLES / "grafana.json").read_text())["panels"]
    for panel in panels:
        for target in panel["targets"]:
            query = target["expr"]
            for name, value in VARIABLES.items():
                query = query.replace(name, value)
            yield query


def judge(request):
    if request.path == "/bad":
        raise ValueError("this endpoint takes nothing")


class PrometheusReads(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(serving.Server(os.environ["POSTHASTE_BIN"]))
        cls.sink = serving.Sink(judge)
        for name in ("good", "bad"):
            url, key, _ = cls.server.create_topic(name, "CloudEvents", cls.sink.url(f"/{name}"))
            if name == "bad":
                path = f"/topics/{name}/subscriptions/paused"
                cls.server.manage("PUT", path, {"endpoint": {"url": cls.sink.url("/good")}})
                cls.server.manage("POST", f"{path}/pause")
            cls.publish(url, key)
            # It was answered.
            cls.sink.requests.get(timeout=serving.PATIENCE_SECS)
            if name == "good":
                cls.good = (url, key)
        with contextlib.suppress(urllib.error.HTTPError):
            cls.publish(*cls.good, event={"no": "event"})

    @staticmethod
    def publish(url, key, event=None):
        event = event or {"specversion": "1.0", "id": f"{time.monotonic_ns()}", "source": "/test", "type": "test"}
        headers = {"authorization": f"Bearer {key}", "content-type": "application/cloudevents+json"}
        request = urllib.request.Request(url, json.dumps(event).encode(), headers)
        with urllib.request.urlopen(request, timeout=serving.PATIENCE_SECS):
            pass

    def test_promtool_has_no_complaint_about_the_metrics(self):
        kind, text = page(self.server, "text/plain")
        self.assertTrue(kind.startswith("text/plain"), kind)
        self.assertIn(b"posthaste_deliveries_total{", text)
        self.assertEqual(promtool("check", "metrics", given=text), (0, ""))
        # It does complain about what is wrong.
        self.assertNotEqual(promtool("check", "metrics", given=b"# TYPE a counter\na 1\n"), (0, ""))

    def test_promtool_has_no_complaint_about_the_samples(self):
        for arguments in (
            ("check", "config", SAMPLES / "prometheus.yml"),
            ("check", "rules", "--lint=all", "--lint-fatal", SAMPLES / "posthaste.rules.yml"),
        ):
            code, said = promtool(*arguments)
            self.assertEqual(code, 0, said)

    def test_a_running_prometheus_answers_rules_and_dashboard(self):
        with Prometheus(self.server) as prometheus:
            self.the_server_is_read(prometheus)
            stop = threading.Event()
            # Rates need events that come meanwhile.
            publishing = threading.Thread(target=self.publish_until, args=[stop])
            publishing.start()
            try:
                for query in dashboard():
                    self.has_an_answer(prometheus, query)
                self.rules_are_evaluated(prometheus)
            finally:
                stop.set()
                publishing.join()

    def publish_until(self, stop):
        while not stop.is_set():
            self.publish(*self.good)
            stop.wait(0.2)

    def the_server_is_read(self, prometheus):
        # It asks each second and waits for a second, which a busy machine may need.
        prometheus.wait_for("targets", lambda data: [one["health"] for one in data["activeTargets"]] == ["up"])
        known = prometheus.ask("targets/metadata", metric="posthaste_deliveries")
        # The name of the family is that of OpenMetrics, which Prometheus asks for.
        self.assertEqual([one["type"] for one in known], ["counter"])
        result = prometheus.wait_for(
            "query", lambda data: data["result"], query='sum(posthaste_events_accepted_total{topic="good"})'
        )
        self.assertGreaterEqual(float(result["result"][0]["value"][1]), 1)

    def has_an_answer(self, prometheus, query):
        def is_it(data):
            return WITHOUT_DATA.search(query) or data["result"]

        with self.subTest(query):
            prometheus.wait_for("query", is_it, query=query)

    def rules_are_evaluated(self, prometheus):
        def are_evaluated(data):
            return all(rule["health"] != "unknown" for group in data["groups"] for rule in group["rules"])

        groups = prometheus.wait_for("rules", are_evaluated)["groups"]
        rules = {rule["name"]: rule for group in groups for rule in group["rules"]}
        self.assertEqual({name: rule.get("lastError", "") for name, rule in rules.items() if rule["health"] != "ok"}, {})
        # A subscription that is paused waits for its five minutes.
        alerts = prometheus.wait_for(
            "query", lambda data: data["result"], query='ALERTS{alertname="PosthasteSubscriptionDown"}'
        )
        [alert] = alerts["result"]
        labels = {name: alert["metric"][name] for name in ("topic", "subscription", "alertstate")}
        self.assertEqual(labels, {"topic": "bad", "subscription": "paused", "alertstate": "pending"})

        def is_up(data):
            states = {rule["name"]: rule.get("state") for group in data["groups"] for rule in group["rules"]}
            return states["PosthasteDown"] == "inactive"

        prometheus.wait_for("rules", is_up)

        def all_arrived(data):
            # It is no number where none came between the first two reads.
            return [float(one["value"][1]) for one in data["result"]] == [1.0]

        prometheus.wait_for("query", all_arrived, query='posthaste:deliveries:success_ratio{topic="good"}')
