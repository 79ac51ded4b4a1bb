"""What happens once a minute, asked for at once: the functions are invoked with the event the schedule
sends."""

import datetime
import json
import time

import waiting
from case import Case, cloud_event, delivery

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
        # The minute comes by moving the object, not by waiting for it.
        due = parked.replace(parked.split("/")[1], minute(datetime.timedelta(minutes=-1)))
        bucket, s3 = self.stack.state_bucket, self.stack.client("s3")
        s3.copy_object(Bucket=bucket, Key=due, CopySource={"Bucket": bucket, "Key": parked})
        s3.delete_object(Bucket=bucket, Key=parked)
        # wake may rest until the minute that it saw, unless a signal says that there is work.
        until = json.dumps({"until": int((time.time() + 60) * 1000)})
        s3.put_object(Bucket=bucket, Key="signals/wake.json", Body=until.encode())
        self.invoke("wake", "RequestResponse")
        [second] = self.sink.take(self.path)
        self.assertEqual((second.headers["aeg-delivery-count"], second.body), ("1", first.body))
        self.assertEqual(second.headers["webhook-id"], first.headers["webhook-id"])
        waiting.until(lambda: not self.parked(), "the parked object to be deleted")

    def parked(self):
        """The key of this topic's parked object."""
        keys = self.stack.objects(self.stack.state_bucket, "parked/")
        return next((key for key in keys if f"/{self.topic}." in key), None)


def minute(later):
    """A minute as keys have it."""
    return (datetime.datetime.now(datetime.timezone.utc) + later).strftime("%Y%m%dT%H%MZ")
