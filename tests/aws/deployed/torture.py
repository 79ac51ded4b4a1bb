"""The functions under torture: killed and frozen in the middle of their work while events are published and
receivers change their mood. A ledger of what was accepted and what arrived has to balance in the end.

`just torture-functions --minutes 60 --seed 7` runs it by hand; `test_torture` for half a minute."""

import argparse
import collections
import http.client
import json
import os
import pathlib
import random
import signal
import sys
import threading
import time
import urllib.parse

import sink
import stack

TOPIC = "tortured"

SUBSCRIPTIONS = {
    "plain": {},
    "batched": {"batching": {"maxEventsPerBatch": 20}},
    "bounded": {"endpoint": {"maxConcurrentRequests": 4}},
}

RETRIES = {"schedule": ["PT1S", "PT2S", "PT5S"], "waitFloors": {"default": "PT0S"}}

# Half of the time a receiver is well.
MOODS = [200, 200, 200, 503, 429, 500]

# Every receiver refuses one event of so many, which is a dead letter then.
REFUSED_EACH, REFUSED_REST = 50, 7

PUBLISHERS = 2

# More than a message of a queue holds.
LARGE_BYTES = 300_000

# A message whose function was killed comes back after so long, and not after the minutes of the template: the
# rest would last as long.
VISIBILITY_SECS = 120

# A message may wait so long in its function before its request begins.
BEFORE_ITS_REQUEST_SECS = 30

# The functions that are killed. `manage` answers people, and monitor only looks.
FUNCTIONS = ("publish", "deliver", "deadletter", "wake", "record")

# The least events that must be accepted in a minute: a run in which everything fails shows nothing.
ACCEPTED_PER_MINUTE_MIN = 60

# When all is well again, the rest lasts as long as events get their end, and so much longer.
STILL_SECS = 300

# Events that the delivery log is asked for.
ASKED_MAX = 20

# Faults of one kind that are told.
TOLD_MAX = 5


class Ledger:
    """What was published and how it was answered, and what arrived."""

    def __init__(self):
        self.lock = threading.Lock()
        self.count = 0
        self.fates = {}
        self.arrivals = collections.defaultdict(lambda: collections.defaultdict(list))
        self.ids = collections.defaultdict(set)
        self.altered = []

    def begin(self, events):
        with self.lock:
            first = self.count
            self.count += events
            return [str(number) for number in range(first, self.count)]

    def end(self, events, fate):
        with self.lock:
            self.fates.update(dict.fromkeys(events, fate))

    def arrived(self, name, events, status, webhook_id):
        at = time.time()
        with self.lock:
            for event in events:
                self.arrivals[name][event["id"]].append((at, status))
                if len(events) == 1:
                    self.ids[event["id"]].add(webhook_id)
                if event not in (small(event["id"]), large(event["id"])):
                    self.altered.append(event["id"])

    def accepted(self):
        with self.lock:
            return [event for event, fate in self.fates.items() if fate == "accepted"]

    def taken(self, name):
        """When a receiver took each event."""
        with self.lock:
            arrivals = {event: list(all_of) for event, all_of in self.arrivals[name].items()}
        taken = {event: [at for at, status in all_of if status == 200] for event, all_of in arrivals.items()}
        return {event: times for event, times in taken.items() if times}


class Receivers(sink.Sink):
    """One path for each subscription, with a mood."""

    def __init__(self, ledger):
        self.moods = dict.fromkeys(SUBSCRIPTIONS, 200)
        self.ledger = ledger
        super().__init__()

    def answered(self, received):
        name = received.path.strip("/")
        found = json.loads(received.body)
        events = found if isinstance(found, list) else [found]
        status = self.moods[name]
        if status == 200 and any(is_refused(event["id"]) for event in events):
            status = 400
        self.ledger.arrived(name, events, status, received.headers["webhook-id"])
        return status


class Torture:
    """One run on a stack of its own."""

    def __init__(self, deployed, receivers, ledger, seed):
        self.stack, self.receivers, self.ledger = deployed, receivers, ledger
        self.random = random.Random(seed)
        self.stopping = threading.Event()
        self.kills = []
        self.faults = []
        self.counts = collections.Counter()

    def run(self, secs):
        self.declare()
        threads = [threading.Thread(target=self.publish, args=(self.random.random(),)) for _ in range(PUBLISHERS)]
        for thread in threads:
            thread.start()
        try:
            self.torture(time.monotonic() + secs)
        finally:
            self.stopping.set()
            for thread in threads:
                thread.join()
        self.receivers.moods.update(dict.fromkeys(SUBSCRIPTIONS, 200))
        began = time.monotonic()
        self.rest()
        self.rested_secs = time.monotonic() - began
        self.check(secs)

    def declare(self):
        subscriptions = {}
        for name, more in SUBSCRIPTIONS.items():
            endpoint = {"url": self.receivers.url(f"/{name}"), "timeout": "PT10S", **more.get("endpoint", {})}
            subscriptions[name] = {
                "retryPolicy": RETRIES, "deadLetter": {"delay": "PT0S"}, **more, "endpoint": endpoint,
            }
        topics = {TOPIC: {"subscriptions": subscriptions}}
        self.stack.posthaste("apply", "--file", "-", text=json.dumps({"topics": topics}))
        self.key = self.stack.posthaste("topics", "keys", TOPIC)["key1"]
        sqs = self.stack.client("sqs")
        self.queues = [url for url in sqs.list_queues()["QueueUrls"]]
        for url in self.queues:
            sqs.set_queue_attributes(QueueUrl=url, Attributes={"VisibilityTimeout": str(VISIBILITY_SECS)})

    def publish(self, seed):
        draw = random.Random(seed)
        while not self.stopping.is_set():
            kind = draw.choices(["one", "many", "large"], [70, 26, 4])[0]
            events = self.ledger.begin(10 if kind == "many" else 1)
            make = large if kind == "large" else small
            body = json.dumps([make(event) for event in events])
            self.ledger.end(events, self.post(body))
            time.sleep(0.05)

    def post(self, body):
        """The fate of a request."""
        parts = urllib.parse.urlsplit(f"{self.stack.publish_url}/topics/{TOPIC}/events")
        connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)
        headers = {"aeg-sas-key": self.key, "content-type": "application/cloudevents-batch+json"}
        try:
            connection.request("POST", parts.path, body, headers)
            answer = connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException):
            return "unknown"
        finally:
            connection.close()
        # The emulator says 200 of a function that died, with what is no answer of ours.
        if answer.status == 200 and b"acceptedEvents" in text:
            return "accepted"
        return "refused" if 400 <= answer.status < 500 else "unknown"

    def torture(self, end):
        while time.monotonic() < end:
            time.sleep(self.random.uniform(0.3, 1.5))
            self.receivers.moods[self.random.choice(list(SUBSCRIPTIONS))] = self.random.choice(MOODS)
            running = self.running()
            if not running:
                continue
            function = self.random.choice(sorted(running))
            pid = self.random.choice(running[function])
            if self.random.random() < 0.7:
                self.signal(function, pid, signal.SIGKILL, "killed")
            else:
                self.signal(function, pid, signal.SIGSTOP, "frozen")
                time.sleep(self.random.uniform(0.5, 3))
                self.signal(function, pid, signal.SIGCONT, "goes on")

    def running(self):
        """The processes of each function."""
        running = collections.defaultdict(list)
        for pid in self.stack.processes():
            try:
                environment = pathlib.Path(f"/proc/{pid}/environ").read_bytes()
            except OSError:
                continue
            name = next((one for one in environment.split(b"\0") if one.startswith(b"AWS_LAMBDA_FUNCTION_NAME=")), b"")
            for function in FUNCTIONS:
                if name.decode().partition("=")[2] == self.stack.function(function):
                    running[function].append(pid)
        return running

    def signal(self, function, pid, which, done):
        try:
            os.kill(pid, which)
        except ProcessLookupError:
            return
        self.kills.append((time.time(), function))
        self.counts[f"{function} {done}"] += 1

    def letters(self):
        """The dead letters of each subscription, by their events."""
        letters = {name: collections.Counter() for name in SUBSCRIPTIONS}
        for name in SUBSCRIPTIONS:
            prefix = f"{TOPIC.upper()}/{name.upper()}/"
            for key in self.stack.objects(self.stack.dead_letter_bucket, prefix):
                for letter in json.loads(self.stack.read(self.stack.dead_letter_bucket, key)):
                    letters[name][letter["id"]] += 1
        return letters

    def open(self):
        """What was accepted for a subscription and has no end yet."""
        letters, accepted = self.letters(), self.ledger.accepted()
        taken = {name: self.ledger.taken(name) for name in SUBSCRIPTIONS}
        return [
            (name, event) for name in SUBSCRIPTIONS for event in accepted
            if event not in taken[name] and event not in letters[name]
        ]

    def waiting(self):
        """How many messages each queue has, and what is parked or held."""
        sqs, waiting = self.stack.client("sqs"), {}
        which = [f"ApproximateNumberOfMessages{of}" for of in ("", "NotVisible", "Delayed")]
        for url in self.queues:
            attributes = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=which)["Attributes"]
            count = sum(int(attributes[name]) for name in which)
            if count:
                waiting[url.rsplit("/", 1)[1]] = count
        for prefix in ("parked/", "held/"):
            keys = self.stack.objects(self.stack.state_bucket, prefix)
            if keys:
                waiting[prefix] = len(keys)
        return waiting

    def rest(self):
        least, ended_at = None, time.monotonic()
        while True:
            count, waiting = len(self.open()), self.waiting()
            if least is None or count < least:
                least, ended_at = count, time.monotonic()
            if (count == 0 and not waiting) or time.monotonic() > ended_at + STILL_SECS:
                return
            time.sleep(1)

    def tell(self, what, found):
        if found:
            self.faults.append(f"{what}: {len(found)}, such as {list(found)[:TOLD_MAX]}")

    def check(self, secs):
        self.tell("without an end", self.open())
        waiting = self.waiting()
        if waiting:
            self.faults.append(f"still waiting: {waiting}")
        fates, letters = self.ledger.fates, self.letters()
        for fate in ("accepted", "refused", "unknown"):
            self.counts[fate] = sum(1 for one in fates.values() if one == fate)
        if self.counts["accepted"] < ACCEPTED_PER_MINUTE_MIN * secs / 60:
            self.faults.append("void: hardly anything was accepted")
        if not self.kills:
            self.faults.append("void: nothing was killed")
        for name in SUBSCRIPTIONS:
            taken = self.ledger.taken(name)
            self.counts["deliveries"] += len(taken)
            self.counts["dead letters"] += len(letters[name])
            never = [event for event in (*taken, *letters[name]) if fates.get(event, "refused") == "refused"]
            self.tell(f"{name}: arrived although not accepted", never)
            given_up = [event for event in letters[name] if not is_refused(event)]
            self.counts["given up"] += len(given_up)
            self.tell(f"{name}: arrived again without a reason", self.unexplained(taken))
        self.tell("altered", self.ledger.altered)
        self.tell("with another webhook-id", [event for event, ids in self.ledger.ids.items() if len(ids) > 1])
        self.check_log(letters)

    def unexplained(self, taken):
        """What came again although nobody killed or froze a function that has to write down that it arrived, and
        before its message was visible again."""
        found = []
        for event, times in taken.items():
            for first, second in zip(times, times[1:]):
                if second - first >= VISIBILITY_SECS - BEFORE_ITS_REQUEST_SECS:
                    self.counts["arrived again, as its message was visible again"] += 1
                elif any(
                    function in ("deliver", "publish", "wake") and first - VISIBILITY_SECS <= at <= second
                    for at, function in self.kills
                ):
                    self.counts["arrived again, as a function was killed or frozen"] += 1
                else:
                    found.append((event, second - first))
        return found

    def check_log(self, letters):
        accepted = self.ledger.accepted()
        for event in self.random.sample(accepted, min(ASKED_MAX, len(accepted))):
            try:
                shown = self.stack.posthaste("events", "show", TOPIC, event)
            except stack.Failed:
                continue
            self.counts["known to the log"] += 1
            for delivery in shown["deliveries"]:
                name, state = delivery["subscription"], delivery["state"]
                is_true = {
                    "delivered": event in self.ledger.taken(name), "dead-lettered": event in letters[name],
                }.get(state, True)
                if not is_true:
                    self.faults.append(f"the log says of {event}: {delivery}")

    def report(self):
        lines = [f"everything at rest after {self.rested_secs:.0f} s"]
        lines += [f"{count:>6} × {what}" for what, count in sorted(self.counts.items())]
        return "\n".join(lines + [f"FAULT {fault}" for fault in self.faults])


def small(identity):
    return {"specversion": "1.0", "id": identity, "source": "/torture", "type": "t", "data": {"n": 1}}


def large(identity):
    return {**small(identity), "data": "x" * LARGE_BYTES}


def is_refused(identity):
    return int(identity) % REFUSED_EACH == REFUSED_REST


def torture(secs, seed):
    """Makes a run, and answers it."""
    ledger = Ledger()
    with Receivers(ledger) as receivers, stack.Stack() as deployed:
        run = Torture(deployed, receivers, ledger, seed)
        run.run(secs)
    return run


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=2)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    run = torture(60 * given.minutes, given.seed)
    print(f"seed {given.seed}, {given.minutes} min\n{run.report()}")
    return 1 if run.faults else 0


if __name__ == "__main__":
    sys.exit(main())
