"""A stack is deleted with acknowledged events in its queue and in its state bucket, and another delivers
them: of the same name, of another name, and adopted from one that had adopted. And none works on the state
of a stack that lives.

The emulator keeps to `DeletionPolicy` and runs the custom resource as AWS does. It does not know that a name
is taken: on AWS a stack of the same name that adopts nothing fails because its queues exist, and here nobody
tries."""

import datetime
import json

import case
import waiting
from case import Case, cloud_event
from installation import CODE_BUCKET, TEMPLATE, Installation, Refused, all_events
from test_schedules import minute

# The last is the queue of slow deliveries, which a stack that adopts has too.
KEPT = ["AWS::S3::Bucket"] * 3 + ["AWS::SQS::Queue"] * 4 + ["Custom::Queue"]

# Longer than what waits in a queue, so that it is parked.
LATER = {"schedule": ["PT16M"]}


class Lifecycle(Case):
    def test_nothing_acknowledged_is_lost_with_the_stack(self):
        first = Installation("lived")
        declared = {"topics": {"orders": {"subscriptions": {
            "all": {"endpoint": {"url": self.sink.url(self.path)}, "retryPolicy": LATER},
        }}}}
        first.posthaste("apply", "--file", "-", text=json.dumps(declared))
        self.leave_behind(first, "1")
        self.assertEqual(first.delete(), KEPT)
        self.assert_waits(first, "1")

        again = Installation("lived", **first.adoption())
        self.assertEqual(again.adoption(), first.adoption())
        self.assert_delivers(again, "1")
        self.leave_behind(again, "2")
        # Whatever else is not its own it neither deletes nor keeps.
        self.assertEqual(again.delete(), ["Custom::Queue"])
        self.assert_waits(again, "2")

        renamed = Installation("renamed", **again.adoption())
        self.assertEqual(renamed.adoption(), first.adoption())
        self.assertEqual(renamed.posthaste("topics", "list")["topics"][0]["name"], "orders")
        self.assert_delivers(renamed, "2")
        self.assert_is_alone(renamed)
        self.leave_behind(renamed, "3")
        self.assertEqual(renamed.delete(), ["Custom::Queue"])
        self.assert_delivers(last := Installation("last", **renamed.adoption()), "3")
        last.delete()

    def test_a_first_deployment_that_fails_leaves_a_bucket_and_a_queue_with_nothing_in_them(self):
        case.CAUSED.add("Failed to provision Failing ")
        with self.assertRaises(Refused):
            Installation("unlucky", template=self.template_that_fails_at_the_end())
        cloudformation = self.stack.client("cloudformation")
        [failed] = cloudformation.describe_stacks(StackName="unlucky")["Stacks"]
        self.assertEqual(failed["StackStatus"], "ROLLBACK_COMPLETE")
        events = all_events(cloudformation, "unlucky")
        status = {(one["LogicalResourceId"], one["ResourceStatus"]) for one in events}
        self.assertIn(("StateClaim", "CREATE_COMPLETE"), status)
        left = {one["LogicalResourceId"]: one["PhysicalResourceId"] for one in events
                if one["ResourceStatus"] == "DELETE_SKIPPED"}
        self.assertEqual(list(left), ["StateBucket", "DeliveriesSlow"])
        self.assertEqual(self.stack.objects(left["StateBucket"]), ["owner.json"])
        [queue] = self.stack.client("sqs").list_queues(QueueNamePrefix="unlucky-")["QueueUrls"]
        self.assertTrue(queue.endswith(f"/{left['DeliveriesSlow']}"), queue)
        # Another try takes the queue.
        cloudformation.delete_stack(StackName="unlucky")
        Installation("unlucky").delete()
        # It holds what keeps CloudFormation from deleting it.
        versions = self.stack.client("s3").list_object_versions(Bucket=left["StateBucket"])
        self.assertEqual({one["Key"] for one in versions["Versions"]}, {"owner.json"})

    def template_that_fails_at_the_end(self):
        """The name of one beside the usual one, with a queue that is made last and that SQS refuses."""
        s3, name = self.stack.client("s3"), "failing.json"
        template = json.loads(s3.get_object(Bucket=CODE_BUCKET, Key=TEMPLATE)["Body"].read())
        template["Resources"]["Failing"] = {
            "Type": "AWS::SQS::Queue", "DependsOn": "DeliverFunction",
            "Properties": {"VisibilityTimeout": 50_000},
        }
        s3.put_object(Bucket=CODE_BUCKET, Key=name, Body=json.dumps(template).encode())
        return name

    def leave_behind(self, installation, number):
        """Has one event parked after its endpoint was down, and one waiting in the queue."""
        self.sink.answer(self.path, 503)
        installation.publish("orders", cloud_event(f"parked-{number}"))
        [attempt] = self.sink.take(self.path)
        self.parked_id = attempt.headers["webhook-id"]
        waiting.until(lambda: self.parked(installation), "a parked delivery")
        waiting.until(lambda: installation.waiting_messages() == 0, "the parked message to be settled")
        installation.switch_deliver(False)
        installation.publish("orders", cloud_event(f"queued-{number}"))

    def assert_waits(self, installation, number):
        """Both are where they were, and the next stack may have the state at once."""
        self.assertEqual(installation.waiting_messages(), 1)
        key = self.parked(installation)
        self.assertIn(f"parked-{number}", self.stack.read(self.bucket(installation), key).decode())
        self.assertEqual(self.owner(installation)["seenAt"], 0)

    def assert_delivers(self, installation, number):
        """Both arrive, once, the parked one as another attempt of the same request."""
        [queued] = self.sink.take(self.path)
        self.assertEqual(json.loads(queued.body)["id"], f"queued-{number}")
        parked, s3 = self.parked(installation), self.stack.client("s3")
        # The minute comes by moving the object, not by waiting for it.
        due = parked.replace(parked.split("/")[1], minute(datetime.timedelta(minutes=-1)))
        bucket = self.bucket(installation)
        s3.copy_object(Bucket=bucket, Key=due, CopySource={"Bucket": bucket, "Key": parked})
        s3.delete_object(Bucket=bucket, Key=parked)
        installation.wake()
        [second] = self.sink.take(self.path)
        self.assertEqual(json.loads(second.body)["id"], f"parked-{number}")
        told = second.headers["webhook-id"], second.headers["aeg-delivery-count"]
        self.assertEqual(told, (self.parked_id, "1"))
        waiting.until(lambda: installation.waiting_messages() == 0, "an empty queue")
        self.assertEqual((self.sink.left(self.path), self.parked(installation)), (0, None))

    def assert_is_alone(self, living):
        """A second stack over its state is refused before it touches anything."""
        case.CAUSED.add(f"the stack {living.id} works on this state")
        before = self.owner(living)
        self.assertEqual(before["stack"], living.id)
        with self.assertRaises(Refused) as refused:
            Installation("rival", **living.adoption())
        failures = str(refused.exception)
        self.assertIn(f"StateClaim: the stack {living.id} works on this state, last seen at", failures)
        self.assertIn("delete that stack", failures)
        # Nothing but what the claim itself needs was made.
        events = living.cloudformation.describe_stack_events(StackName="rival")["StackEvents"]
        made = {one["LogicalResourceId"] for one in events if one["ResourceStatus"] == "CREATE_COMPLETE"}
        self.assertEqual({one for one in made if one.endswith("Function")}, {"MonitorFunction"})
        self.assertEqual(self.owner(living), before)
        living.cloudformation.delete_stack(StackName="rival")
        # A run of the living one goes on as before, and its claim is not written again within five minutes.
        self.assertIsNone(living.run_monitor())
        self.assertEqual(self.owner(living), before)

    def owner(self, installation):
        return json.loads(self.stack.read(self.bucket(installation), "owner.json"))

    def bucket(self, installation):
        return installation.outputs["StateBucketName"]

    def parked(self, installation):
        """The key of what is parked."""
        return next(iter(self.stack.objects(self.bucket(installation), "parked/")), None)
