"""A client that `openapi-python-client` makes of the served description manages and publishes, unchanged.

Run by main.py."""

import datetime
import importlib
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import urllib.request

import serving

PACKAGE = "posthaste_client"


class GeneratedClient(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="posthaste-generated-")
        document = pathlib.Path(cls.folder.name) / "openapi.json"
        with urllib.request.urlopen(
            serving.SERVER.url + "/openapi.json", timeout=serving.PATIENCE_SECS
        ) as answer:
            document.write_bytes(answer.read())
        output = pathlib.Path(cls.folder.name) / "client"
        generator = str(pathlib.Path(sys.executable).parent / "openapi-python-client")
        arguments = ["generate", "--path", str(document), "--output-path", str(output), "--meta", "none"]
        done = subprocess.run([generator, *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        # The generator tells of what it leaves out, and of formatters that are not installed.
        skipped = [line for line in (done.stdout + done.stderr).splitlines() if "parsing" in line.lower()]
        assert skipped == [], skipped
        output.rename(output.with_name(PACKAGE))
        sys.path.insert(0, cls.folder.name)

    @classmethod
    def tearDownClass(cls):
        sys.path.remove(cls.folder.name)
        for name in [name for name in sys.modules if name.split(".")[0] == PACKAGE]:
            del sys.modules[name]
        cls.folder.cleanup()

    def load(self, path):
        return importlib.import_module(f"{PACKAGE}.{path}")

    def model(self, module, name):
        return getattr(self.load(f"models.{module}"), name)

    def client(self, token, **options):
        kind = self.load("client").AuthenticatedClient
        return kind(base_url=serving.SERVER.url, token=token, raise_on_unexpected_status=True, **options)

    def call(self, path, status, **arguments):
        """The body of an answer, which must have this status."""
        answer = self.load(f"api.{path}").sync_detailed(**arguments)
        self.assertEqual(answer.status_code, status, answer.content)
        return answer.parsed

    def create(self, name, schema, url):
        """A topic with one subscription: a publishing client with its key."""
        admin = self.client(serving.SERVER.key)
        settings = self.model("topic_settings", "TopicSettings").from_dict(
            {"inputSchema": schema, "subscriptions": {"all": {"endpoint": {"url": url}}}}
        )
        self.call("topics.put_topic", 201, topic=name, client=admin, body=settings)
        keys = self.call("topics.get_keys", 200, topic=name, client=admin)
        return self.client(keys.key1, prefix="", auth_header_name="aeg-sas-key")

    def bodies(self, sink, count):
        bodies = [json.loads(request.body) for request in sink.take(count)]
        return sorted(body[0]["id"] if isinstance(body, list) else body["id"] for body in bodies)

    def test_one_cloud_event_and_a_batch_are_published(self):
        sink = serving.Sink()
        producer = self.create("generated-ce", "CloudEvents", sink.url("/hook"))
        kind = self.model("cloud_event", "CloudEvent")
        events = [
            kind(specversion="1.0", id=str(n), source="/shop", type_="order.paid", data={"n": n})
            for n in range(3)
        ]
        publish = {"topic": "generated-ce", "client": producer}
        self.call("publish.publish_events", 200, **publish, body=events[0], posthaste_time_to_live="PT10M")
        answer = self.call("publish.publish_events", 200, **publish, body=events[1:])
        counts = {"acceptedEvents": 2, "matchedSubscriptions": 1, "unmatchedEvents": 0}
        self.assertEqual(answer.to_dict(), counts)
        self.assertEqual(self.bodies(sink, 3), ["0", "1", "2"])

    def test_event_grid_events_are_published(self):
        sink = serving.Sink()
        producer = self.create("generated-eg", "EventGrid", sink.url("/hook"))
        kind = self.model("event_grid_event", "EventGridEvent")
        now = datetime.datetime.now(datetime.timezone.utc)
        event = kind(id="1", event_type="t", subject="/s", event_time=now, data={"n": 1}, data_version="1")
        self.call("publish.publish_events", 200, topic="generated-eg", client=producer, body=[event])
        self.assertEqual(self.bodies(sink, 1), ["1"])

    def test_a_refusal_is_a_problem(self):
        sink = serving.Sink()
        producer = self.create("generated-problem", "CloudEvents", sink.url("/hook"))
        event = self.model("cloud_event", "CloudEvent")(specversion="1.0", id="1", source="", type_="t")
        problem = self.call(
            "publish.publish_events", 400, topic="generated-problem", client=producer, body=event
        )
        self.assertEqual((problem.status, problem.member), (400, "source"))

    def test_topics_and_subscriptions_are_listed_shown_and_deleted(self):
        sink = serving.Sink()
        self.create("generated-manage", "CloudEvents", sink.url("/hook"))
        admin = self.client(serving.SERVER.key)
        names = [topic.name for topic in self.call("topics.list_topics", 200, client=admin).topics]
        self.assertIn("generated-manage", names)
        shown = self.call(
            "subscriptions.get_subscription", 200, topic="generated-manage", name="all", client=admin
        )
        self.assertEqual(shown.endpoint.url, sink.url("/hook"))
        self.call("topics.delete_topic", 204, topic="generated-manage", client=admin)
        self.assertIn("posthaste_events_accepted_total", self.call("status.metrics", 200, client=admin))
