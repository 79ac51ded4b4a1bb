"""What a release is made to leave behind: topics, and deliveries in every state that a store can have.

The commands of that release drive it, so that the same steps work on `serve` and on a stack."""

import json
import os
import subprocess

from endpoints import HANGS, Endpoints
from patience import until

TOPIC, GRID, CUSTOM = "orders", "grid", "custom"

CLOUD_EVENT, GRID_EVENT = "application/cloudevents-batch+json", "application/json"

# An event of more than 64 KiB is stored apart from its message.
LARGE_TEXT_BYTES = 80_000

HOUR_LONG = {"schedule": ["PT1H"], "waitFloors": {"default": "PT0S", "503": "PT0S"}}
AT_ONCE = {"delay": "PT0S"}

# Each subscription of the topic `orders` with its settings, what its endpoint answers, and how many events
# it gets. An event's id begins with the name of its subscription, which is also the event's type.
SUBSCRIPTIONS = {
    # Answered, so that the log has more than failures.
    "arrived": ({}, 200, 3),
    # In the queue, each with its turn.
    "waiting": ({"endpoint": {"maxRequestsPerSecond": 0.02}}, 200, 4),
    # Under way, and some behind them.
    "flight": ({}, HANGS, 14),
    # In the queue, later.
    "delayed": ({}, 503, 2),
    "batched": ({"batching": {"maxEventsPerBatch": 10, "partialAcknowledgement": True}}, 503, 3),
    # In the store, until their time comes.
    "parked": ({"retryPolicy": HOUR_LONG}, 503, 3),
    "expiring": ({"retryPolicy": {**HOUR_LONG, "eventTimeToLiveInMinutes": 30}}, 503, 1),
    # In the store, for a subscription that is paused; `stored` has payloads apart.
    "held": ({}, 200, 3),
    "stored": ({}, 200, 2),
    # Paused, then deleted.
    "deleted": ({}, 200, 2),
    # Paused, then deleted and created again.
    "again": ({}, 200, 1),
    # Its link gets no requests for now.
    "down": ({}, 503, 12),
    # On their way to the bucket.
    "letters": ({}, 400, 2),
    # In the bucket, some of them resolved, some of them replayed.
    "buried": ({"deadLetter": AT_ONCE}, 400, 8),
    "resolved": ({"deadLetter": AT_ONCE}, 400, 3),
    # A 410 has disabled it.
    "gone": ({}, 410, 1),
    # With everything that settings can have.
    "dressed": (
        {
            "endpoint": {"timeout": "PT20S", "fallbackUrl": "https://fallback.example.com/hooks"},
            "contentMode": "binary",
            "deliveryHeaders": [
                {"name": "x-secret", "value": "hidden", "isSecret": True},
                {"name": "x-id", "fromEvent": "/id"},
            ],
            "filter": {"advancedFilters": [{"operatorType": "StringIn", "key": "type", "values": ["dressed"]}]},
        },
        503,
        2,
    ),
}

# Those of other schemas: the topic, its schema, and how many events they get. They are paused.
OTHERS = {
    GRID: ("EventGrid", 2),
    CUSTOM: ("Custom", 2),
}

PAUSED = ("held", "stored", "deleted", "again")


class Scenario:
    """Use it on a server or stack whose environment names `POSTHASTE_URL` and `POSTHASTE_KEY`."""

    def __init__(self, program, environment, endpoints):
        self.program, self.endpoints = program, endpoints
        self.environment = {"PATH": os.environ["PATH"], **environment}
        self.accepted = {}

    def posthaste(self, *arguments, text=None):
        """Runs a command, which must succeed, and answers its JSON."""
        done = subprocess.run(
            [self.program, *arguments, "--json"], input=text, env=self.environment, capture_output=True, text=True
        )
        if done.returncode != 0:
            raise AssertionError(f"{arguments} ended with {done.returncode}: {done.stderr}")
        return json.loads(done.stdout) if done.stdout.strip() else None

    def apply(self, topics):
        self.posthaste("apply", "-f", "-", text=json.dumps({"topics": topics}))

    def settings(self, name):
        more, _, _ = SUBSCRIPTIONS[name]
        endpoint = {"url": self.endpoints.url(name), **more.get("endpoint", {})}
        return {"filter": {"includedEventTypes": [name]}, **more, "endpoint": endpoint}

    def make(self):
        """Makes the topics, and everything but what must be the last."""
        subscriptions = {name: self.settings(name) for name in SUBSCRIPTIONS}
        orders = {"noticesTopic": "notices", "subscriptions": subscriptions}
        topics = {TOPIC: orders, "notices": {"autoDeleteOnIdle": "P1D"}}
        for topic, (schema, _) in OTHERS.items():
            subscription = {"endpoint": {"url": self.endpoints.url(topic)}}
            topics[topic] = {"inputSchema": schema, "subscriptions": {topic: subscription}}
        self.apply(topics)
        for name in PAUSED:
            self.posthaste("subscriptions", "pause", TOPIC, name)
        for topic in OTHERS:
            self.posthaste("subscriptions", "pause", topic, topic)
        self.posthaste("subscriptions", "rotate-secret", TOPIC, "arrived")
        self.posthaste("topics", "regenerate-key", TOPIC, "bulkKey1")

    def fill(self):
        """Publishes, and waits until each event is where it belongs."""
        for name in SUBSCRIPTIONS:
            if name not in ("flight", "letters", "waiting"):
                self.publish(name)
        self.publish_others()
        self.resolve_and_replay()
        self.end_deleted()

    def publish(self, name):
        """Publishes the events of a subscription in one request."""
        _, _, count = SUBSCRIPTIONS[name]
        self.publish_ids(name, [f"{name}-{number}" for number in range(count)])

    def publish_ids(self, name, ids):
        data = "x" * LARGE_TEXT_BYTES if name == "stored" else "as it was"
        events = [
            {"specversion": "1.0", "id": one, "source": "/shop", "type": name, "data": data} for one in ids
        ]
        self.posthaste("publish", TOPIC, "--file", "-", "--content-type", CLOUD_EVENT, text=json.dumps(events))
        self.accepted.setdefault(name, []).extend(ids)

    def publish_others(self):
        grid = [
            {
                "id": f"{GRID}-{number}", "subject": "/shop", "eventType": GRID, "dataVersion": "1",
                "eventTime": "2026-01-01T00:00:00Z", "data": {"order": number},
            }
            for number in range(OTHERS[GRID][1])
        ]
        custom = [{"id": f"{CUSTOM}-{number}"} for number in range(OTHERS[CUSTOM][1])]
        for topic, events in ((GRID, grid), (CUSTOM, custom)):
            self.posthaste(
                "publish", topic, "--file", "-", "--content-type", GRID_EVENT, text=json.dumps(events)
            )
            self.accepted[topic] = [event["id"] for event in events]

    def letters(self, name):
        listed = self.posthaste("dead-letters", "list", TOPIC, name)
        return listed["deadLetters"] if isinstance(listed, dict) else listed

    def resolve_and_replay(self):
        for name in ("buried", "resolved"):
            count = len(self.accepted[name])
            until(lambda name=name, count=count: len(self.letters(name)) >= count, f"the letters of {name}")
        self.posthaste("dead-letters", "resolve", TOPIC, "resolved")
        until(lambda: self.is_disabled("gone"), "the 410")
        self.endpoints.answer("buried", 200)
        # One a second: it is in its middle when the program ends.
        self.posthaste("dead-letters", "replay", TOPIC, "buried", "--rate", "1")
        until(lambda: self.endpoints.received("buried", 200) >= 2, "a replay in its middle")

    def is_disabled(self, name):
        shown = self.posthaste("subscriptions", "show", TOPIC, name)
        return shown["status"]["state"] == "Disabled" if shown.get("status") else False

    def end_deleted(self):
        """Deletes what waits, and creates one of it again."""
        kept = {name: self.settings(name) for name in SUBSCRIPTIONS if name != "deleted"}
        for name in ("deleted", "again"):
            self.posthaste("subscriptions", "delete", TOPIC, name, *self.yes())
        self.apply({TOPIC: {"noticesTopic": "notices", "subscriptions": kept}})

    def yes(self):
        """The option with which commands give up what waits, where they have it."""
        help_text = subprocess.run(
            [self.program, "subscriptions", "delete", "--help"], capture_output=True, text=True, check=True
        ).stdout
        return ["--yes"] if "--yes" in help_text else []

    def end(self):
        """What must be the last: it is on its way when the program ends."""
        for name in ("waiting", "letters", "flight"):
            self.publish(name)
        until(lambda: self.endpoints.received("letters", 400) >= 2, "the letters' attempts")
        until(lambda: self.endpoints.hanging() >= 1, "a request under way")

    def left(self):
        """What was accepted and what arrived, as the fixture keeps it."""
        arrived = {name: sorted(self.endpoints.arrived(name)) for name in self.accepted}
        return {"accepted": self.accepted, "arrived": arrived}
