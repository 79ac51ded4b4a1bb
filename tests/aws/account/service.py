"""posthaste over HTTP, as producers and operators use it: publish and manage behind their URLs."""

import base64
import hashlib
import hmac
import http.client
import json
import time
import urllib.parse

CLOUD_EVENT = "application/cloudevents+json"
CLOUD_EVENTS = "application/cloudevents-batch+json"

# The longest that publish may hold an answer, and more.
ANSWER_SECS_MAX = 90


class Answer:
    """An answer of HTTP, with header names in lower case, and the milliseconds that it took."""

    def __init__(self, status, headers, body, took_ms):
        self.status, self.body, self.took_ms = status, body, took_ms
        self.headers = {name.lower(): value for name, value in headers}

    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"{self.status} {self.body[:500]!r}"


class Connection:
    """A connection to the host of a URL, which is kept for requests one after the other."""

    def __init__(self, url):
        self.parts = urllib.parse.urlsplit(url)
        kinds = {"https": http.client.HTTPSConnection, "http": http.client.HTTPConnection}
        self.connection = kinds[self.parts.scheme](self.parts.netloc, timeout=ANSWER_SECS_MAX)

    def request(self, method, path, headers=None, body=None):
        """One request below the URL."""
        began = time.monotonic()
        try:
            self.connection.request(method, self.parts.path + path, body, headers or {})
            response = self.connection.getresponse()
            text = response.read()
        except (http.client.HTTPException, OSError):
            self.connection.close()
            raise
        return Answer(response.status, response.getheaders(), text, (time.monotonic() - began) * 1000)


class Refused(AssertionError):
    """An answer that says that something failed."""


class Service:
    """A stack of posthaste, by the URLs of its functions and the admin key."""

    def __init__(self, publish_url, manage_url, key):
        self.publish_url, self.manage_url, self.key = publish_url, manage_url, key
        self.publish_keys = {}

    def manage(self, method, path, body=None):
        """A request to manage, which must succeed, and its JSON."""
        headers = {"authorization": f"Bearer {self.key}", "content-type": "application/json"}
        text = None if body is None else json.dumps(body).encode()
        answer = Connection(self.manage_url).request(method, path, headers, text)
        if answer.status >= 300:
            raise Refused(f"{method} {path} is answered {answer}")
        return json.loads(answer.body) if answer.body else None

    def make_topic(self, topic, **subscriptions):
        """A topic with these subscriptions."""
        self.manage("PUT", f"/topics/{topic}", {"subscriptions": subscriptions})
        self.publish_keys[topic] = self.manage("GET", f"/topics/{topic}/keys")["key1"]

    def send(self, topic, events, connection=None):
        """Publishes an event, or a list of them, and hands on whatever is answered."""
        headers = {
            "aeg-sas-key": self.publish_keys[topic],
            "content-type": CLOUD_EVENTS if isinstance(events, list) else CLOUD_EVENT,
        }
        connection = connection or Connection(self.publish_url)
        return connection.request("POST", f"/topics/{topic}/events", headers, json.dumps(events).encode())

    def publish(self, topic, events, connection=None):
        """Publishes, which must be acknowledged."""
        answer = self.send(topic, events, connection)
        if answer.status != 200:
            raise Refused(f"publishing to {topic} is answered {answer}")
        return answer


def event(identity, **more):
    """A CloudEvent."""
    return {"specversion": "1.0", "id": identity, "source": "/trial", "type": "trial.event", **more}


def signature(secret, headers, body):
    """The signature that Standard Webhooks wants of a request."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = b".".join(headers[name].encode() for name in ("webhook-id", "webhook-timestamp")) + b"." + body
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
