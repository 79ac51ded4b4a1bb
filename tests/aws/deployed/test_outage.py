"""A short outage and its end. Once all is at rest, every surface says the same, and nothing else than what
happened."""

import json
import time
from datetime import UTC, datetime, timedelta

from case import Case, cloud_event
from test_schedules import SCHEDULED
from waiting import until

# Waits short enough for a test: the schedule's, and the floor of every status.
QUICKLY = {"schedule": ["PT1S"], "waitFloors": {"503": "PT0S", "default": "PT0S"}}

BATCH = "application/cloudevents-batch+json"

# Failures in a row after which a subscription is failing (docs/src/failing-endpoints.md).
FAILING_IN_ROW = 10

# With the failures before it, the share of these that arrive is above what makes a subscription healthy again.
RECOVERING = 100

# A run of wake takes place once a minute, and a notice comes within five minutes.
RUNS_MAX = 5

QUEUES = ("DeliveriesQueueUrl", "DeadLettersQueueUrl", "RecordsQueueUrl")

COUNTS = [
    f"ApproximateNumberOfMessages{which}" for which in ("", "NotVisible", "Delayed")
]


class Outage(Case):
    def setUp(self):
        super().setUp()
        # What tests before this one left waiting (a dead letter waits for five minutes) would keep it from rest.
        for queue in QUEUES:
            self.stack.client("sqs").purge_queue(QueueUrl=self.stack.outputs[queue])

    def test_outage_at_rest(self):
        self.declare()
        self.sink.answer(f"{self.path}/erring", *[503] * 5)
        self.sink.answer(f"{self.path}/refusing", *[400] * FAILING_IN_ROW)
        failing = [f"e{n}" for n in range(FAILING_IN_ROW)]
        self.post(json.dumps([cloud_event(identity) for identity in failing]).encode(), BATCH)
        self.wait_for_ends(failing, {"healthy": "delivered", "erring": "delivered", "refusing": "dead-lettered"})
        notice = self.next_notice()
        self.assertEqual(notice["type"], "dev.posthaste.subscription.failing")
        self.assertEqual(notice["data"]["subscription"], "refusing")
        self.assertEqual(self.health("refusing"), "down")
        # The end of the outage.
        well = [f"w{n}" for n in range(RECOVERING)]
        self.post(json.dumps([cloud_event(identity) for identity in well]).encode(), BATCH)
        self.wait_for_ends(well, dict.fromkeys(("healthy", "erring", "refusing"), "delivered"))
        notice = self.next_notice()
        self.assertEqual(notice["type"], "dev.posthaste.subscription.recovered")
        self.assertEqual({self.health(name) for name in ("healthy", "erring", "refusing")}, {"healthy"})
        self.wait_for_rest()
        self.check_figures(len(failing) + len(well))
        # One incident, two notices.
        self.run_wake()
        self.wait_for_rest()
        self.assertEqual(self.sink.left(f"{self.path}/pager"), 0)

    def declare(self):
        ops = f"{self.topic}-ops"
        subscription = {"retryPolicy": QUICKLY, "deadLetter": {"delay": "PT0S"}}
        named = {
            name: {"endpoint": {"url": self.sink.url(f"{self.path}/{name}")}, **subscription}
            for name in ("healthy", "erring", "refusing")
        }
        pager = {"pager": {"endpoint": {"url": self.sink.url(f"{self.path}/pager")}}}
        topics = {
            ops: {"subscriptions": pager},
            self.topic: {"noticesTopic": ops, "subscriptions": named},
        }
        self.stack.posthaste("apply", "--file", "-", text=json.dumps({"topics": topics}))
        self.publish_key = self.stack.posthaste("topics", "keys", self.topic)["key1"]

    def wait_for_ends(self, identities, expected):
        """Waits until the page of each event says this of its subscriptions. Until then no page says
        `delivered`."""
        for identity in identities:
            until(lambda of=identity: self.has_ended(of, expected), f"the end of {identity}")

    def has_ended(self, identity, expected):
        event = self.stack.posthaste("events", "show", self.topic, identity)
        states = {one["subscription"]: one["state"] for one in event["deliveries"]}
        if event.get("state") == "delivered":
            self.assertEqual(states, dict.fromkeys(expected, "delivered"))
        is_written = all(
            "deadLetterObject" in one for one in event["deliveries"] if one["state"] == "dead-lettered"
        )
        return states == expected and is_written

    def next_notice(self):
        """The next notice, after as many runs of wake as five minutes have."""
        path = f"{self.path}/pager"
        for _ in range(RUNS_MAX):
            self.run_wake()
            self.wait_for_rest()
            if self.sink.left(path):
                [received] = self.sink.take(path)
                return json.loads(received.body)
        raise AssertionError(f"no notice after {RUNS_MAX} runs of wake")

    def run_wake(self):
        # wake may rest until the minute that it saw, unless a signal says that there is work.
        signal = json.dumps({"until": int((time.time() + 60) * 1000)})
        self.stack.client("s3").put_object(
            Bucket=self.stack.state_bucket, Key="signals/wake.json", Body=signal.encode()
        )
        answer = self.stack.client("lambda").invoke(
            FunctionName=self.stack.function("wake"), Payload=json.dumps(SCHEDULED).encode()
        )
        self.assertNotIn("FunctionError", answer)

    def health(self, name):
        return self.stack.posthaste("subscriptions", "show", self.topic, name)["health"]["state"]

    def wait_for_rest(self):
        until(lambda: not any(self.waiting().values()), "the queues to be empty", found=self.waiting)

    def waiting(self):
        """How many messages each queue has, by its attributes."""
        sqs = self.stack.client("sqs")
        counts = {}
        for queue in QUEUES:
            url = self.stack.outputs[queue]
            attributes = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=COUNTS)["Attributes"]
            counts[queue] = sum(int(attributes[name]) for name in COUNTS)
        return counts

    def check_figures(self, events):
        """Nothing waits, wherever that is asked, and each letter is counted."""
        listed = self.stack.posthaste("subscriptions", "list", self.topic)["subscriptions"]
        self.assertEqual({one["name"]: one["waiting"]["count"] for one in listed},
                         dict.fromkeys(("healthy", "erring", "refusing"), 0))
        for one in listed:
            shown = self.stack.posthaste("subscriptions", "show", self.topic, one["name"])
            # Each answer has a time of its own.
            ages = [datetime.fromisoformat(answer["waiting"].pop("countedUntil")) for answer in (one, shown)]
            self.assertLess(datetime.now(UTC) - min(ages), timedelta(minutes=5))
            self.assertEqual(shown["waiting"], one["waiting"])
        mine = [row for row in self.stack.posthaste("links")["links"] if row.get("topic") == self.topic]
        self.assertEqual([row["waiting"]["count"] for row in mine], [0] * len(mine))
        for kind in ("parked", "held"):
            keys = self.stack.objects(self.stack.state_bucket, f"{kind}/")
            self.assertEqual([key for key in keys if self.topic in key], [])
        letters = {}
        for name in ("healthy", "erring", "refusing"):
            page = self.stack.posthaste("dead-letters", "list", self.topic, name, "--limit", "1000")
            letters[name] = len(page["deadLetters"])
        self.assertEqual(letters, {"healthy": 0, "erring": 0, "refusing": FAILING_IN_ROW})
        in_objects = self.dead_letters("refusing")
        self.assertEqual(len(in_objects), FAILING_IN_ROW)
        taken = self.sink.requests[f"{self.path}/healthy"].qsize()
        self.assertEqual(taken, events)
