"""Makes the other fixtures of a release: `leave_on_aws.py PROGRAM FOLDER` deploys its functions onto the emulator,
fills the stack, and keeps the bytes of its buckets and queues. `POSTHASTE_FUNCTIONS` is the folder with its
functions, and `POSTHASTE_BIN` its program. Needs what tests/aws/deployed needs. RELEASE.md says when."""

import json
import pathlib
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests" / "aws" / "deployed"))

from endpoints import Endpoints  # noqa: E402
from leave import statuses  # noqa: E402
from scenario import Scenario  # noqa: E402
from stack import Stack  # noqa: E402

# The queues, by the names that the fixture gives them, with the outputs that name them.
QUEUES = {
    "deliveries": "DeliveriesQueueUrl",
    "dead_letters": "DeadLettersQueueUrl",
    "records": "RecordsQueueUrl",
}

# The functions that take messages.
TAKERS = ("Deliver", "Deadletter", "Record")

# How often wake runs here, so that nobody waits a minute for it.
WAKE_SECS = 3

# What is taken is not shown again while it is looked for.
HIDDEN_SECS = 1800


class Woken:
    """Runs wake again and again. Use it in a `with`."""

    def __init__(self, stack):
        self.stack, self.over = stack, threading.Event()
        self.thread = threading.Thread(target=self._run)

    def __enter__(self):
        self.thread.start()

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()

    def _run(self):
        functions = self.stack.client("lambda")
        while not self.over.wait(WAKE_SECS):
            functions.invoke(FunctionName=self.stack.function("wake"), Payload=b"{}")


def stop(stack):
    """No function takes messages any more."""
    functions = stack.client("lambda")
    for name in TAKERS:
        listed = functions.list_event_source_mappings(FunctionName=stack.function(name))
        for mapping in listed["EventSourceMappings"]:
            functions.update_event_source_mapping(UUID=mapping["UUID"], Enabled=False)


def taken(stack, output):
    """The bodies of all messages of a queue, once each has come: those that are delayed, and those that a
    function held."""
    sqs, url, found = stack.client("sqs"), stack.outputs[output], []
    while waiting(sqs, url, len(found)):
        answer = sqs.receive_message(
            QueueUrl=url, MaxNumberOfMessages=10, VisibilityTimeout=HIDDEN_SECS, WaitTimeSeconds=5
        )
        found += [message["Body"] for message in answer.get("Messages", [])]
    return sorted(found)


def waiting(sqs, url, found):
    """Whether a queue has messages that were not found yet."""
    name = "ApproximateNumberOfMessages"
    names = [name, f"{name}NotVisible", f"{name}Delayed"]
    counts = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"]
    return sum(int(count) for count in counts.values()) > found


def objects(stack, bucket):
    """The texts of a bucket's objects, by their keys."""
    return {key: stack.read(bucket, key).decode() for key in stack.objects(bucket)}


def keep_log(stack, folder):
    """Keeps the files of the delivery log as they lie in their bucket."""
    for key in stack.objects(stack.log_bucket):
        file = folder / key
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(stack.read(stack.log_bucket, key))


def main():
    program, folder = str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(sys.argv[2])
    with Stack() as stack, Endpoints(statuses()) as endpoints:
        made = Scenario(program, stack.environment, endpoints)
        with Woken(stack):
            made.make()
            made.fill()
            made.end()
        stop(stack)
        left = made.left()
        queues = {name: taken(stack, output) for name, output in QUEUES.items()}
        keep_log(stack, folder / "aws-log")
        moved = {
            "at": int(time.time() * 1000), **queues,
            "objects": objects(stack, stack.state_bucket),
            "bucket": objects(stack, stack.dead_letter_bucket),
        }
    described = {"killedAt": moved["at"], **left}
    (folder / "aws-left.json").write_text(json.dumps(described, indent=2, sort_keys=True) + "\n")
    (folder / "aws.json").write_text(json.dumps(moved, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
