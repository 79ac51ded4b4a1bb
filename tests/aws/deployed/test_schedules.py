"""What happens once a minute, asked for at once: the functions are invoked with the event the schedule
sends."""

import datetime
import json
import time

import waiting
from case import Case, cloud_event, delivery
from stack import Failed

SCHEDULED = {"version": "0", "source": "aws.events", "detail-type": "Scheduled Event", "detail": {}}

# Longer than what goes unreported, and far from where pressure begins.
WAITED_SECS = 15


class Schedules(Case):
    def invoke(self, function, kind):
        answer = self.stack.client("lambda").invoke(
            FunctionName=self.stack.function(function),
            InvocationType=kind,
            Payload=json.dumps(SCHEDULED).encode(),
        )
        self.assertNotIn("FunctionError", answer)

    def test_the_monitor_writes_the_pressure_and_posthaste_shows_it(self):
        # It may sample for most of a minute, so nobody waits for its end.
        self.invoke("monitor", "Event")
        waiting.until(lambda: self.stack.objects(self.stack.state_bucket, "pressure.json"), "pressure.json")
        shown = self.stack.posthaste("pressure")
        self.assertEqual((shown["monitored"], shown["level"], shown["refusedTiers"]), (True, "normal", []))
        readings = {one["resource"]: one["reading"] for one in shown["resources"]}
        self.assertIn("submission-queue", readings)

    def test_deliver_reports_to_the_monitor_how_long_a_backlog_has_waited(self):
        self.apply()
        self.send("DeliveriesQueueUrl", json.dumps(delivery(self.topic, "1", waited_secs=WAITED_SECS)))
        self.sink.take(self.path)
        reports = waiting.until(
            lambda: self.stack.objects(self.stack.state_bucket, "drain/"), "a report of drain"
        )
        waited = [json.loads(self.stack.read(self.stack.state_bucket, key))["waitedMaxMs"] for key in reports]
        self.assertGreaterEqual(max(waited), WAITED_SECS * 1000)

    def test_the_monitor_sees_a_backlog_and_how_long_it_has_waited(self):
        self.apply()
        # The mapping sleeps, so that something stays visible; the report is as deliver writes it.
        mapping = self.mapping_of("deliver")
        mapping(False)
        self.addCleanup(mapping, True)
        report = {"v": 1, "settled": 1, "windowMs": 1000, "waitedMaxMs": WAITED_SECS * 1000}
        key = f"drain/{self.topic}.json"
        body = json.dumps(report).encode()
        self.stack.client("s3").put_object(Bucket=self.stack.state_bucket, Key=key, Body=body)
        self.post_event(cloud_event("1"))
        self.invoke("monitor", "Event")

        def readings():
            shown = self.stack.posthaste("pressure")["resources"]
            return {one["resource"]: one["reading"] for one in shown}

        waiting.until(lambda: readings().get("submission-queue", 0) > 0, "the monitor to count a message")
        self.assertGreaterEqual(readings()["drain-time"], WAITED_SECS)
        mapping(True)
        self.sink.take(self.path)

    def mapping_of(self, function):
        """A switch of the event source mapping by which a function reads its first queue."""
        functions = self.stack.client("lambda")
        name = self.stack.function(function)
        mapping, *_ = (
            one for one in functions.list_event_source_mappings(FunctionName=name)["EventSourceMappings"]
            if not one["EventSourceArn"].endswith("-slow")
        )
        return lambda enabled: functions.update_event_source_mapping(UUID=mapping["UUID"], Enabled=enabled)

    def test_wake_releases_a_parked_delivery_when_its_minute_has_come(self):
        self.apply(retryPolicy={"schedule": ["PT16M"]})
        self.sink.answer(self.path, 503)
        self.post_event(cloud_event("1"))
        [first] = self.sink.take(self.path)
        parked = waiting.until(self.parked, "a parked delivery")
        self.assertGreater(parked.split("/")[1], minute(datetime.timedelta(minutes=15)))
        self.invoke("wake", "RequestResponse")
        self.assertEqual(self.parked(), parked)
        self.make_due(parked)
        self.invoke("wake", "RequestResponse")
        [second] = self.sink.take(self.path)
        self.assertEqual((second.headers["aeg-delivery-count"], second.body), ("1", first.body))
        self.assertEqual(second.headers["webhook-id"], first.headers["webhook-id"])
        waiting.until(lambda: not self.parked(), "the parked object to be deleted")

    def test_wake_releases_a_scheduled_event_and_ends_one_that_was_taken_back(self):
        self.apply()
        bucket, s3 = self.stack.state_bucket, self.stack.client("s3")
        at = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=30)
        later = {"posthaste-not-before": at.strftime("%Y-%m-%dT%H:%M:%SZ")}
        # Too large for a message, so that its text waits in an object of its own.
        self.post(json.dumps(cloud_event("kept", data="x" * 200_000)).encode(), **later)
        self.post(json.dumps(cloud_event("taken-back")).encode(), **later)
        objects = self.all_parked()
        self.assertEqual(len(objects), 2)
        self.assertTrue(self.stack.objects(bucket, "scheduled/"))
        self.invoke("wake", "RequestResponse")
        self.assertEqual(self.all_parked(), objects)
        self.stack.posthaste("events", "cancel", self.topic, "taken-back")
        self.assertTrue(self.stack.objects(bucket, f"cancelled/{self.topic}/"))
        for key in objects:
            self.make_due(key)
        self.invoke("wake", "RequestResponse")
        [received] = self.sink.take(self.path)
        self.assertEqual(json.loads(received.body)["id"], "kept")
        self.assertEqual(json.loads(received.body)["data"], "x" * 200_000)
        waiting.until(lambda: not self.all_parked(), "the parked objects to be deleted")
        waiting.until(lambda: self.state_of("taken-back") == "dropped", "the record of what was taken back")
        self.assertEqual(self.sink.left(self.path), 0)

    def state_of(self, event):
        """The state of an event's delivery, once the log has a record of it."""
        try:
            shown = self.stack.posthaste("events", "show", self.topic, event)
        except Failed:
            return None
        return shown["deliveries"][0]["state"]

    def make_due(self, parked):
        """The minute comes by moving the object, not by waiting for it."""
        bucket, s3 = self.stack.state_bucket, self.stack.client("s3")
        due = parked.replace(parked.split("/")[1], minute(datetime.timedelta(minutes=-1)))
        s3.copy_object(Bucket=bucket, Key=due, CopySource={"Bucket": bucket, "Key": parked})
        s3.delete_object(Bucket=bucket, Key=parked)
        # wake may rest until the minute that it saw, unless a signal says that there is work.
        until = json.dumps({"until": int((time.time() + 60) * 1000)})
        s3.put_object(Bucket=bucket, Key="signals/wake.json", Body=until.encode())

    def parked(self):
        """The key of this topic's parked object."""
        return next(iter(self.all_parked()), None)

    def all_parked(self):
        """The keys of this topic's parked objects."""
        keys = self.stack.objects(self.stack.state_bucket, "parked/")
        return [key for key in keys if f"/{self.topic}." in key]


def minute(later):
    """A minute as keys have it."""
    return (datetime.datetime.now(datetime.timezone.utc) + later).strftime("%Y%m%dT%H%MZ")
