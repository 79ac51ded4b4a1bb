"""What every test here has: the stack, a sink, a topic of its own, and ways to publish to it."""

import base64
import hashlib
import hmac
import http.client
import json
import time
import unittest
import urllib.parse

import waiting

# Made once by `main`, because a stack takes longer to make than most tests take to run.
STACK = SINK = SERVE = None

# What the lines have in them that functions log of failures which tests have caused.
CAUSED = set()

CLOUD_EVENT = "application/cloudevents+json"
CLOUD_EVENTS = "application/cloudevents-batch+json"

DAY_MILLIS = 24 * 60 * 60 * 1000

# What an answer says besides its body; the rest depends on who carried it.
TELLING_HEADERS = (
    "content-type",
    "www-authenticate",
    "allow",
    "retry-after",
    "cache-control",
    "posthaste-pressure",
)


class Answer:
    """An answer of HTTP: two are equal when a client cannot tell them apart."""

    def __init__(self, response):
        self.status, self.body = response.status, response.read()
        self.headers = {name: response.headers[name] for name in TELLING_HEADERS}
        if not self.body:
            # A function URL says application/json of anything that does not say what it is, of nothing too.
            del self.headers["content-type"]

    def __eq__(self, other):
        return (self.status, self.headers, self.body) == (other.status, other.headers, other.body)

    def __repr__(self):
        return f"{self.status} {self.headers} {self.body!r}"

    def json(self):
        return json.loads(self.body)


def request(method, url, headers=(), body=None):
    """One request, without anything that a library would add or follow."""
    parts = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=waiting.PATIENCE_SECS)
    try:
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        connection.request(method, target, body, dict(headers))
        return Answer(connection.getresponse())
    finally:
        connection.close()


def cloud_event(identity, **more):
    return {"specversion": "1.0", "id": identity, "source": "/tests", "type": "t", **more}


def delivery(topic, identity, waited_secs=0):
    """A delivery message of version 1 for a subscription `all`, as publish writes it and deliver reads it
    (shared/core/src/stored/fixtures/delivery-v1.json). It fell due as long ago as it has waited."""
    due = int((time.time() - waited_secs) * 1000)
    entry = {"key": f"{topic}-{identity}", "expiresAt": due + DAY_MILLIS, "event": cloud_event(identity)}
    return {
        "v": 1,
        "topic": topic,
        "subscription": "all",
        "schema": "CloudEvents",
        "publishedAt": due,
        "notBefore": due,
        "attempts": 0,
        "events": [entry],
    }


class Case(unittest.TestCase):
    def setUp(self):
        self.stack, self.sink = STACK, SINK
        self.topic = self.id().rsplit(".", 1)[1].removeprefix("test_").replace("_", "-")[:64].rstrip("-")
        self.path = f"/{self.topic}"

    def apply(self, **subscription):
        """Declares the test's topic with one subscription, as a user does it, in YAML (which JSON is)."""
        return self.apply_all({"all": {"endpoint": {"url": self.sink.url(self.path)}, **subscription}})

    def apply_all(self, subscriptions, **topic):
        declared = {"topics": {self.topic: {**topic, "subscriptions": subscriptions}}}
        applied = self.stack.posthaste("apply", "--file", "-", text=json.dumps(declared))
        self.publish_key = self.stack.posthaste("topics", "keys", self.topic)["key1"]
        return applied

    @property
    def events_url(self):
        return f"{self.stack.publish_url}/topics/{self.topic}/events"

    def post(self, body, content_type=CLOUD_EVENT, **headers):
        """Publishes over the function's URL, which must succeed."""
        sent = {"aeg-sas-key": self.publish_key, "content-type": content_type, **headers}
        answer = request("POST", self.events_url, sent, body)
        self.assertEqual(answer.status, 200)
        self.assertIn("acceptedEvents", answer.json())

    def post_event(self, event):
        self.post(json.dumps(event).encode())

    def send(self, queue, body):
        """Puts a message straight into a queue of the stack, by the name of its output."""
        self.stack.client("sqs").send_message(QueueUrl=self.stack.outputs[queue], MessageBody=body)

    def stored(self):
        """How many payloads were stored instead of being sent in messages."""
        return len(self.stack.objects(self.stack.state_bucket, "payloads/"))

    def dead_letter_keys(self, subscription="all", count=1):
        """The keys of a subscription's dead-letter objects, once there are so many."""
        prefix = f"{self.topic.upper()}/{subscription.upper()}/"

        def enough():
            keys = self.stack.objects(self.stack.dead_letter_bucket, prefix)
            return keys if len(keys) >= count else None

        return waiting.until(enough, f"dead letters under {prefix}")

    def dead_letters(self, subscription="all", count=1):
        """The events in them."""
        keys = self.dead_letter_keys(subscription, count)
        objects = (self.stack.read(self.stack.dead_letter_bucket, key) for key in keys)
        return [event for text in objects for event in json.loads(text)]

    def verify(self, received, secret):
        """Checks a signature as the specification of Standard Webhooks says it is made."""
        key = base64.b64decode(secret.removeprefix("whsec_"))
        signed = b".".join(received.headers[name].encode() for name in ("webhook-id", "webhook-timestamp"))
        mac = hmac.new(key, signed + b"." + received.body, hashlib.sha256).digest()
        self.assertEqual(received.headers["webhook-signature"], "v1," + base64.b64encode(mac).decode())
