"""The delivery log: attempts of real deliveries, in the files that record writes into the bucket, as DuckDB
reads them. The files are fetched first: DuckDB's own reader of S3 would be a download."""

import json
import pathlib
import tempfile
from datetime import UTC, datetime, timedelta

import duckdb

import waiting
from case import Case, cloud_event
from test_schedules import SCHEDULED

# Longer than it takes until records are counted, so that nothing is tried again before.
LATER_SECS = 75
LATER = {"schedule": [f"PT{LATER_SECS}S"], "waitFloors": {"503": "PT0S", "default": "PT0S"}}

# Events that are tried again: fewer than make posthaste pause the endpoint.
RETRIED = 3

QUICKLY = {"schedule": ["PT1S"], "waitFloors": {"503": "PT0S", "default": "PT0S"}}


class DeliveryLog(Case):
    def log(self, query):
        """The rows of a query over `log`, all files as they lie in the bucket."""
        with tempfile.TemporaryDirectory() as folder:
            for key in self.stack.objects(self.stack.log_bucket, "date="):
                path = pathlib.Path(folder, key)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(self.stack.read(self.stack.log_bucket, key))
            types = "{'date': DATE, 'hour': VARCHAR}"
            options = f"hive_partitioning = true, union_by_name = true, hive_types = {types}"
            source = f"read_parquet('{folder}/**/*.parquet', {options})"
            return duckdb.sql(query.replace("FROM log", f"FROM {source}")).fetchall()

    def attempts(self, count):
        """The attempts of the test's topic, once there are so many."""
        query = (
            "SELECT event_id, attempt, any_value(status), any_value(result), any_value(payload)"
            f" FROM log WHERE topic = '{self.topic}' AND kind = 'attempt'"
            " GROUP BY record_id, event_id, attempt ORDER BY event_id, attempt"
        )

        def enough():
            if not self.stack.objects(self.stack.log_bucket, "date="):
                return None
            rows = self.log(query)
            return rows if len(rows) >= count else None

        return waiting.until(enough, f"{count} attempts of {self.topic} in the log")

    def test_attempts_are_in_the_log_with_their_answers(self):
        self.apply(retryPolicy=QUICKLY)
        self.post_event(cloud_event("good", data={"n": 1}))
        self.sink.take(self.path)
        self.sink.answer(self.path, 503)
        self.post_event(cloud_event("late", data={"n": 2}))
        self.sink.take(self.path)
        self.sink.take(self.path)
        rows = self.attempts(3)
        found = [(event, attempt, status, result) for event, attempt, status, result, _ in rows]
        self.assertEqual(
            found,
            [("good", 1, 200, "delivered"), ("late", 1, 503, "retry"), ("late", 2, 200, "delivered")],
        )
        self.assertEqual(json.loads(rows[0][-1])["data"], {"n": 1})
        self.assertIsNone(rows[2][-1], "the payload is kept once")

    def asked(self, *command):
        """The ids of the records that a list of the program's has."""
        return {record["recordId"] for record in self.stack.posthaste(*command)["records"]}

    def counted(self, condition):
        """The ids of the test's records in the files."""
        query = f"SELECT DISTINCT record_id FROM log WHERE topic = '{self.topic}' AND {condition}"
        return {identity for (identity,) in self.log(query)}

    def test_manage_answers_what_lies_in_the_files(self):
        # No id with a slash: the emulator hands on a decoded path, and a function URL of AWS does not.
        self.apply(retryPolicy=QUICKLY)
        self.sink.answer(self.path, 503)
        for identity in ("late", "good", "a b"):
            self.post_event(cloud_event(identity))
            self.sink.take(self.path)
        self.sink.take(self.path)
        self.attempts(4)
        for result, count in (("delivered", 3), ("retry", 1)):
            listed = self.asked("events", "list", self.topic, "--result", result)
            self.assertEqual(listed, self.counted(f"result = '{result}'"))
            self.assertEqual(len(listed), count)
        attempts = self.asked("attempts", "list", self.topic, "all")
        self.assertEqual(attempts, self.counted("kind = 'attempt'"))
        for identity, count in (("late", 2), ("good", 1), ("a b", 1)):
            (delivery,) = self.stack.posthaste("events", "show", self.topic, identity)["deliveries"]
            self.assertEqual((delivery["state"], len(delivery["attempts"])), ("delivered", count))
            self.assertEqual(len(self.counted(f"event_id = '{identity}'")), count)
            webhook_id = delivery["attempts"][0]["webhookId"]
            of_request = self.asked("events", "list", self.topic, "--webhook-id", webhook_id)
            self.assertEqual(of_request, self.counted(f"webhook_id = '{webhook_id}'"))
            # The days of the bucket's lifecycle, as the template tells manage.
            until = datetime.fromisoformat(delivery["resendableUntil"])
            self.assertEqual(until - datetime.fromisoformat(delivery["attempts"][0]["at"]), timedelta(days=7))

    def waits(self):
        """What manage says of the events that wait for the subscription."""
        return self.stack.posthaste("subscriptions", "show", self.topic, "all")["waiting"]

    def test_what_waits_in_the_queue_is_counted_from_records(self):
        self.apply(retryPolicy=LATER)
        self.sink.answer(self.path, *[503] * RETRIED)
        for number in range(RETRIED):
            self.post_event(cloud_event(f"w{number}"))
            self.sink.take(self.path)

        def retried():
            waits = self.waits()
            return waits if waits["count"] == RETRIED else None

        waits = waiting.until(retried, f"{RETRIED} events that wait in the queue")
        self.assertEqual((waits["queued"], waits["parked"], waits["held"]), (RETRIED, 0, 0))
        age = datetime.now(UTC) - datetime.fromisoformat(waits["countedUntil"])
        self.assertLess(age, timedelta(minutes=5))
        for _ in range(RETRIED):
            self.sink.take(self.path, patience_secs=LATER_SECS + waiting.PATIENCE_SECS)
        waiting.until(lambda: self.waits()["count"] == 0, "no event that waits")

    def test_the_schedule_merges_what_was_written(self):
        answer = self.stack.client("lambda").invoke(
            FunctionName=self.stack.function("record"), Payload=json.dumps(SCHEDULED).encode()
        )
        self.assertNotIn("FunctionError", answer)
        self.assertEqual(answer["Payload"].read(), b"null")
