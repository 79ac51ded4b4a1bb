"""`posthaste doctor` against a stack: what is well, a queue that somebody has changed, and one that is gone."""

import json

from case import Case
from stack import Failed

QUEUES = {"deliveries", "deliveries-slow", "deadletters", "records", "redrive"}

# The emulator has the names and the network of this machine: the sink is an address that is open here.
OUTSIDE = {"server", "ready", "clock", "key", "version"}


class Doctor(Case):
    def checks(self, *arguments):
        """Every check, also where some failed."""
        try:
            answer = self.stack.posthaste("doctor", *arguments)
        except Failed as failed:
            self.assertEqual(failed.code, 1)
            answer = json.loads(failed.output)
        return answer["checks"]

    def queue(self, name):
        """The check of a queue."""
        [found] = [one for one in self.checks() if one["check"] == "queue" and one["of"].endswith(f"-{name}")]
        return found

    def test_a_stack_that_is_well_has_no_failed_check(self):
        self.apply()
        before = {bucket: self.stack.objects(bucket) for bucket in (self.stack.dead_letter_bucket,)}
        checks = self.checks("--endpoints")
        # What others publish waits and presses, and their endpoints may be closed.
        checks = [one for one in checks if one["check"] not in ("waiting", "pressure")]
        endpoints = [one for one in checks if one["check"] == "endpoint"]
        wrong = [one for one in checks if one["result"] not in ("ok", "unknown") and one not in endpoints]
        self.assertEqual(wrong, [])
        results = {(one["check"], one["of"]): one["result"] for one in checks}
        for name in OUTSIDE | {"store", "queue"}:
            found = {result for (check, _), result in results.items() if check == name}
            self.assertEqual(found, {"ok"}, name)
        queues = {of.removeprefix("posthaste-") for check, of in results if check == "queue"}
        self.assertEqual(queues, QUEUES)
        sink = [one for one in endpoints if one["of"].startswith(self.sink.url(" "))]
        self.assertEqual([one["result"] for one in sink], ["ok"], checks)
        self.assertEqual(self.sink.left(self.path), 0)
        self.assertEqual({bucket: self.stack.objects(bucket) for bucket in before}, before)
        self.assertNotIn("validating/doctor", self.stack.objects(self.stack.state_bucket, "validating/"))

    def test_a_queue_that_was_changed_is_named_with_what_differs(self):
        sqs = self.stack.client("sqs")
        url = self.stack.outputs["RedriveQueueUrl"]
        sqs.set_queue_attributes(QueueUrl=url, Attributes={"VisibilityTimeout": "30"})
        try:
            changed = self.queue("redrive")
        finally:
            sqs.set_queue_attributes(QueueUrl=url, Attributes={"VisibilityTimeout": "360"})
        self.assertEqual(
            (changed["result"], changed["found"]),
            ("failed", "its visibility timeout is 30 s, and was made 360 s"),
        )
        self.assertEqual(self.queue("redrive")["result"], "ok")
