"""Each function by itself under AWS's Runtime Interface Emulator: one event of the kind it gets, on
queues and buckets of its own."""

import base64
import datetime
import hashlib
import json
import unittest

import case
from case import cloud_event, delivery
from rie import Rie
from stack import ROOT

ADMIN_KEY = "an-admin-key-for-the-tests-of-one-binary"
ADMIN_KEY_SHA256 = hashlib.sha256(ADMIN_KEY.encode()).hexdigest()
ACCOUNT = "000000000000"
LINK_SETTINGS = '{"glitches":4}'

# The other functions are in posthaste-delivery.
IN_LOG = ("record", "manage", "wake")

SCHEDULED = {"version": "0", "source": "aws.events", "detail-type": "Scheduled Event", "detail": {}}


class Binaries(unittest.TestCase):
    def setUp(self):
        self.sqs, self.s3 = case.STACK.client("sqs"), case.STACK.client("s3")
        name = self.id().rsplit(".", 1)[1].removeprefix("test_").replace("_", "-")
        kinds = ("deliveries", "deadletters", "redrive", "records")
        self.queues = {kind: f"{kind}-{name}"[:80] for kind in kinds}
        self.urls = {
            kind: self.sqs.create_queue(QueueName=name)["QueueUrl"] for kind, name in self.queues.items()
        }
        self.state, self.dead, self.log = (
            f"{kind}-{name}"[:63].rstrip("-") for kind in ("state", "dead", "log")
        )
        for bucket in (self.state, self.dead, self.log):
            self.s3.create_bucket(Bucket=bucket)

    def run_function(self, function, timeout_secs=120, **variables):
        credentials = {
            name: value for name, value in case.STACK.environment.items() if name.startswith("AWS_")
        }
        environment = {
            "AWS_REGION": credentials["AWS_DEFAULT_REGION"],
            "LOG_LEVEL": "info",
            "METRICS_NAMESPACE": "tests",
            "STATE_BUCKET": self.state,
            **credentials,
            **variables,
        }
        program = "posthaste-log" if function in IN_LOG else "posthaste-delivery"
        return Rie(program, function, environment, timeout_secs)

    def manage(self):
        return self.run_function(
            "manage", DEAD_LETTER_BUCKET=self.dead, LOG_BUCKET=self.log,
            DELIVERIES_QUEUE_URL=self.urls["deliveries"], ADMIN_KEY_SHA256=ADMIN_KEY_SHA256,
            PUBLISH_URL="https://publish.example/", ALLOW_ENDPOINTS="127.0.0.0/8", DNS_SERVER="127.0.0.1:53",
            LINK_SETTINGS=LINK_SETTINGS,
        )

    def publish(self):
        return self.run_function(
            "publish", DELIVERIES_QUEUE_URL=self.urls["deliveries"], RECORDS_QUEUE_URL=self.urls["records"]
        )

    def deliver(self):
        return self.run_function(
            "deliver",
            DELIVERIES_QUEUE_URL=self.urls["deliveries"],
            DEADLETTERS_QUEUE_URL=self.urls["deadletters"],
            RECORDS_QUEUE_URL=self.urls["records"],
            ALLOW_ENDPOINTS="127.0.0.0/8",
            DNS_SERVER="127.0.0.1:53",
            LINK_SETTINGS=LINK_SETTINGS,
        )

    def deadletter(self, bucket):
        return self.run_function(
            "deadletter", DEAD_LETTER_BUCKET=bucket, DELIVERIES_QUEUE_URL=self.urls["deliveries"],
            DEADLETTERS_QUEUE_URL=self.urls["deadletters"], REDRIVE_QUEUE_URL=self.urls["redrive"],
            RECORDS_QUEUE_URL=self.urls["records"],
        )

    def recording(self, bucket=None):
        return self.run_function(
            "record", LOG_BUCKET=bucket or self.log, RECORDS_QUEUE_URL=self.urls["records"],
        )

    def put_topic(self, path, **subscription):
        """A topic with one subscription, made by the manage function: its answer, and a key to publish."""
        return self.put_subscriptions(all={"endpoint": {"url": case.SINK.url(path)}, **subscription})

    def put_subscriptions(self, **subscriptions):
        settings = {"subscriptions": subscriptions}
        with self.manage() as manage:
            made = manage.invoke(
                http_event("PUT", "/topics/orders", settings, authorization=f"Bearer {ADMIN_KEY}")
            )
            keys = manage.invoke(
                http_event("GET", "/topics/orders/keys", authorization=f"Bearer {ADMIN_KEY}")
            )
        return made, json.loads(text_of(keys))["key1"]

    def received(self, kind, count):
        """The records of an event source mapping, with receipts that are good."""
        records = []
        while len(records) < count:
            answer = self.sqs.receive_message(
                QueueUrl=self.urls[kind], MaxNumberOfMessages=10, WaitTimeSeconds=5, AttributeNames=["All"]
            )
            self.assertIn("Messages", answer, f"{len(records)} of {count} messages in {kind}")
            records += [self.record(kind, message) for message in answer["Messages"]]
        return {"Records": records}

    def record(self, kind, message):
        return {
            "messageId": message["MessageId"],
            "receiptHandle": message["ReceiptHandle"],
            "body": message["Body"],
            "attributes": message["Attributes"],
            "messageAttributes": {},
            "md5OfBody": message["MD5OfBody"],
            "eventSource": "aws:sqs",
            "eventSourceARN": f"arn:aws:sqs:us-east-1:{ACCOUNT}:{self.queues[kind]}",
            "awsRegion": "us-east-1",
        }

    def objects(self, bucket, prefix=""):
        return [
            one["Key"] for one in self.s3.list_objects_v2(Bucket=bucket, Prefix=prefix).get("Contents", [])
        ]

    def read(self, bucket, key):
        return self.s3.get_object(Bucket=bucket, Key=key)["Body"].read()

    def test_manage_answers_a_function_url(self):
        made, _ = self.put_topic("/rie-manage")
        self.assertEqual(made["statusCode"], 201)
        self.assertEqual(made["headers"]["content-type"], "application/json")
        self.assertEqual(
            json.loads(text_of(made))["endpoint"], "https://publish.example/topics/orders/events"
        )
        objects = [key for key in self.objects(self.state) if not key.startswith("audit/")]
        self.assertEqual(objects, ["topics/orders.json"])
        with self.manage() as manage:
            refused = manage.invoke(http_event("GET", "/topics", authorization="Bearer wrong"))
        self.assertEqual(
            (refused["statusCode"], refused["headers"]["content-type"]), (401, "application/problem+json")
        )

    def test_publish_answers_a_function_url(self):
        _, key = self.put_topic("/rie-publish")
        with self.publish() as publish:
            event = cloud_event("1")
            accepted = publish.invoke(event_of_producer("orders", key, event))
            # A young instance writes its metrics at once.
            self.assertIn('"PublishSuccessCount":1', publish.logged())
            unknown = publish.invoke(event_of_producer("nowhere", key, event))
        counts = {"acceptedEvents": 1, "matchedSubscriptions": 1, "unmatchedEvents": 0}
        self.assertEqual((accepted["statusCode"], json.loads(text_of(accepted))), (200, counts))
        self.assertEqual(accepted["headers"]["content-type"], "application/json")
        self.assertEqual(unknown["statusCode"], 401)
        self.assertEqual(json.loads(text_of(unknown))["type"], "urn:posthaste:problem:unauthorized")
        [record] = self.received("deliveries", 1)["Records"]
        self.assertEqual(json.loads(record["body"])["events"][0]["event"], event)

    def test_deliver_answers_a_batch_in_which_one_record_is_garbage(self):
        _, key = self.put_topic(
            "/rie-deliver", retryPolicy={"waitFloors": {"default": "PT0S"}, "schedule": ["PT0S"]}
        )
        with self.publish() as publish:
            for identity in ("1", "2"):
                publish.invoke(event_of_producer("orders", key, cloud_event(identity)))
        batch = self.received("deliveries", 2)
        self.sqs.send_message(QueueUrl=self.urls["deliveries"], MessageBody="garbage")
        batch["Records"].insert(1, self.received("deliveries", 1)["Records"][0])
        case.SINK.answer("/rie-deliver", 500)
        with self.deliver() as deliver:
            self.assertEqual(deliver.invoke(batch), {"batchItemFailures": []})
        self.assertEqual(len(case.SINK.take("/rie-deliver", 2)), 2)
        [retried] = self.received("deliveries", 1)["Records"]
        self.assertEqual(json.loads(retried["body"])["attempts"], 1)
        [kept] = self.received("deadletters", 1)["Records"]
        self.assertEqual(kept["body"], "garbage")

    def test_a_panic_in_one_record_of_a_batch_takes_no_neighbour_along(self):
        _, key = self.put_subscriptions(**{
            kind: {"endpoint": {"url": case.SINK.url(path)}, "filter": {"includedEventTypes": [kind]}}
            for kind, path in (("good", "/rie-neighbours"), ("bad", "/panic-probe"))
        })
        with self.publish() as publish:
            for kind in ("good", "bad", "good"):
                publish.invoke(event_of_producer("orders", key, cloud_event("1", type=kind)))
        batch = self.received("deliveries", 3)
        panicking = [
            one["messageId"] for one in batch["Records"] if json.loads(one["body"])["subscription"] == "bad"
        ]
        with self.deliver() as deliver:
            answer = deliver.invoke(batch)
            self.assertIn("the endpoint asks for a panic", deliver.logged())
        self.assertEqual(answer, {"batchItemFailures": [{"itemIdentifier": name} for name in panicking]})
        self.assertEqual(
            (len(panicking), case.SINK.left("/rie-neighbours"), case.SINK.left("/panic-probe")), (1, 2, 0)
        )

    def test_deadletter_answers_both_its_queues(self):
        self.sqs.send_message(QueueUrl=self.urls["deadletters"], MessageBody="garbage")
        self.sqs.send_message(QueueUrl=self.urls["redrive"], MessageBody=json.dumps(delivery("orders", "1")))
        with self.deadletter(self.dead) as deadletter:
            for kind in ("deadletters", "redrive"):
                self.assertEqual(deadletter.invoke(self.received(kind, 1)), {"batchItemFailures": []})
        [malformed] = self.objects(self.dead, "MALFORMED/")
        self.assertEqual(self.read(self.dead, malformed), b"garbage")
        [letters] = self.objects(self.dead, "ORDERS/ALL/")
        [dead] = json.loads(self.read(self.dead, letters))
        self.assertEqual((dead["id"], dead["deadletterreason"]), ("1", "HandlerFailed"))

    def test_deadletter_names_what_it_could_not_keep(self):
        self.sqs.send_message(QueueUrl=self.urls["deadletters"], MessageBody="garbage")
        batch = self.received("deadletters", 1)
        with self.deadletter("no-such-bucket") as deadletter:
            answer = deadletter.invoke(batch)
        failed = [{"itemIdentifier": record["messageId"]} for record in batch["Records"]]
        self.assertEqual(answer, {"batchItemFailures": failed})

    def test_wake_answers_its_schedule(self):
        due = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(minutes=1)
        key = f"parked/{due:%Y%m%dT%H%MZ}/orders.all/0.json"
        message = delivery("orders", "1")
        parked = {"v": 1, "deliveries": [message]}
        self.s3.put_object(Bucket=self.state, Key=key, Body=json.dumps(parked).encode())
        variables = {
            "DELIVERIES_QUEUE_URL": self.urls["deliveries"],
            "LINK_SETTINGS": LINK_SETTINGS,
            "NOTICES_TOPIC": "ops",
        }
        variables |= {"DEAD_LETTER_BUCKET": self.dead, "LOG_BUCKET": self.log}
        with self.run_function("wake", **variables) as wake:
            self.assertIsNone(wake.invoke(SCHEDULED))
        [record] = self.received("deliveries", 1)["Records"]
        self.assertEqual(json.loads(record["body"])["events"], message["events"])
        self.assertEqual(self.objects(self.state, "parked/"), [])

    def test_record_answers_its_queue_and_its_schedule(self):
        fixture = ROOT / "shared/core/src/delivery_log/fixtures/records-v1.json"
        self.sqs.send_message(QueueUrl=self.urls["records"], MessageBody=fixture.read_text())
        self.sqs.send_message(QueueUrl=self.urls["records"], MessageBody="garbage")
        with self.recording() as record:
            self.assertEqual(record.invoke(self.received("records", 2)), {"batchItemFailures": []})
            # A record of an event that was attempted, and one of the first second of all time.
            written = self.objects(self.log, "date=")
            self.assertEqual([key.rsplit("/", 1)[0] for key in written],
                             ["date=1970-01-01/hour=00", "date=2023-11-14/hour=22"])
            self.assertIsNone(record.invoke(SCHEDULED))
            self.assertIn("records not readable", record.logged())
        self.assertEqual(self.read(self.log, written[0])[:4], b"PAR1")

    def test_record_names_what_it_could_not_keep(self):
        fixture = ROOT / "shared/core/src/delivery_log/fixtures/records-v1.json"
        self.sqs.send_message(QueueUrl=self.urls["records"], MessageBody=fixture.read_text())
        batch = self.received("records", 1)
        with self.recording("no-such-bucket") as record:
            answer = record.invoke(batch)
        failed = [{"itemIdentifier": one["messageId"]} for one in batch["Records"]]
        self.assertEqual(answer, {"batchItemFailures": failed})

    def test_monitor_answers_its_schedule_within_its_time(self):
        queues = {
            "DELIVERIES_QUEUE_URL": self.urls["deliveries"],
            "DEADLETTERS_QUEUE_URL": self.urls["deadletters"],
        }
        settings = '{"SMTPStartThrottlingDelayInterval": "00:00:07"}'
        pressure = {
            "PRESSURE_PROFILE": "scaled",
            "PRESSURE_SETTINGS": settings,
            "PRESSURE_INTERVAL_SECONDS": "1",
        }
        variables = {**queues, **pressure, "NOTICES_TOPIC": "ops"}
        with self.run_function("monitor", timeout_secs=60, **variables) as monitor:
            self.assertIsNone(monitor.invoke(SCHEDULED))
            # Nothing waits, and CloudWatch would bill each metric.
            self.assertNotIn("CloudWatchMetrics", monitor.logged())
        state = json.loads(self.read(self.state, "pressure.json"))
        self.assertTrue(state["monitored"])
        self.assertEqual(state["firstStepMs"], 7000)

    def test_a_function_without_a_setting_names_it(self):
        with self.run_function("publish") as publish:
            publish.invoke_raw({})
            self.assertIn("DELIVERIES_QUEUE_URL", publish.logged())


def http_event(method, path, body=None, **headers):
    """A request as a function URL hands it over (payload format 2.0), its body in base64 as AWS has it for
    JSON of content types that it does not know."""
    event = {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": path,
        "rawQueryString": "",
        "headers": {"host": "x.lambda-url.us-east-1.on.aws", "content-type": "application/json", **headers},
        "requestContext": {
            "accountId": "anonymous",
            "apiId": "x",
            "domainName": "x.lambda-url.us-east-1.on.aws",
            "domainPrefix": "x",
            "http": {
                "method": method,
                "path": path,
                "protocol": "HTTP/1.1",
                "sourceIp": "127.0.0.1",
                "userAgent": "t",
            },
            "requestId": "1",
            "routeKey": "$default",
            "stage": "$default",
            "time": "21/Nov/2026:10:00:00 +0000",
            "timeEpoch": 1_795_255_200_000,
        },
        "isBase64Encoded": False,
    }
    if body is not None:
        event |= {"body": base64.b64encode(json.dumps(body).encode()).decode(), "isBase64Encoded": True}
    return event


def event_of_producer(topic, key, event):
    headers = {"content-type": case.CLOUD_EVENT, "aeg-sas-key": key}
    return http_event("POST", f"/topics/{topic}/events", event, **headers)


def text_of(answer):
    """The body of an answer, however it is carried."""
    body = answer.get("body") or ""
    return base64.b64decode(body).decode() if answer.get("isBase64Encoded") else body
