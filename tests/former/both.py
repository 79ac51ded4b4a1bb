"""A former release and this one on one stack: `both.py FORMER`, where FORMER is a checkout of the former release with
its programs built in `target/debug`. Started by `just former`.

The former release is deployed and filled. Then its functions become those of this release one after the other, with a
`deliver` of each beside the other; then they go back, and forth again. Each event that was accepted by either has to
arrive, or to be a dead letter."""

import os
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "aws" / "deployed"), str(ROOT / "infra" / "emulator")]

import package  # noqa: E402
from endpoints import Endpoints  # noqa: E402
from leave import statuses  # noqa: E402
from leave_on_aws import Woken  # noqa: E402
from patience import until  # noqa: E402
from scenario import OTHERS, PAUSED, SUBSCRIPTIONS, TOPIC, Scenario  # noqa: E402
from stack import Stack  # noqa: E402

# The functions of each program, in the order in which they are updated here.
FUNCTIONS = {
    "deliver": "posthaste-delivery", "publish": "posthaste-delivery", "wake": "posthaste-log",
    "manage": "posthaste-log", "deadletter": "posthaste-delivery", "monitor": "posthaste-delivery",
    "record": "posthaste-log",
}

# Subscriptions whose events become dead letters. Those of `buried` are replayed, and arrive …
LETTERS = ("gone",)

# … and those that are not looked at: resolved, not published, or a dead letter only after half an hour.
DEAD = (*LETTERS, "letters", "resolved", "expiring", "deleted", "again")

# How many more events of a subscription each step publishes.
MORE = 3


class Former(Stack):
    """The stack as the former release deploys it."""

    def __init__(self, checkout):
        super().__init__()
        self.checkout = checkout

    def binaries(self):
        return str(self.checkout / "target" / "debug")

    def replace(self, name, folder):
        """Gives a function the program of another release."""
        with tempfile.NamedTemporaryFile(suffix=".zip") as archive:
            package.pack(folder / FUNCTIONS[name], archive.name)
            code = pathlib.Path(archive.name).read_bytes()
        self.client("lambda").update_function_code(FunctionName=self.function(name), ZipFile=code)

    def replace_all(self, folder):
        for name in FUNCTIONS:
            self.replace(name, folder)

    def add_deliver(self, folder):
        """Another deliver beside the one of the stack, of this release, on the same queue."""
        functions = self.client("lambda")
        own = functions.get_function_configuration(FunctionName=self.function("deliver"))
        with tempfile.NamedTemporaryFile(suffix=".zip") as archive:
            package.pack(folder / FUNCTIONS["deliver"], archive.name)
            code = pathlib.Path(archive.name).read_bytes()
        name = "deliver-beside"
        functions.create_function(
            FunctionName=name, Runtime=own["Runtime"], Role=own["Role"], Handler=own["Handler"],
            Code={"ZipFile": code}, Timeout=own["Timeout"], MemorySize=own["MemorySize"],
            Environment=own["Environment"],
        )
        [mapping] = functions.list_event_source_mappings(FunctionName=self.function("deliver"))["EventSourceMappings"]
        functions.create_event_source_mapping(
            EventSourceArn=mapping["EventSourceArn"], FunctionName=name, BatchSize=mapping["BatchSize"],
            FunctionResponseTypes=mapping.get("FunctionResponseTypes", []),
        )


def publish_more(made, step):
    """Events for subscriptions in every state, of this step."""
    for name in ("arrived", "delayed", "parked", "held", "batched"):
        ids = [f"{name}-{step}-{number}" for number in range(MORE)]
        made.publish_ids(name, ids)


def end(made):
    """Lets everything go, and waits until each event is where it belongs."""
    for name in SUBSCRIPTIONS:
        made.endpoints.answer(name, 200)
    for name in (*PAUSED, *OTHERS):
        if name not in ("deleted", "again"):
            made.posthaste("subscriptions", "resume", name if name in OTHERS else TOPIC, name)
    for name in ("parked", "delayed", "batched", "dressed", "down"):
        made.posthaste("subscriptions", "force", TOPIC, name)
    for name, ids in made.accepted.items():
        if name not in DEAD:
            until(lambda name=name, ids=ids: set(ids) <= made.endpoints.arrived(name), f"all events of {name}")
    for name in LETTERS:
        count = len(made.accepted[name])
        until(lambda name=name, count=count: len(made.letters(name)) >= count, f"the letters of {name}")


def main():
    checkout, own = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(os.environ["POSTHASTE_FUNCTIONS"])
    former = checkout / "target" / "debug"
    with Former(checkout) as stack, Endpoints(statuses()) as endpoints, Woken(stack):
        made = Scenario(str(former / "posthaste"), stack.environment, endpoints)
        made.make()
        made.fill()
        stack.add_deliver(own)
        publish_more(made, "beside")
        for name in FUNCTIONS:
            stack.replace(name, own)
            publish_more(made, f"after-{name}")
        made.program = os.environ["POSTHASTE_BIN"]
        publish_more(made, "new")
        stack.replace_all(former)
        publish_more(made, "back")
        stack.replace_all(own)
        end(made)
    counts = {name: len(ids) for name, ids in made.accepted.items()}
    letters = sum(counts[name] for name in LETTERS)
    arrived = sum(count for name, count in counts.items() if name not in DEAD)
    print(f"of both releases, {arrived} events arrived and {letters} are dead letters")


if __name__ == "__main__":
    main()
