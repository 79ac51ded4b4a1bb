"""The libraries that receivers have, unchanged, verify and parse what posthaste sends. A receiver here
answers 200 only to what its library took, and 400 to everything else. Run by main.py."""

import base64
import hmac
import json
import unittest

import requests
import standardwebhooks.webhooks
import svix.webhooks
from azure.core.messaging import CloudEvent as AzureCloudEvent
from azure.eventgrid import EventGridEvent
from cloudevents.core.bindings.http import HTTPMessage
from cloudevents.core.bindings.http import from_http as from_http_v2
from cloudevents.core.formats.json import JSONFormat
from cloudevents.v1.http import from_http, from_json
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

import serving

CLOUD_EVENT = {
    "specversion": "1.0",
    "id": "1",
    "source": "/s",
    "type": "order.paid",
    "subject": "orders/1",
    "mine": "kept",
    "time": "2026-11-21T10:00:00Z",
    "datacontenttype": "application/json",
    "data": {"amount": 12.5, "zoë": "ä"},
}
EVENT_GRID = {
    "id": "1", "eventType": "order.paid", "subject": "orders/1", "eventTime": "2026-11-21T10:00:00Z",
    "dataVersion": "2.0", "data": {"amount": 12.5, "zoë": "ä"},
}
CUSTOM = {"no": "1", "kind": "order.paid", "about": "orders/1", "amount": 12.5, "zoë": "ä"}
MAPPING = {
    "id": {"sourceField": "no"},
    "eventType": {"sourceField": "kind"},
    "subject": {"sourceField": "about"},
}
EVENTS = {"CloudEvents": CLOUD_EVENT, "EventGrid": EVENT_GRID, "Custom": CUSTOM}
BATCHED = {"batching": {"maxEventsPerBatch": 10}}

# The forms of a request: what the topic accepts, and the members of the subscription.
FORMS = {
    "structured": ("CloudEvents", {}),
    "binary": ("CloudEvents", {"contentMode": "binary"}),
    "batched": ("CloudEvents", BATCHED),
    "Event Grid": ("EventGrid", {}),
    "Event Grid, batched": ("EventGrid", BATCHED),
    "Event Grid as CloudEvents": ("EventGrid", {"deliverySchema": "CloudEvents"}),
    "Event Grid as binary CloudEvents": (
        "EventGrid",
        {"deliverySchema": "CloudEvents", "contentMode": "binary"},
    ),
    "Custom": ("Custom", {}),
    "Custom, batched": ("Custom", BATCHED),
    "Custom as Event Grid": ("Custom", {"deliverySchema": "EventGrid"}),
    "Custom as CloudEvents": ("Custom", {"deliverySchema": "CloudEvents"}),
}


def by_standardwebhooks(secret, request):
    standardwebhooks.webhooks.Webhook(secret).verify(request.body, request.headers)


def by_svix(secret, request):
    svix.webhooks.Webhook(secret).verify(request.body, request.headers)


def by_hand(secret, request):
    """As the specification says, over the bytes: the libraries read every body as UTF-8 first."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    headers = lower_case(request.headers)
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + request.body
    signature = base64.b64encode(hmac.digest(key, signed, "sha256")).decode()
    if f"v1,{signature}" not in headers["webhook-signature"].split(" "):
        raise ValueError("the signature does not fit")


def public_keys(topic):
    """The keys of a topic's subscription from its key set (RFC 8037), which anybody may read."""
    url = f"{serving.SERVER.url}/.well-known/webhook-keys?topic={topic}&subscription=all"
    keys = requests.get(url, timeout=serving.PATIENCE_SECS).json()["keys"]
    return [Ed25519PublicKey.from_public_bytes(base64.urlsafe_b64decode(key["x"] + "=")) for key in keys]


def by_public_key(key, request):
    """Neither library knows `v1a` (standardwebhooks 1.1.0 and svix 2.9.1 pass it over), so `cryptography`
    verifies."""
    headers = lower_case(request.headers)
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + request.body
    [signature] = [one[4:] for one in headers["webhook-signature"].split(" ") if one.startswith("v1a,")]
    key.verify(base64.b64decode(signature), signed)


def lower_case(headers):
    return {name.lower(): value for name, value in headers.items()}


class Receivers(unittest.TestCase):
    def setUp(self):
        self.name = self.id().rsplit(".", 1)[1].replace("_", "-")[:60]
        self.topics = 0

    def receive(self, form, parse, events=None, verify=by_standardwebhooks):
        """What a receiver parsed of the one request that these events become in this form, having verified
        it."""
        return self.request(form, parse, events, verify).read

    def request(self, form, parse, events=None, verify=by_standardwebhooks):
        schema, subscription = FORMS[form]
        sink = serving.Sink(lambda request: (verify(secret, request), parse(request))[1])
        self.topics += 1
        name = f"{self.name}-{self.topics}"
        mapping = MAPPING if schema == "Custom" else None
        url, key, secret = serving.SERVER.create_topic(
            name, schema, sink.url("/hook"), mapping, **subscription
        )
        content_type = "application/cloudevents-batch+json" if schema == "CloudEvents" else "application/json"
        body = json.dumps(events or [EVENTS[schema]]).encode()
        headers = {"aeg-sas-key": key, "content-type": content_type}
        answer = requests.post(url, data=body, headers=headers, timeout=serving.PATIENCE_SECS)
        self.assertEqual(answer.status_code, 200, answer.text)
        [request] = sink.take(1)
        return request


class Verifiers(Receivers):
    def verifies(self, verify):
        for form in FORMS:
            with self.subTest(form):
                self.receive(form, lambda request: None, verify=verify)

    def test_standardwebhooks_verifies_every_form(self):
        self.verifies(by_standardwebhooks)

    def test_svix_verifies_every_form(self):
        self.verifies(by_svix)

    def test_a_public_key_verifies_v1a_and_the_libraries_verify_v1_beside_it(self):
        def judge(request):
            by_public_key(key, request)
            by_standardwebhooks(secret, request)
            by_svix(secret, request)

        sink = serving.Sink(judge)
        url, publish_key, secret = serving.SERVER.create_topic(self.name, "CloudEvents", sink.url("/hook"))
        rotate = f"/topics/{self.name}/subscriptions/all/rotate-secret"
        serving.SERVER.manage("POST", rotate, {"kind": "v1a"})
        [key] = public_keys(self.name)
        headers = {"aeg-sas-key": publish_key, "content-type": "application/cloudevents+json"}
        requests.post(url, json=CLOUD_EVENT, headers=headers, timeout=serving.PATIENCE_SECS)
        [request] = sink.take(1)
        with self.assertRaises(InvalidSignature):
            request.body += b" "
            by_public_key(key, request)

    def test_what_another_secret_signed_is_not_taken_and_becomes_a_dead_letter(self):
        other = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
        for verify in (by_standardwebhooks, by_svix):
            sink = serving.Sink(lambda request: verify(other, request))
            settings = {"deadLetter": {"delay": "PT0S"}}
            self.topics += 1
            name = f"{self.name}-{self.topics}"
            url, key, _ = serving.SERVER.create_topic(name, "CloudEvents", sink.url("/hook"), **settings)
            headers = {"aeg-sas-key": key, "content-type": "application/cloudevents+json"}
            requests.post(url, json=CLOUD_EVENT, headers=headers, timeout=serving.PATIENCE_SECS)
            with self.assertRaises(standardwebhooks.webhooks.WebhookVerificationError):
                sink.take(1)
            letter = serving.SERVER.wait_for_dead_letter(name)
            self.assertEqual((letter["id"], letter["lastdeliveryoutcome"]), ("1", "BadRequest"))


class CloudEvents(Receivers):
    def is_the_event(self, event):
        self.assertEqual(
            (event["id"], event["source"], event["type"], event["subject"], event["mine"]),
            ("1", "/s", "order.paid", "orders/1", "kept"),
        )

    def test_from_http_reads_structured_and_binary_mode(self):
        for form in ("structured", "binary"):
            with self.subTest(form):
                event = self.receive(form, lambda request: from_http(request.headers, request.body))
                self.is_the_event(event)
                self.assertEqual(event.data, CLOUD_EVENT["data"])

    def test_from_http_of_version_2_reads_structured_and_binary_mode(self):
        def parse(request):
            return from_http_v2(
                HTTPMessage(headers=lower_case(request.headers), body=request.body), JSONFormat()
            )

        for form in ("structured", "binary"):
            with self.subTest(form):
                event = self.receive(form, parse)
                self.is_the_event(event.get_attributes())
                self.assertEqual(event.get_data(), CLOUD_EVENT["data"])

    def test_what_was_converted_is_read(self):
        def parse(request):
            return from_http_v2(
                HTTPMessage(headers=lower_case(request.headers), body=request.body), JSONFormat()
            )

        forms = {
            "Event Grid as CloudEvents": EVENT_GRID["data"],
            "Event Grid as binary CloudEvents": EVENT_GRID["data"],
            "Custom as CloudEvents": CUSTOM,
        }
        for form, data in forms.items():
            with self.subTest(form):
                event = self.receive(form, parse)
                self.assertEqual(
                    (event.get_id(), event.get_type(), event.get_subject(), event.get_data()),
                    ("1", "order.paid", "orders/1", data),
                )

    def test_from_json_reads_structured_mode_and_each_event_of_a_batch(self):
        event = self.receive("structured", lambda request: from_json(request.body))
        self.is_the_event(event)

        def each(request):
            return [from_json(json.dumps(event)) for event in json.loads(request.body)]

        events = self.receive("batched", each, [CLOUD_EVENT, {**CLOUD_EVENT, "id": "2"}])
        self.is_the_event(events[0])
        self.assertEqual([event["id"] for event in events], ["1", "2"])

    def test_a_header_that_is_percent_encoded_is_read_as_it_was(self):
        event = {**CLOUD_EVENT, "subject": "Euro € 😀 100%"}

        def parse(request):
            return from_http_v2(
                HTTPMessage(headers=lower_case(request.headers), body=request.body), JSONFormat()
            )

        self.assertEqual(self.receive("binary", parse, [event]).get_subject(), event["subject"])

    def test_bytes_arrive_as_bytes_in_both_modes(self):
        event = {key: value for key, value in CLOUD_EVENT.items() if key != "data"}
        event |= {"datacontenttype": "application/octet-stream", "data_base64": "AP8Q"}
        for form in ("structured", "binary"):
            with self.subTest(form):
                request = self.request(form, lambda request: None, [event], verify=by_hand)
                parsed = from_http_v2(
                    HTTPMessage(headers=lower_case(request.headers), body=request.body), JSONFormat()
                )
                self.assertEqual(parsed.get_data(), b"\x00\xff\x10")


class AzureEventGrid(Receivers):
    def each(self, parse):
        return lambda request: [parse(event) for event in json.loads(request.body)]

    def test_event_grid_event_from_json_reads_single_events_and_batches(self):
        events = [EVENT_GRID, {**EVENT_GRID, "id": "2"}]
        parse = self.each(lambda event: EventGridEvent.from_json(json.dumps(event)))
        [event] = self.receive("Event Grid", parse)
        self.assertEqual(
            (event.id, event.subject, event.event_type, event.data_version, event.data),
            ("1", "orders/1", "order.paid", "2.0", EVENT_GRID["data"]),
        )
        self.assertEqual(event.event_time.isoformat(), "2026-11-21T10:00:00+00:00")
        [event] = self.receive("Custom as Event Grid", parse)
        self.assertEqual(
            (event.id, event.subject, event.event_type, event.data), ("1", "orders/1", "order.paid", CUSTOM)
        )
        both = self.receive("Event Grid, batched", parse, events)
        self.assertEqual([event.id for event in both], ["1", "2"])

    def test_cloud_event_from_dict_reads_single_events_and_batches(self):
        def is_the_event(event):
            self.assertEqual(
                (event.id, event.source, event.type, event.subject, event.data, event.extensions),
                ("1", "/s", "order.paid", "orders/1", CLOUD_EVENT["data"], {"mine": "kept"}),
            )

        is_the_event(
            self.receive("structured", lambda request: AzureCloudEvent.from_dict(json.loads(request.body)))
        )
        [event] = self.receive("batched", self.each(AzureCloudEvent.from_dict))
        is_the_event(event)
        converted = self.receive(
            "Event Grid as CloudEvents", lambda request: AzureCloudEvent.from_dict(json.loads(request.body))
        )
        self.assertEqual((converted.type, converted.extensions), ("order.paid", {"dataversion": "2.0"}))
