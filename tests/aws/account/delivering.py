"""Checks of a stack that is there: what happens to events."""

import base64
import json
import secrets
import statistics
import time

import service
from checks import check, equal, holds
from ledger import ALARMS, METRICS_MAX
from trial import PRESSURE, SLOW_AFTER_SECS

SOON, LATER = "PT1S", "PT16M"

# Between two runs of wake that the trial asks for.
WAKE_AGAIN_SECS = 5

# Events of the measurement of latency. The first are left out: functions and connections start with them.
MEASURED, WARMING = 25, 5

# Events to the endpoint that hangs, also in a new account, and how long it does: each occupies an invocation of the
# receiver.
HUNG, HUNG_IF_NARROW, HANGS_SECS = 12, 3, SLOW_AFTER_SECS + 3

# Events that wait while nothing reads the queue: more than the threshold of High.
WAITING = PRESSURE["SubmissionQueueHighThreshold"] + 20

# How long it may take until producers are turned away, and until they are taken again; a probe goes out every so
# often meanwhile. The monitor runs once a minute.
PROBED_SECS_MAX, PROBE_SECS = 150, 3
PROBES_MAX = 2 * PROBED_SECS_MAX // PROBE_SECS

# Minutes for which the check of pressure may keep the monitor busy.
FULL_MINUTES = 7


@check("the receiver, template and programs are deployed as a stack", dollars=0.005, secs=600, is_needed=True)
def deployed(trial):
    trial.upload()
    trial.make_receiver()
    trial.ledger.stands("the stack", is_working=True, alarm=ALARMS, dashboard=1, metric=METRICS_MAX)
    trial.stack.make(trial.parameters(), **trial.template())
    trial.receiver_stack.wait("CREATE_COMPLETE", 300)
    trial.connect()
    trial.note_adoption()


@check("SQS keeps a redrive policy that names a queue that is not there",
       not_shown="it takes whatever a policy names")
def redrive_names_nothing(trial):
    allowed = json.loads(trial.queue_attributes("RedriveQueueUrl")["RedriveAllowPolicy"])
    ends = [arn.rsplit(":", 1)[1] for arn in allowed["sourceQueueArns"]]
    queues = [f"{trial.name}-{one}" for one in ("deadletters", "deliveries", "deliveries-slow", "records")]
    equal(sorted(set(ends) - set(queues)), [trial.stack.id.split("/")[2]], "what is named beside the queues")
    equal(sorted(set(ends) & set(queues)), queues, "the queues that may redrive")


@check("each role has the path that was asked for")
def roles_have_their_path(trial):
    roles = trial.cloud.client("iam")
    for name, role in trial.resources.items():
        if name.endswith("Role"):
            equal(roles.get_role(RoleName=role)["Role"]["Path"], f"/{trial.name}/", f"the path of {name}")


@check("the stack has claimed its state, and another stack begins to want it", dollars=0.009)
def claimed(trial):
    equal(owner(trial), trial.stack.id, "the stack that says that it works there")
    # It takes minutes to be refused. What follows is checked meanwhile.
    trial.ledger.stands("the rival", dashboard=1)
    trial.rival.begin_to_make(trial.parameters(Alarms="none", **trial.adoption), **trial.template())


def owner(trial):
    """The stack that has claimed the state."""
    return json.loads(trial.read("StateBucketName", "owner.json"))["stack"]


@check("an event arrives, with a signature that verifies")
def arrives(trial):
    secret = "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()
    trial.report.secrets.append(secret)
    trial.service.make_topic("arrives", all={**trial.subscription("arrives"), "signing": {"secrets": [secret]}})
    trial.ledger.attempts(1)
    event = service.event("1", data={"text": "Grüße"})
    equal(trial.service.publish("arrives", event).json()["matchedSubscriptions"], 1, "matching subscriptions")
    [received] = trial.take("arrives")
    equal(received.event, event, "the event")
    equal(received.headers["webhook-signature"], service.signature(secret, received.headers, received.body),
          "the signature")


@check("a producer with a wrong key is refused with 401")
def wrong_key(trial):
    trial.service.publish_keys["arrives-not"] = "no-key-of-this-topic"
    equal(trial.service.send("arrives-not", service.event("1")).status, 401, "the answer")


@check("a 503 is tried again, as the same request, until it is delivered")
def retried(trial):
    trial.service.make_topic("retried", all=trial.subscription("retried", retries=[SOON], status=503, times=2))
    trial.ledger.attempts(3)
    trial.service.publish("retried", service.event("1"))
    attempts = trial.take("retried", 3)
    equal([one.headers["aeg-delivery-count"] for one in attempts], ["0", "1", "2"], "the attempts")
    equal(len({one.headers["webhook-id"] for one in attempts}), 1, "how many requests these are")


@check("a 400 makes a dead letter in its bucket")
def refused(trial):
    trial.service.make_topic("refused", all=trial.subscription("refused", status=400))
    trial.ledger.attempts(1)
    trial.service.publish("refused", service.event("bad", data={"n": 1.5}))
    [key] = trial.deadline.until(
        lambda: trial.objects("DeadLetterBucketName", "REFUSED/ALL/"), "a dead letter", 420
    )
    [dead] = json.loads(trial.read("DeadLetterBucketName", key))
    found = dead["id"], dead["data"], dead["deadletterreason"], dead["lasthttpstatuscode"]
    equal(found, ("bad", {"n": 1.5}, "UndeliverableDueToClientError", 400), "the dead letter")


@check("what waits longer than 15 minutes is parked in the bucket, and wake sends it when its minute has come")
def parked(trial):
    trial.service.make_topic("parked", all=trial.subscription("parked", retries=[LATER], status=503, times=1))
    trial.ledger.attempts(2)
    trial.service.publish("parked", service.event("1"))
    [first] = trial.take("parked")
    second = release_parked(trial, "parked")
    equal(second.headers["webhook-id"], first.headers["webhook-id"], "the request")
    trial.deadline.until(lambda: not trial.parked(), "the parked object to be deleted", 60)


def release_parked(trial, name):
    """Has the one parked delivery fall due, and returns the attempt that follows."""
    [key] = trial.deadline.until(trial.parked, "a parked delivery", 60)
    trial.make_due(key)
    found, woken = [], []

    def arrived():
        # It rests where it looked a moment ago, and the schedule starts it as well.
        if not woken or trial.deadline.elapsed() - woken[-1] > WAKE_AGAIN_SECS:
            trial.invoke("wake")
            woken.append(trial.deadline.elapsed())
        found.extend(trial.receiver.new(name))
        return found

    trial.deadline.until(arrived, "the attempt of what was parked", 150)
    equal([one.headers["aeg-delivery-count"] for one in found], ["1"], "the attempt")
    return found[0]


@check("the time from publish to arrival is measured", dollars=0.006, secs=180)
def latency(trial):
    trial.service.make_topic("latency", all=trial.subscription("latency"))
    trial.ledger.attempts(MEASURED + WARMING)
    published, arrived = one_by_one(trial, "latency", MEASURED + WARMING)
    trial.report.facts["latencyMs"] = {
        "publish": spread(published[WARMING:]), "arrival": spread(arrived[WARMING:]),
        "clockUncertaintyMs": round(trial.report.facts["clock"]["uncertaintyMs"]),
    }


def one_by_one(trial, topic, count):
    """Publishes events one after the other over one connection. Returns the milliseconds of each acknowledgement, and
    from the beginning of each request to the arrival of its event."""
    clock = clock_of_aws(trial)
    connection = service.Connection(trial.service.publish_url)
    began, took = {}, []
    for number in range(count):
        began[str(number)] = time.time() + clock["offsetSecs"]
        took.append(trial.service.publish(topic, service.event(str(number)), connection).took_ms)
    received = trial.take_events(topic, began)
    return took, [(received[one].at - began[one]) * 1000 for one in began]


def clock_of_aws(trial):
    """How far the receiver's clock is from this machine's, by the quickest of a few requests."""
    connection = service.Connection(trial.receiver.base)
    looks = []
    for _ in range(8):
        before = time.time()
        answer = connection.request("GET", "/clock")
        equal(answer.status, 200, "the receiver's answer")
        after = time.time()
        looks.append((after - before, float(answer.body) - (before + after) / 2))
    round_trip, offset = min(looks)
    clock = {"offsetSecs": offset, "uncertaintyMs": round_trip * 500}
    trial.ledger.attempts(8, 0.1)
    trial.report.facts["clock"] = clock
    return clock


def spread(milliseconds):
    """The median, the 90th percentile and the most."""
    ordered = sorted(milliseconds)
    return {
        "median": round(statistics.median(ordered), 1), "p90": round(ordered[int(len(ordered) * 0.9)], 1),
        "most": round(ordered[-1], 1), "events": len(ordered),
    }


@check("an endpoint that hangs takes the slow lane, and a healthy one does not wait for it", dollars=0.006, secs=180)
def isolation(trial):
    trial.service.make_topic("hung", all=trial.subscription("hung", wait=HANGS_SECS))
    trial.service.make_topic("healthy", all=trial.subscription("healthy"))
    count = HUNG_IF_NARROW if trial.is_narrow() else HUNG
    first, second = ([f"{part}-{number}" for number in range(count)] for part in ("first", "second"))
    trial.ledger.attempts(2 * count, HANGS_SECS)
    trial.ledger.attempts(MEASURED)
    trial.service.publish("hung", [service.event(one) for one in first])

    def slow():
        return any(one.get("topic") == "hung" for one in trial.service.manage("GET", "/links").get("slow", []))

    trial.deadline.until(slow, "the link to be slow", 90)
    trial.take_events("hung", first)
    trial.service.publish("hung", [service.event(one) for one in second])
    published, arrived = one_by_one(trial, "healthy", MEASURED)
    trial.report.facts["besideOneThatHangsMs"] = {"publish": spread(published), "arrival": spread(arrived)}
    holds(statistics.median(arrived) < HANGS_SECS * 1000,
          f"half of a healthy endpoint's events waited for {statistics.median(arrived):.0f} ms or longer")
    trial.take_events("hung", second, 180)


@check("producers are turned away when the queue is full, and taken again when it is empty", dollars=0.012, secs=300)
def pressure(trial):
    trial.service.make_topic("pressure", all=trial.subscription("pressure"))
    trial.ledger.attempts(WAITING + PROBES_MAX)
    trial.ledger.full(FULL_MINUTES)
    waiting = [str(number) for number in range(WAITING)]
    trial.switch_deliver(False)
    try:
        trial.service.publish("pressure", [service.event(one) for one in waiting])
        # Beside its schedule, which runs it once a minute.
        trial.invoke("monitor", "Event")
        answer = probed(trial, lambda answer: answer.status != 200, "producers to be turned away")
        holds(answer.status in (429, 503), f"they are answered {answer}")
        cause = answer.headers.get("posthaste-pressure", "")
        holds("submission-queue" in cause, f"the header Posthaste-Pressure is {cause!r}")
        holds(int(answer.headers["retry-after"]) > 0, "the answer does not say when to try again")
    finally:
        trial.switch_deliver(True)
    trial.take_events("pressure", waiting, 180)
    probed(trial, lambda answer: answer.status == 200, "producers to be taken again")


def probed(trial, is_wanted, what):
    """The first answer to a producer that is as wanted."""
    asked = []

    def answer():
        if asked and trial.deadline.elapsed() - asked[-1] < PROBE_SECS:
            return None
        asked.append(trial.deadline.elapsed())
        found = trial.service.send("pressure", service.event("probe"))
        return found if is_wanted(found) else None

    return trial.deadline.until(answer, what, PROBED_SECS_MAX)
