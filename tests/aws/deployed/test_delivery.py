"""From publish to a real endpoint, through the function's URL, the queue, its event source mapping and
deliver."""

import base64
import json

import case
from case import CLOUD_EVENT, Case, cloud_event
from stack import ROOT
from waiting import until

# Waits short enough for a test: the schedule's, and the floor of every status.
QUICKLY = {"schedule": ["PT1S"], "waitFloors": {"503": "PT0S", "default": "PT0S"}}

BATCH = "application/cloudevents-batch+json"

# A CloudEvent in binary mode.
ATTRIBUTES = {"ce-specversion": "1.0", "ce-id": "1", "ce-source": "/s", "ce-type": "t"}


def secret_of(applied):
    [secret] = [new["value"] for new in applied["new"] if new["kind"] == "signing secret"]
    return secret


class Delivery(Case):
    def test_the_roles_are_enforced(self):
        health = case.request("GET", self.stack.environment["AWS_ENDPOINT_URL"] + "/_ministack/health").json()
        self.assertEqual(health["auth"], "enabled")

    def test_posthaste_applies_and_publishes_and_the_event_arrives_signed(self):
        secret = secret_of(self.apply(filter={"includedEventTypes": ["com.example.order.paid"]}))
        shown = self.stack.posthaste("topics", "show", self.topic)
        self.assertEqual(shown["endpoint"], self.events_url)
        published = self.stack.posthaste(
            "publish", self.topic, "--file", "samples/cloudevents/order-paid.json"
        )
        self.assertEqual(published["published"]["topic"], self.topic)
        [received] = self.sink.take(self.path)
        self.verify(received, secret)
        self.assertEqual(received.body, (ROOT / "samples/cloudevents/order-paid.json").read_bytes().strip())
        told = {"aeg-event-type": "Notification", "aeg-subscription-name": "all", "aeg-delivery-count": "0"}
        self.assertEqual({name: received.headers[name] for name in told}, told)
        again = self.apply(filter={"includedEventTypes": ["com.example.order.paid"]})
        self.assertEqual({one["change"] for one in again["applied"]}, {"unchanged"})

    def test_structured_events_arrive_as_they_were_written(self):
        self.apply()
        members = '"specversion":"1.0","id":"1", "source":"/s","type":"t","mine":"ä"'
        event = '{ ' + members + ',\t"data":{"zoë": 1.50,"a":[]} }'
        self.post(event.encode())
        [received] = self.sink.take(self.path)
        self.assertEqual(received.body.decode(), event)

    def test_a_batch_arrives_event_by_event(self):
        self.apply()
        self.post(json.dumps([cloud_event(f"e{n}") for n in range(12)]).encode(), BATCH)
        arrived = [json.loads(received.body)["id"] for received in self.sink.take(self.path, 12)]
        self.assertEqual(sorted(arrived), sorted(f"e{n}" for n in range(12)))

    def test_a_batching_subscription_gets_batches(self):
        self.apply(batching={"maxEventsPerBatch": 5})
        self.post(json.dumps([cloud_event(f"e{n}") for n in range(10)]).encode(), BATCH)
        batches = [json.loads(received.body) for received in self.sink.take(self.path, 2)]
        self.assertEqual([len(batch) for batch in batches], [5, 5])

    def test_a_binary_event_with_bytes_arrives_in_base64(self):
        self.apply()
        self.post(bytes(range(256)), "application/octet-stream", **ATTRIBUTES, **{"ce-mine": "kept"})
        [received] = self.sink.take(self.path)
        event = json.loads(received.body)
        self.assertEqual(base64.b64decode(event["data_base64"]), bytes(range(256)))
        self.assertEqual((event["id"], event["mine"]), ("1", "kept"))

    def test_a_binary_event_of_json_goes_out_in_binary_mode_too(self):
        self.apply(contentMode="binary")
        attributes = {**ATTRIBUTES, "ce-subject": "zo%C3%AB"}
        self.post('{"zoë": 1}'.encode(), "application/json", **attributes)
        [received] = self.sink.take(self.path)
        self.assertEqual(json.loads(received.body), {"zoë": 1})
        self.assertEqual({name: received.headers[name] for name in attributes}, attributes)

    def test_event_grid_s_schema_is_taken_and_sent(self):
        self.apply_all({"all": {"endpoint": {"url": self.sink.url(self.path)}}}, inputSchema="EventGrid")
        event = {"id": "1", "eventType": "t", "subject": "s", "data": {}, "dataVersion": "1"}
        event["eventTime"] = "2026-11-21T10:00:00Z"
        self.post(json.dumps([event]).encode(), "application/json")
        [received] = self.sink.take(self.path)
        [arrived] = json.loads(received.body)
        self.assertEqual(event, {name: arrived[name] for name in event})

    def test_a_503_is_retried_until_it_is_delivered(self):
        secret = secret_of(self.apply(retryPolicy=QUICKLY))
        self.sink.answer(self.path, 503, 503)
        self.post_event(cloud_event("1"))
        attempts = self.sink.take(self.path, 3)
        for attempt in attempts:
            self.verify(attempt, secret)
        self.assertEqual([attempt.headers["aeg-delivery-count"] for attempt in attempts], ["0", "1", "2"])
        self.assertEqual(len({attempt.headers["webhook-id"] for attempt in attempts}), 1)
        self.assertEqual(len({attempt.body for attempt in attempts}), 1)

    def test_every_subscription_gets_its_own_and_a_filter_keeps_the_rest_away(self):
        paid = {"includedEventTypes": ["paid"]}
        paths = {name: f"{self.path}/{name}" for name in ("one", "two", "paid")}
        self.apply_all({
            name: {"endpoint": {"url": self.sink.url(path)}, "filter": paid if name == "paid" else {}}
            for name, path in paths.items()
        })
        self.post(json.dumps([cloud_event("1", type="sent"), cloud_event("2", type="paid")]).encode(), BATCH)
        for name, expected in (("one", ["1", "2"]), ("two", ["1", "2"]), ("paid", ["2"])):
            arrived = self.sink.take(paths[name], len(expected))
            self.assertEqual(sorted(json.loads(received.body)["id"] for received in arrived), expected)
        self.assertEqual([self.sink.left(path) for path in paths.values()], [0, 0, 0])

    def test_a_large_event_is_stored_once_and_arrives_at_every_subscription(self):
        paths = [f"{self.path}/{n}" for n in range(6)]
        self.apply_all({f"s{n}": {"endpoint": {"url": self.sink.url(path)}} for n, path in enumerate(paths)})
        event = cloud_event("1", data="x" * 900_000)
        stored_before = self.stored()
        self.post_event(event)
        for path in paths:
            [received] = self.sink.take(path)
            self.assertEqual(json.loads(received.body), event)
        self.assertEqual(self.stored(), stored_before + 1)

    def test_a_410_disables_the_subscription(self):
        self.apply(deadLetter={"delay": "PT0S"})
        self.sink.answer(self.path, 410)
        self.post_event(cloud_event("1"))
        [dead] = self.dead_letters()
        self.assertEqual((dead["deadletterreason"], dead["lasthttpstatuscode"]), ("EndpointGone", 410))
        # deliver left a mark, which wake carries out. It rests where it looked a moment ago, so it is asked again.
        until(self.is_disabled, "the subscription is disabled")

    def is_disabled(self):
        self.stack.client("lambda").invoke(FunctionName=self.stack.function("wake"), Payload=b"{}")
        shown = self.stack.posthaste("subscriptions", "show", self.topic, "all")
        return shown["status"]["state"] == "Disabled"

    def test_a_topic_is_deleted(self):
        self.apply()
        self.stack.posthaste("topics", "delete", self.topic, "--yes")
        listed = [topic["name"] for topic in self.stack.posthaste("topics", "list")["topics"]]
        self.assertNotIn(self.topic, listed)

    def test_the_content_type_of_a_structured_event_may_have_parameters(self):
        self.apply()
        self.post(json.dumps(cloud_event("1")).encode(), CLOUD_EVENT + "; charset=UTF-8")
        self.assertEqual(json.loads(self.sink.take(self.path)[0].body)["id"], "1")
