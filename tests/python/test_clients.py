"""Clients that users have publish unchanged, and a verifier that users have accepts what arrives.

Run by main.py."""

import datetime
import json
import unittest

import requests
from azure.core.credentials import AzureKeyCredential, AzureSasCredential
from azure.core.exceptions import ClientAuthenticationError, HttpResponseError
from azure.core.messaging import CloudEvent as AzureCloudEvent
from azure.eventgrid import EventGridEvent, EventGridPublisherClient, generate_sas
from cloudevents.core.bindings.http import HTTPMessage, from_http, to_binary, to_structured
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

import serving


class Clients(unittest.TestCase):
    def setUp(self):
        self.sink = serving.Sink()
        self.name = self.id().rsplit(".", 1)[1].replace("_", "-")[:64]

    def topic(self, schema, **subscription):
        return serving.SERVER.create_topic(self.name, schema, self.sink.url("/hook"), **subscription)

    def received(self, count):
        """The next events, by their ids, each from a request that `standardwebhooks` verifies."""
        return sorted(
            (self.event_in(request) for request in self.sink.take(count)), key=lambda event: event["id"]
        )

    def event_in(self, request):
        body = Webhook(self.secret).verify(request.body, request.headers)
        return body[0] if isinstance(body, list) else body

    def azure(self, schema, **subscription):
        url, key, self.secret = self.topic(schema, **subscription)
        return EventGridPublisherClient(url, AzureKeyCredential(key))


class AzureEventGrid(Clients):
    def test_azure_publishes_event_grid_events(self):
        client = self.azure("EventGrid")
        when = datetime.datetime(2026, 11, 21, 10, 0, tzinfo=datetime.timezone.utc)
        events = [
            EventGridEvent(
                id=f"e{n}", subject=f"orders/{n}", event_type="order.paid", data={"n": n, "zoë": "ä"},
                data_version="2.0", event_time=when,
            )
            for n in range(3)
        ]
        client.send(events)
        arrived = self.received(3)
        self.assertEqual([event["id"] for event in arrived], ["e0", "e1", "e2"])
        self.assertEqual(arrived[1]["data"], {"n": 1, "zoë": "ä"})
        self.assertEqual(
            {name: arrived[2][name] for name in ("subject", "eventType", "dataVersion")},
            {"subject": "orders/2", "eventType": "order.paid", "dataVersion": "2.0"},
        )
        self.assertEqual(
            datetime.datetime.fromisoformat(arrived[0]["eventTime"].replace("Z", "+00:00")), when
        )

    def test_azure_publishes_one_event_grid_event(self):
        client = self.azure("EventGrid")
        client.send(EventGridEvent(id="only", subject="s", event_type="t", data="text", data_version="1"))
        self.assertEqual([event["id"] for event in self.received(1)], ["only"])

    def test_azure_publishes_cloud_events(self):
        client = self.azure("CloudEvents")
        client.send([
            AzureCloudEvent(source="/s", type="t", id="a", data={"n": 1}, extensions={"mine": "kept"}),
            AzureCloudEvent(source="/s", type="t", id="b", data=b"\x00\xff"),
            AzureCloudEvent(source="/s", type="t", id="c", subject="x"),
        ])
        arrived = self.received(3)
        self.assertEqual([event["id"] for event in arrived], ["a", "b", "c"])
        self.assertEqual((arrived[0]["data"], arrived[0]["mine"]), ({"n": 1}, "kept"))
        self.assertEqual(arrived[1]["data_base64"], "AP8=")
        self.assertEqual(arrived[2]["subject"], "x")

    def test_azure_publishes_one_cloud_event_and_a_dictionary(self):
        client = self.azure("CloudEvents")
        client.send(AzureCloudEvent(source="/s", type="t", id="object", data=7))
        client.send({"specversion": "1.0", "source": "/s", "type": "t", "id": "plain", "data": [1, 2]})
        self.assertEqual([event["data"] for event in self.received(2)], [7, [1, 2]])

    def test_azure_is_told_of_a_wrong_key(self):
        url, _, _ = self.topic("CloudEvents")
        client = EventGridPublisherClient(url, AzureKeyCredential("wrong"))
        with self.assertRaises(ClientAuthenticationError):
            client.send(AzureCloudEvent(source="/s", type="t"))

    def sas_client(self, url, key, **lifetime):
        expires = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(**lifetime)
        return EventGridPublisherClient(url, AzureSasCredential(generate_sas(url, key, expires)))

    def test_azure_publishes_with_a_shared_access_signature(self):
        url, key, self.secret = self.topic("CloudEvents")
        self.sas_client(url, key, minutes=10).send(AzureCloudEvent(source="/s", type="t", id="signed"))
        self.assertEqual([event["id"] for event in self.received(1)], ["signed"])

    def test_azure_is_told_of_a_signature_that_is_void(self):
        url, key, _ = self.topic("CloudEvents")
        elsewhere = f"{serving.SERVER.url}/topics/elsewhere/events"
        later = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(minutes=10)
        for client in (
            self.sas_client(url, key, minutes=-1),
            self.sas_client(url, "bm90IHRoZSBrZXk=", minutes=10),
            EventGridPublisherClient(url, AzureSasCredential(generate_sas(elsewhere, key, later))),
        ):
            with self.assertRaises(ClientAuthenticationError):
                client.send(AzureCloudEvent(source="/s", type="t"))

    def test_azure_is_told_of_an_unknown_topic(self):
        _, key, _ = self.topic("CloudEvents")
        client = EventGridPublisherClient(
            f"{serving.SERVER.url}/topics/nowhere/events", AzureKeyCredential(key)
        )
        # The same as for a wrong key: the answer does not tell which topics exist.
        with self.assertRaises(ClientAuthenticationError):
            client.send(AzureCloudEvent(source="/s", type="t"))

    def test_azure_is_told_of_a_bad_event(self):
        client = self.azure("CloudEvents")
        with self.assertRaises(HttpResponseError) as refused:
            client.send([{"specversion": "1.0", "id": "1", "source": "/s"}])
        self.assertEqual(refused.exception.status_code, 400)


class CloudEvents(Clients):
    def event(self, event_id, data, content_type="application/json"):
        attributes = {
            "id": event_id, "source": "/s", "type": "t", "specversion": "1.0", "subject": "zoë",
            "datacontenttype": content_type, "mine": "kept",
        }
        return CloudEvent(attributes=attributes, data=data)

    def publish(self, message):
        headers = {**message.headers, "aeg-sas-key": self.key}
        answer = requests.post(self.url, data=message.body, headers=headers, timeout=serving.PATIENCE_SECS)
        self.assertEqual(answer.status_code, 200, answer.text)

    def test_structured_and_binary_cloud_events_arrive_alike(self):
        self.url, self.key, self.secret = self.topic("CloudEvents")
        self.publish(to_structured(self.event("1", {"n": 1.5}), JSONFormat()))
        self.publish(to_binary(self.event("2", {"n": 1.5}), JSONFormat()))
        one, two = self.received(2)
        self.assertEqual([one.pop("id"), two.pop("id")], ["1", "2"])
        for event in (one, two):
            event.pop("time", None)
        self.assertEqual(one, two)
        self.assertEqual((one["data"], one["subject"], one["mine"]), ({"n": 1.5}, "zoë", "kept"))

    def test_the_library_reads_what_arrives_structured(self):
        self.arrives("structured")

    def test_the_library_reads_what_arrives_binary(self):
        self.arrives("binary")

    def arrives(self, content_mode):
        self.url, self.key, self.secret = self.topic("CloudEvents", contentMode=content_mode)
        self.publish(to_structured(self.event("1", {"n": [1, 2]}), JSONFormat()))
        [request] = self.sink.take(1)
        Webhook(self.secret).verify(request.body, request.headers)
        headers = {name.lower(): value for name, value in request.headers.items()}
        event = from_http(HTTPMessage(headers=headers, body=request.body), JSONFormat())
        self.assertEqual((event.get_id(), event.get_subject(), event.get_data()), ("1", "zoë", {"n": [1, 2]}))
        self.assertEqual(event.get_extension("mine"), "kept")


class StandardWebhooks(Clients):
    def publish(self, url, key, **more):
        event = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t", **more}
        headers = {"aeg-sas-key": key, "content-type": "application/cloudevents+json"}
        body = json.dumps(event).encode()
        answer = requests.post(url, data=body, headers=headers, timeout=serving.PATIENCE_SECS)
        self.assertEqual(answer.status_code, 200, answer.text)
        return event

    def test_what_arrives_is_verified(self):
        url, key, secret = self.topic("CloudEvents")
        event = self.publish(url, key, data={"zoë": 12.50})
        [request] = self.sink.take(1)
        self.assertEqual(Webhook(secret).verify(request.body, request.headers), event)

    def test_what_was_changed_on_the_way_is_not(self):
        url, key, secret = self.topic("CloudEvents")
        self.publish(url, key)
        [request] = self.sink.take(1)
        with self.assertRaises(WebhookVerificationError):
            Webhook(secret).verify(request.body + b" ", request.headers)
        with self.assertRaises(WebhookVerificationError):
            Webhook("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").verify(request.body, request.headers)

    def test_during_a_rotation_both_secrets_verify(self):
        secrets = ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_bm90IGEgc2VjcmV0LCBidXQgYSBuZXcgb25lISEh"]
        settings = {"inputSchema": "CloudEvents"}
        subscription = {"endpoint": {"url": self.sink.url("/hook")}, "signing": {"secrets": secrets}}
        serving.SERVER.manage(
            "PUT", f"/topics/{self.name}", {**settings, "subscriptions": {"all": subscription}}
        )
        key = serving.SERVER.manage("GET", f"/topics/{self.name}/keys")["key2"]
        event = self.publish(f"{serving.SERVER.url}/topics/{self.name}/events", key)
        [request] = self.sink.take(1)
        for secret in secrets:
            self.assertEqual(Webhook(secret).verify(request.body, request.headers), event)
