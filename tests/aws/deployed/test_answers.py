"""A producer and an operator are told the same by the deployed functions as by `posthaste serve`, byte for
byte."""

import json

import case
from case import CLOUD_EVENT, Case, cloud_event
from stack import Failed

BATCH = "application/cloudevents-batch+json"
JSON = {"content-type": "application/json"}


class Answers(Case):
    def setUp(self):
        super().setUp()
        self.apply()
        self.served = case.SERVE
        settings = {"subscriptions": {"all": {"endpoint": {"url": self.sink.url(self.path)}}}}
        self.served.manage("PUT", f"/topics/{self.topic}", settings)
        self.served_key = self.served.manage("GET", f"/topics/{self.topic}/keys")["key1"]

    def published(self, body, content_type=CLOUD_EVENT, topic=None, **headers):
        """The answer of both to the same request, each with its own key unless one is given."""
        path = f"/topics/{topic or self.topic}/events"
        sent = {"content-type": content_type, **headers}

        def ask(url, key):
            return case.request("POST", url + path, {"aeg-sas-key": key, **sent}, body)

        return self.same(ask(self.stack.publish_url, self.publish_key), ask(self.served.url, self.served_key))

    def managed(self, method, path, body=None, **headers):
        def ask(url, key):
            return case.request(method, url + path, {"authorization": f"Bearer {key}", **headers}, body)

        return self.same(ask(self.stack.manage_url, self.stack.key), ask(self.served.url, self.served.key))

    def same(self, deployed, served):
        self.assertEqual(deployed, served)
        return deployed

    def test_accepted(self):
        answer = self.published(json.dumps(cloud_event("1")).encode())
        counts = {"acceptedEvents": 1, "matchedSubscriptions": 1, "unmatchedEvents": 0}
        self.assertEqual((answer.status, answer.json()), (200, counts))

    def test_an_unknown_topic_is_401(self):
        answer = self.published(json.dumps(cloud_event("1")).encode(), topic="nowhere")
        self.assertEqual((answer.status, answer.json()["type"]), (401, "urn:posthaste:problem:unauthorized"))

    def test_a_wrong_key_is_401(self):
        answer = self.published(json.dumps(cloud_event("1")).encode(), **{"aeg-sas-key": "wrong"})
        self.assertEqual((answer.status, answer.json()["type"]), (401, "urn:posthaste:problem:unauthorized"))

    def test_a_bad_event_is_400_with_its_index_and_member_and_nothing_is_accepted(self):
        bad = [cloud_event("1"), cloud_event("2", type=7), cloud_event("3")]
        answer = self.published(json.dumps(bad).encode(), BATCH)
        problem = answer.json()
        self.assertEqual((answer.status, problem["index"], problem["member"]), (400, 1, "type"))
        # What is accepted later arrives first, because the rest never does.
        self.post_event(cloud_event("last"))
        [received] = self.sink.take(self.path)
        self.assertEqual(json.loads(received.body)["id"], "last")

    def test_what_is_not_json_is_400(self):
        self.assertEqual(self.published(b"{").status, 400)
        self.assertEqual(self.published(b"").status, 400)
        self.assertEqual(self.published(b"\xff\xfe").status, 400)

    def test_more_than_1_mb_is_413(self):
        event = json.dumps(cloud_event("1", data="x" * 1_000_000)).encode()
        self.assertEqual(self.published(event).status, 413)

    def test_a_content_type_that_is_not_taken_is_415(self):
        self.assertEqual(self.published(b"x", "text/plain").status, 415)

    def test_another_method_is_405(self):
        # At the address of serve the events of a topic can be read too, so its header `allow` names more.
        url = f"/topics/{self.topic}/events"
        answers = [case.request("PUT", server + url) for server in (self.stack.publish_url, self.served.url)]
        self.assertEqual([answer.status for answer in answers], [405, 405])
        self.assertEqual(answers[0].json()["type"], answers[1].json()["type"])

    def test_management_without_its_key_is_401(self):
        answer = self.managed("GET", "/topics", authorization="Bearer wrong")
        self.assertEqual(answer.status, 401)

    def test_settings_that_make_no_sense_are_400_with_their_member(self):
        settings = {"subscriptions": {"x": {"endpoint": {"url": "http://10.0.0.1/"}}}}
        answer = self.managed("PUT", "/topics/new", json.dumps(settings).encode(), **JSON)
        self.assertEqual((answer.status, answer.json()["member"]), (400, "subscriptions.x.endpoint.url"))

    def test_an_endpoint_that_is_the_own_publish_url_is_400_with_its_member(self):
        def put(url, key, publish_url):
            settings = {"endpoint": {"url": f"{publish_url}/topics/{self.topic}/events"}}
            path, headers = f"/topics/{self.topic}/subscriptions/again", {
                "authorization": f"Bearer {key}",
                **JSON,
            }
            return case.request("PUT", url + path, headers, json.dumps(settings).encode())

        deployed = put(self.stack.manage_url, self.stack.key, self.stack.publish_url)
        answer = self.same(deployed, put(self.served.url, self.served.key, self.served.url))
        self.assertEqual((answer.status, answer.json()["member"]), (400, "endpoint.url"))
        self.assertIn("publish URL of this installation", answer.json()["detail"])

    def test_what_is_not_there_is_404(self):
        subscription = f"/topics/{self.topic}/subscriptions/nobody"
        for path in ("/topics/nowhere", subscription, "/dead-letters/NO/SUCH/KEY", "/no"):
            self.assertEqual(self.managed("GET", path).status, 404, path)

    def test_a_condition_that_does_not_hold_is_412(self):
        path = f"/topics/{self.topic}"
        answer = self.managed("PUT", path, b"{}", **JSON, **{"if-match": '"other"'})
        self.assertEqual(answer.status, 412)

    def test_the_commands_exit_with_what_went_wrong(self):
        for arguments, expected in (
            (["topics", "show", "nowhere"], 4),
            (["topics", "list", "--key", "wrong"], 5),
        ):
            with self.assertRaises(Failed) as failed:
                self.stack.posthaste(*arguments)
            self.assertEqual(failed.exception.code, expected, arguments)

    def test_an_event_arrives_the_same(self):
        event = json.dumps(cloud_event("1", data={"zoë": [1.0]}), ensure_ascii=False).encode()
        self.published(event, traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
        one, two = self.sink.take(self.path, 2)
        self.assertEqual(one.body, two.body)
        # What is drawn or read from the clock differs; nothing else does.
        for name in ("webhook-id", "webhook-timestamp", "webhook-signature"):
            self.assertNotEqual((one.headers.pop(name), name), (None, name))
            two.headers.pop(name)
        self.assertEqual(one.headers, two.headers)
