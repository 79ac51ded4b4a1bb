"""The queue of slow deliveries: what waits in it is delivered, ends and is given up as from the other delivery
queue, and it stays when its stack goes or becomes one that does not know it.

Nobody here is slow: messages are put into the queue as deliver would put them."""

import json

import case
import waiting
from case import Case, cloud_event, delivery
from former_template import before_the_slow_queue
from installation import CODE_BUCKET, TEMPLATE, Installation, Refused

SLOW = "deliveries-slow"

# The template of before the queue, beside the usual one.
BEFORE = "before-the-slow-queue.json"


class SlowQueue(Case):
    def send_slow(self, body):
        self.send("DeliveriesSlowQueueUrl", body)

    def count(self, kind, queue="DeliveriesSlowQueueUrl"):
        """How many messages of a kind a queue says it has."""
        name = f"ApproximateNumberOfMessages{kind}"
        url = self.stack.outputs[queue]
        answer = self.stack.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=[name])
        return int(answer["Attributes"][name])

    def assert_is_empty(self):
        kinds = ("", "NotVisible", "Delayed")
        waiting.until(lambda: not any(map(self.count, kinds)), "an empty queue of slow deliveries")

    def test_a_slow_delivery_arrives_once_and_leaves_its_queue(self):
        self.apply()
        self.send_slow(json.dumps(delivery(self.topic, "1")))
        [received] = self.sink.take(self.path)
        self.assertEqual(json.loads(received.body)["id"], "1")
        self.assert_is_empty()
        self.assertEqual(self.sink.left(self.path), 0)

    def test_a_slow_delivery_that_fails_is_tried_again(self):
        self.apply(retryPolicy={"schedule": ["PT1S"]})
        self.sink.answer(self.path, 503)
        self.send_slow(json.dumps(delivery(self.topic, "1")))
        first, second = self.sink.take(self.path, 2)
        counts = [one.headers["aeg-delivery-count"] for one in (first, second)]
        self.assertEqual(counts, ["0", "1"])
        self.assertEqual(first.headers["webhook-id"], second.headers["webhook-id"])
        self.assert_is_empty()

    def test_a_slow_delivery_that_is_refused_becomes_a_dead_letter(self):
        self.apply()
        self.sink.answer(self.path, 400)
        before = self.count("Delayed", "DeadLettersQueueUrl")
        self.send_slow(json.dumps(delivery(self.topic, "1")))
        waiting.until(
            lambda: self.count("Delayed", "DeadLettersQueueUrl") > before, "a dead letter that waits"
        )
        self.assert_is_empty()

    def test_the_slow_queue_redrives_to_the_redrive_queue_that_lists_it(self):
        attributes = {
            queue: self.attributes(output) for queue, output in (
                (SLOW, "DeliveriesSlowQueueUrl"), ("deliveries", "DeliveriesQueueUrl"),
                ("redrive", "RedriveQueueUrl"),
            )
        }
        redrive = json.loads(attributes[SLOW]["RedrivePolicy"])
        self.assertEqual(redrive, json.loads(attributes["deliveries"]["RedrivePolicy"]))
        self.assertEqual(redrive["deadLetterTargetArn"], attributes["redrive"]["QueueArn"])
        sources = json.loads(attributes["redrive"]["RedriveAllowPolicy"])["sourceQueueArns"]
        self.assertIn(attributes[SLOW]["QueueArn"], sources)
        for name in ("VisibilityTimeout", "MessageRetentionPeriod", "MaximumMessageSize", "SqsManagedSseEnabled"):
            self.assertEqual(attributes[SLOW].get(name), attributes["deliveries"].get(name), name)

    def attributes(self, output):
        url = self.stack.outputs[output]
        found = self.stack.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=["All"])
        return found["Attributes"]


class SlowQueueInTheLifeOfAStack(Case):
    def setUp(self):
        super().setUp()
        s3 = self.stack.client("s3")
        template = json.loads(s3.get_object(Bucket=CODE_BUCKET, Key=TEMPLATE)["Body"].read())
        s3.put_object(Bucket=CODE_BUCKET, Key=BEFORE, Body=json.dumps(before_the_slow_queue(template)).encode())

    def declare(self, installation):
        declared = {"topics": {"orders": {"subscriptions": {
            "all": {"endpoint": {"url": self.sink.url(self.path)}},
        }}}}
        installation.posthaste("apply", "--file", "-", text=json.dumps(declared))

    def assert_arrives(self, *ids):
        received = self.sink.take(self.path, len(ids))
        self.assertEqual(sorted(json.loads(one.body)["id"] for one in received), sorted(ids))

    def assert_is_read(self, installation, number):
        """What is put into the queue arrives."""
        installation.send(SLOW, delivery("orders", f"slow-{number}"))
        self.assert_arrives(f"slow-{number}")
        waiting.until(lambda: installation.waiting_messages(SLOW) == 0, "an empty queue of slow deliveries")

    def readers(self, installation):
        """Whether each delivery queue is read, by the ends of their names."""
        mappings = installation.deliver_mappings()
        return {
            one["EventSourceArn"].rpartition(":")[2].removeprefix(f"{installation.name}-"): one["State"]
            for one in mappings
        }

    def test_an_update_from_the_template_of_before_and_the_way_back_lose_nothing(self):
        stack = Installation("updated", template=BEFORE)
        self.declare(stack)
        self.assertEqual(self.readers(stack), {"deliveries": "Enabled"})
        stack.update(TEMPLATE)
        self.assertEqual(self.readers(stack), {"deliveries": "Enabled", SLOW: "Enabled"})
        self.assert_is_read(stack, "1")
        # The documented steps of the way back.
        stack.update(DeliverSlow="drain")
        self.assert_is_read(stack, "2")
        stack.update(BEFORE)
        self.assertEqual(self.readers(stack), {"deliveries": "Enabled"})
        stack.publish("orders", cloud_event("before"))
        self.assert_arrives("before")
        # What somebody left in it by going back without them waits for the next update.
        stack.send(SLOW, delivery("orders", "left"))
        stack.update(TEMPLATE)
        self.assert_arrives("left")
        self.assert_is_read(stack, "3")
        stack.delete()

    def test_a_queue_that_is_off_is_not_read_and_keeps_its_messages(self):
        stack = Installation("off")
        self.declare(stack)
        stack.update(DeliverSlow="off")
        self.assertEqual(self.readers(stack), {"deliveries": "Enabled", SLOW: "Disabled"})
        stack.send(SLOW, delivery("orders", "1"))
        stack.publish("orders", cloud_event("quick"))
        self.assert_arrives("quick")
        self.assertEqual(stack.waiting_messages(SLOW), 1)
        stack.update(DeliverSlow="on")
        self.assert_arrives("1")
        stack.delete()

    def test_an_update_that_fails_leaves_the_queue_with_what_is_in_it(self):
        case.CAUSED.add("Failed to provision Failing ")
        stack = Installation("torn", template=BEFORE)
        self.declare(stack)
        with self.assertRaises(Refused):
            stack.update(self.template_that_fails_at_the_end())
        self.assertEqual(self.readers(stack), {"deliveries": "Enabled"})
        stack.send(SLOW, delivery("orders", "moved"))
        stack.update(TEMPLATE)
        self.assert_arrives("moved")
        stack.delete()

    def template_that_fails_at_the_end(self):
        """The name of one beside the usual one, with a queue that is made last and that SQS refuses."""
        s3, name = self.stack.client("s3"), "failing-after-the-slow-queue.json"
        template = json.loads(s3.get_object(Bucket=CODE_BUCKET, Key=TEMPLATE)["Body"].read())
        template["Resources"]["Failing"] = {
            "Type": "AWS::SQS::Queue", "DependsOn": "DeliverFunction",
            "Properties": {"VisibilityTimeout": 50_000},
        }
        s3.put_object(Bucket=CODE_BUCKET, Key=name, Body=json.dumps(template).encode())
        return name

    def test_what_a_stack_of_before_left_is_adopted_and_gets_the_queue(self):
        before = Installation("early", template=BEFORE)
        self.declare(before)
        sources = self.sources(before)
        adoption = before.adoption()
        before.delete()
        adopting = Installation("early", **adoption)
        self.assertEqual(self.sources(adopting), [*sources, adopting.queue_attributes(SLOW)["QueueArn"]])
        self.assert_is_read(adopting, "1")
        adopting.switch_deliver(False)
        adopting.send(SLOW, delivery("orders", "left"))
        adopting.delete()
        last = Installation("late", **adoption)
        self.assert_arrives("left")
        self.assert_is_read(last, "2")
        last.delete()

    def sources(self, installation):
        """The queues that may redrive to the redrive queue."""
        return json.loads(installation.queue_attributes("redrive")["RedriveAllowPolicy"])["sourceQueueArns"]


class SlowLane(Case):
    def setUp(self):
        super().setUp()
        self.slow, self.quick, self.published = f"{self.path}/slow", f"{self.path}/quick", []

    def test_deliveries_of_a_slow_endpoint_leave_the_quick_queue_and_arrive_once(self):
        stack = Installation("lane", SlowAfter="1")
        declared = {"topics": {"orders": {"subscriptions": {
            "slow": self.subscription(self.slow, "slow"), "quick": self.subscription(self.quick, "quick"),
        }}}}
        stack.posthaste("apply", "--file", "-", text=json.dumps(declared))
        # Requests of one invocation are open for longer than they may take.
        self.sink.hold(self.slow)
        self.publish(stack, 6)
        waiting.until(lambda: self.lanes(stack).get("slowUntil"), "an endpoint that is slow")
        self.sink.release(self.slow)
        # Once every deliver knows, what comes goes into the other queue, and others do not wait with it.
        stack.switch_deliver(False, SLOW)
        waiting.until(lambda: self.publish(stack, 3) and stack.waiting_messages(SLOW) >= 3, "slow deliveries")
        stack.publish("orders", [cloud_event(f"quick-{number}", type="quick") for number in range(3)])
        self.assertEqual(self.ids(self.quick, 3), ["quick-0", "quick-1", "quick-2"])
        stack.switch_deliver(True, SLOW)
        self.assert_all_arrive_once(stack)
        # With the drain step nothing more goes there, however slow the endpoint is.
        stack.update(DeliverSlow="drain")
        stack.switch_deliver(False, SLOW)
        self.publish(stack, 3)
        self.assert_all_arrive_once(stack)
        stack.delete()

    def subscription(self, path, kind):
        return {"endpoint": {"url": self.sink.url(path)}, "filter": {"includedEventTypes": [kind]}}

    def publish(self, stack, count):
        """Publishes so many more events for the slow endpoint, in one request."""
        first = len(self.published)
        ids = [f"slow-{number:04}" for number in range(first, first + count)]
        stack.publish("orders", [cloud_event(identity, type="slow") for identity in ids])
        self.published += ids
        return ids

    def lanes(self, stack):
        """The object that says which endpoints are slow."""
        bucket = stack.outputs["StateBucketName"]
        is_there = "lanes.json" in self.stack.objects(bucket)
        return json.loads(self.stack.read(bucket, "lanes.json")) if is_there else {}

    def assert_all_arrive_once(self, stack):
        """All that was published and not yet looked at, whichever queue it took."""
        self.assertEqual(self.ids(self.slow, len(self.published)), self.published)
        waiting.until(lambda: stack.waiting_messages(SLOW) == 0, "an empty queue of slow deliveries")
        self.assertEqual(self.sink.left(self.slow), 0)
        self.published = []

    def ids(self, path, count):
        """The ids of the next events at an endpoint, sorted."""
        return sorted(json.loads(one.body)["id"] for one in self.sink.take(path, count))
