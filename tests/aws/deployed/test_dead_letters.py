"""What cannot be delivered: in the dead-letter bucket, where the AWS CLI and posthaste show the same."""

import json

import case
import waiting
from case import Case, cloud_event, delivery

AT_ONCE = {"delay": "PT0S"}

# Together more than publish sends message by message: it stores the event once (INLINE_FAN_OUT_BYTES_MAX).
SUBSCRIPTIONS, LARGE = 6, "x" * 900_000


class DeadLetters(Case):
    def test_a_400_lands_in_the_bucket_where_aws_and_posthaste_show_the_same(self):
        self.apply(deadLetter=AT_ONCE)
        self.sink.answer(self.path, 400)
        self.post_event(cloud_event("bad", data={"n": 1.5}))
        [key] = self.dead_letter_keys()
        bucket = self.stack.dead_letter_bucket
        listed = self.stack.aws("s3", "ls", "--recursive", f"s3://{bucket}/{self.topic.upper()}/")
        self.assertEqual([line.split()[3] for line in listed.splitlines()], [key])
        copied = self.stack.aws("s3", "cp", f"s3://{bucket}/{key}", "-")
        [dead] = json.loads(copied)
        self.assertEqual((dead["id"], dead["data"], dead["type"]), ("bad", {"n": 1.5}, "t"))
        members = ("deadletterreason", "deliveryattempts", "lastdeliveryoutcome", "lasthttpstatuscode")
        self.assertEqual(
            [dead[member] for member in members], ["UndeliverableDueToClientError", 1, "BadRequest", 400]
        )
        [shown] = self.stack.posthaste("dead-letters", "list", self.topic, "all")["deadLetters"]
        self.assertEqual((shown["object"], shown["id"], shown["status"]), (key, "bad", 400))
        self.assertEqual(self.stack.posthaste("dead-letters", "list", self.topic)["deadLetters"], [shown])
        self.assertEqual(self.stack.posthaste("dead-letters", "show", key), json.loads(copied))

    def test_the_last_attempt_makes_a_dead_letter(self):
        quickly = {"maxDeliveryAttempts": 2, "schedule": ["PT0S"], "waitFloors": {"default": "PT0S"}}
        self.apply(deadLetter=AT_ONCE, retryPolicy=quickly)
        self.sink.answer(self.path, 500, 500)
        self.post_event(cloud_event("1"))
        [dead] = self.dead_letters()
        self.assertEqual(
            (dead["deadletterreason"], dead["deliveryattempts"]), ("MaxDeliveryAttemptsExceeded", 2)
        )

    def test_an_event_that_was_stored_is_whole_in_its_dead_letter(self):
        paths = {f"s{n}": f"{self.path}/{n}" for n in range(SUBSCRIPTIONS)}
        self.apply_all(
            {
                name: {"endpoint": {"url": self.sink.url(path)}, "deadLetter": AT_ONCE}
                for name, path in paths.items()
            }
        )
        self.sink.answer(paths["s1"], 400)
        event = cloud_event("1", data=LARGE)
        stored_before = self.stored()
        self.post_event(event)
        self.assertEqual(self.stored(), stored_before + 1)
        [dead] = self.dead_letters("s1")
        self.assertEqual((dead["id"], dead["data"]), (event["id"], event["data"]))

    def test_a_dead_letter_that_its_bucket_refuses_is_written_when_it_takes_it(self):
        self.apply(deadLetter=AT_ONCE)
        s3, bucket = self.stack.client("s3"), self.stack.dead_letter_bucket
        refusal = {
            "Effect": "Deny", "Principal": "*", "Action": "s3:PutObject",
            "Resource": f"arn:aws:s3:::{bucket}/{self.topic.upper()}/*",
        }
        s3.put_bucket_policy(
            Bucket=bucket, Policy=json.dumps({"Version": "2012-10-17", "Statement": [refusal]})
        )
        self.sink.answer(self.path, 400)
        case.CAUSED.add(f"{self.topic.upper()}/ALL/")
        self.post_and_wait_for_a_delayed_dead_letter()
        s3.delete_bucket_policy(Bucket=bucket)
        [dead] = self.dead_letters()
        self.assertEqual(dead["deadletterreason"], "UndeliverableDueToClientError")

    def test_a_dead_letter_waits_for_its_neighbours_in_the_queue(self):
        self.apply()
        self.sink.answer(self.path, 400)
        self.post_and_wait_for_a_delayed_dead_letter()

    def test_garbage_in_the_delivery_queue_is_kept_byte_for_byte(self):
        garbage = '{"v":1, "not ours": "zoë \t"} ' + self.topic
        self.send("DeliveriesQueueUrl", garbage)
        self.assertEqual(self.malformed(garbage), garbage.encode())

    def test_a_bad_message_does_not_harm_its_neighbours(self):
        self.apply()
        bodies = [json.dumps(delivery(self.topic, f"e{n}")) for n in range(9)]
        bodies.insert(4, f"garbage of {self.topic}")
        entries = [{"Id": str(n), "MessageBody": body} for n, body in enumerate(bodies)]
        queue = self.stack.outputs["DeliveriesQueueUrl"]
        sent = self.stack.client("sqs").send_message_batch(QueueUrl=queue, Entries=entries)
        self.assertEqual(len(sent["Successful"]), 10)
        arrived = [json.loads(received.body)["id"] for received in self.sink.take(self.path, 9)]
        self.assertEqual(sorted(arrived), [f"e{n}" for n in range(9)])
        self.malformed(bodies[4])

    def test_the_redrive_queue_is_emptied_as_handler_failed(self):
        self.apply()
        self.send("RedriveQueueUrl", json.dumps(delivery(self.topic, "1")))
        [dead] = self.dead_letters()
        self.assertEqual((dead["id"], dead["deadletterreason"]), ("1", "HandlerFailed"))
        waiting.until(
            lambda: self.count("RedriveQueueUrl", "") + self.count("RedriveQueueUrl", "NotVisible") == 0,
            "the redrive queue to be empty",
        )

    def test_garbage_in_the_redrive_queue_is_kept_byte_for_byte(self):
        garbage = f"\N{SNOWMAN} {self.topic}"
        self.send("RedriveQueueUrl", garbage)
        self.assertEqual(self.malformed(garbage), garbage.encode())

    def post_and_wait_for_a_delayed_dead_letter(self):
        before = self.count("DeadLettersQueueUrl", "Delayed")
        self.post_event(cloud_event("1"))
        waiting.until(
            lambda: self.count("DeadLettersQueueUrl", "Delayed") > before, "a dead letter that waits"
        )

    def count(self, queue, kind):
        """How many messages of a kind a queue says it has."""
        name = f"ApproximateNumberOfMessages{kind}"
        sqs, url = self.stack.client("sqs"), self.stack.outputs[queue]
        return int(sqs.get_queue_attributes(QueueUrl=url, AttributeNames=[name])["Attributes"][name])

    def malformed(self, text):
        """The object under MALFORMED/ that holds this text, which is found by being looked at."""
        case.CAUSED.add("not a delivery message")
        bucket = self.stack.dead_letter_bucket

        def found():
            kept = (self.stack.read(bucket, key) for key in self.stack.objects(bucket, "MALFORMED/"))
            return next((one for one in kept if one == text.encode()), None)

        return waiting.until(found, f"{text!r} under MALFORMED/")
