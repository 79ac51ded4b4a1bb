"""The page about removing, protecting and recovering a stack, word by word: what waited when the stack was
deleted is what the next one of the page works on."""

import pathlib
import unittest

import emulated
import page
from checkout import Checkout

# For SQS the CLI of PyPI takes an endpoint from its command line alone. (That of AWS's installer, version 2,
# takes it from the environment, as the rest here does.)
AWS = 'aws() { command aws --endpoint-url "$AWS_ENDPOINT_URL" "$@"; }'


class Lifecycle(unittest.TestCase):
    def setUp(self):
        self.checkout = self.enterContext(Checkout())
        self.environment = self.enterContext(emulated.environment())
        self.all_blocks = page.blocks("stack-lifecycle.md", __file__)
        self.blocks = list(self.all_blocks)

    def run_block(self, containing):
        """Runs the first block of the page that is left and contains a text."""
        block = next(one for one in self.blocks if containing in one)
        self.blocks.remove(block)
        return self.run_lines(block)

    def run_lines(self, lines):
        return self.checkout.run(f"{AWS}\n{lines}", **self.environment)

    def client(self, service):
        return emulated.client(service, self.environment)

    def test_a_stack_is_removed_recovered_and_removed_for_good(self):
        [deployment] = page.blocks("aws.md", pathlib.Path(__file__).with_name("test_deploy.py"))
        self.run_lines(deployment)
        # monitor makes this one, and the functions here do nothing.
        self.client("sqs").create_queue(QueueName="posthaste-deliveries-slow")
        adoption = self.run_block("AdoptionParameters")
        given = dict(one.split("=") for one in adoption.split())
        self.assertEqual(given.pop("AdoptFrom"), "posthaste")
        self.assertEqual(self.run_block("get-queue-attributes"), counts(deliveries=0))
        self.leave_something(given["AdoptStateBucket"])
        [copying] = page.blocks("aws-network-and-keys.md", __file__)
        self.assertIn("topics/ORDERS.json", self.run_lines(copying))
        self.run_block("aws s3 sync")
        self.assertEqual((self.checkout.path / "topics-of-today" / "ORDERS.json").read_text(), "a topic")
        self.run_block("sam delete")
        self.assertEqual(self.stacks(), [])

        created, *left = self.run_block("describe-stack-events").splitlines()
        self.assertTrue(created.startswith("created 2"), created)
        found = dict(line.split() for line in left)
        self.assertEqual(len(found), 8)
        self.assertEqual({name: found.get(name.removeprefix("Adopt")) for name in given}, given)
        names = self.run_block("aws sqs list-queues")
        self.assertEqual(names.count("posthaste-deliveries"), 2)
        self.assertTrue(all(bucket in names for bucket in given.values()), names)

        self.run_block("sam build")
        [stack] = self.stacks()
        outputs = {one["OutputKey"]: one["OutputValue"] for one in stack["Outputs"]}
        self.assertEqual(outputs["AdoptionParameters"], adoption.strip())
        self.assertEqual(outputs["StateBucketName"], given["AdoptStateBucket"])
        counting, *_ = (one for one in self.all_blocks if "get-queue-attributes" in one)
        self.assertEqual(self.run_lines(counting), counts(deliveries=1))

        self.run_lines("sam delete --no-prompts")
        self.run_block("aws sqs delete-queue")
        self.assertEqual(self.client("sqs").list_queues().get("QueueUrls", []), [])
        left = {one["Name"] for one in self.client("s3").list_buckets()["Buckets"]}
        self.assertEqual(left & set(given.values()), {given["AdoptStateBucket"]})
        self.assertEqual(self.blocks, [], "the page says that these are run")

    def leave_something(self, bucket):
        """A topic, and a message that waits."""
        self.client("s3").put_object(Bucket=bucket, Key="topics/ORDERS.json", Body=b"a topic")
        sqs = self.client("sqs")
        # A function would take it at once.
        sqs.send_message(
            QueueUrl=sqs.get_queue_url(QueueName="posthaste-deliveries")["QueueUrl"], MessageBody="waits",
            DelaySeconds=900,
        )

    def stacks(self):
        """The stacks called posthaste that are there."""
        stacks = self.client("cloudformation").describe_stacks()["Stacks"]
        return [one for one in stacks if one["StackName"] == "posthaste"]


# What the CLI prints of two pages, each by itself: a stack of the name that failed later, and those before
# it. The emulator knows one stack of a name.
TWO_PAGES = """aws() {
  case "$2" in
    list-stacks)
      printf '%s\\t%s\\n' 2026-11-24T08:00:00+00:00 lived 2026-11-25T09:00:00+00:00 failed
      printf '%s\\t%s\\n' 2026-11-24T21:00:00+00:00 adopted ;;
    describe-stack-events)
      case "$4" in
        failed) echo "StateBucket $4" ;;
        lived) echo "DeliveriesQueue $4" ;;
      esac ;;
  esac
}"""


class FormerStacks(unittest.TestCase):
    def test_stacks_of_the_name_are_listed_from_the_newest_on_whatever_page_they_come(self):
        blocks = page.blocks("stack-lifecycle.md", __file__)
        [block] = (one for one in blocks if "list-stacks" in one)
        with Checkout() as checkout:
            printed = checkout.run(f"{TWO_PAGES}\n{block}").splitlines()
        self.assertEqual(printed, [
            "created 2026-11-25T09:00:00+00:00", "StateBucket failed",
            "created 2026-11-24T21:00:00+00:00",
            "created 2026-11-24T08:00:00+00:00", "DeliveriesQueue lived",
        ])


def counts(deliveries):
    """What the page's count prints where this many messages wait for a later minute."""
    others = "deliveries-slow 0 0 0\ndeadletters 0 0 0\nrecords 0 0 0\nredrive 0 0 0\n"
    return f"deliveries 0 0 {deliveries}\n{others}"


if __name__ == "__main__":
    unittest.main()
