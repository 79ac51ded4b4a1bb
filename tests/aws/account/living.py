"""Checks of the life of a stack: its claim, a key, an update, its end, and another that works on."""

import json

import service
from checks import check, equal, holds
from delivering import LATER, owner, release_parked
from ledger import METRICS_MAX
from trial import FUNCTIONS

QUEUES = (
    "DeliveriesQueueUrl", "DeliveriesSlowQueueUrl", "DeadLettersQueueUrl", "RecordsQueueUrl", "RedriveQueueUrl",
)

# What outlives its stack. The last is the queue of slow deliveries.
KEPT = (
    ["AWS::Logs::LogGroup"] * len(FUNCTIONS) + ["AWS::S3::Bucket"] * 3 + ["AWS::SQS::Queue"] * 4 + ["Custom::Queue"]
)

# Metrics that any use of a stack makes, and that no alarm does.
METRICS = {"PublishSuccessCount", "DeliverySuccessCount", "DestinationProcessingDurationInMs"}

# What AWS says where a right is missing.
DENIED = ("AccessDenied", "not authorized to perform")


@check("each role has the permissions boundary that was asked for", not_shown="it forgets the boundary of a role")
def bounded(trial):
    for name, role in trial.resources.items():
        if name.endswith("Role"):
            found = trial.cloud.client("iam").get_role(RoleName=role)["Role"].get("PermissionsBoundary", {})
            equal(found.get("PermissionsBoundaryArn"), trial.boundary, f"the boundary of {name}")


@check("the other stack is refused, and touches nothing", secs=300)
def rival_is_refused(trial):
    holds(trial.rival.id, "the other stack was not begun")
    trial.rival.wait("ROLLBACK_COMPLETE", 600)
    failures = " ".join(trial.rival.failures())
    holds(f"the stack {trial.stack.id} works on this state" in failures, f"the other stack failed of this: {failures}")
    made = {one["LogicalResourceId"] for one in trial.rival.events() if one["ResourceStatus"] == "CREATE_COMPLETE"}
    equal({one for one in made if one.endswith("Function")}, {"MonitorFunction"}, "functions that it made")
    equal(owner(trial), trial.stack.id, "the stack that says that it works there")
    trial.rival.delete()
    trial.ledger.is_gone("the rival")


@check("a running stack takes a key of KMS in two deployments, and delivers with it", dollars=0.009, secs=300)
def keyed(trial):
    key = trial.make_key()
    trial.stack.update({"KmsKeyArn": key, "KmsKeyUse": "decrypt"})
    trial.stack.update({"KmsKeyUse": "encrypt"})
    for output in QUEUES:
        equal(trial.queue_attributes(output).get("KmsMasterKeyId"), key, f"the key of {output}")
    trial.service.make_topic("keyed", all=trial.subscription("keyed"))
    # Large enough to be stored as an object.
    event = service.event("1", data="x" * 200_000)
    trial.ledger.attempts(1)
    trial.service.publish("keyed", event)
    [received] = trial.take("keyed")
    equal(received.event, event, "the event")


@check("Lambda has a grant of the key, and objects are encrypted with it",
       not_shown="it asks KMS for nothing, and forgets the key of a bucket")
def granted(trial):
    grants = trial.cloud.all("kms", "list_grants", "Grants", KeyId=trial.kms_key)
    trial.report.facts["grants"] = len(grants)
    holds(grants, "the key has no grant")
    [key] = trial.objects("StateBucketName", "topics/keyed")[:1]
    found = trial.cloud.client("s3").head_object(Bucket=trial.outputs["StateBucketName"], Key=key)
    by = found["ServerSideEncryption"], found.get("SSEKMSKeyId")
    equal(by, ("aws:kms", trial.kms_key), "how a topic is encrypted")


@check("no function was denied a right")
def rights(trial):
    lines = list(log_lines(trial))
    equal([line for line in lines if any(text in line for text in DENIED)], [], "lines that say so")
    holds(any('"_aws"' in line for line in lines), "no function has logged a metric, so that the logs say nothing")


@check("the stack writes no more metrics than its price was computed with")
def few_metrics(trial):
    written = set()
    for line in log_lines(trial):
        told = json.loads(line) if '"CloudWatchMetrics"' in line else {}
        for directive in told.get("_aws", {}).get("CloudWatchMetrics", []):
            for dimensions in directive["Dimensions"]:
                values = tuple((name, told[name]) for name in dimensions)
                written |= {(metric["Name"], values) for metric in directive["Metrics"]}
    trial.report.facts["metricsWritten"] = sorted({name for name, _ in written})
    holds(0 < len(written) <= METRICS_MAX, f"it writes {len(written)} metrics, and {METRICS_MAX} were counted with")


@check("CloudWatch has the metrics that functions write as lines of their JSON logs", secs=120,
       not_shown="it makes no metrics of log lines")
def metrics(trial):
    def found():
        listed = trial.cloud.all("cloudwatch", "list_metrics", "Metrics", Namespace=trial.name)
        trial.report.facts["metricsFound"] = sorted({one["MetricName"] for one in listed})
        return METRICS.issubset(trial.report.facts["metricsFound"])

    trial.deadline.until(found, f"{', '.join(sorted(METRICS))} in CloudWatch", 300)


def log_lines(trial):
    """What all functions of the stacks under trial have logged, line by line."""
    for stack_id in trial.ids:
        for function in FUNCTIONS:
            group = trial.logs(stack_id, function)
            for logged in trial.cloud.all("logs", "filter_log_events", "events", logGroupName=group):
                yield from logged["message"].splitlines()


@check("the stack is deleted while events wait; its queues, buckets and logs stay", secs=360, is_needed=True)
def deleted(trial):
    unwell = trial.subscription("parked-then", retries=[LATER], status=503, times=1)
    trial.service.make_topic("parked-then", all=unwell)
    trial.service.make_topic("queued-then", all=trial.subscription("queued-then"))
    trial.ledger.attempts(3)
    trial.service.publish("parked-then", service.event("parked"))
    [first] = trial.take("parked-then")
    trial.waiting_id = first.headers["webhook-id"]
    trial.deadline.until(trial.parked, "a parked delivery", 60)
    trial.switch_deliver(False)
    trial.service.publish("queued-then", service.event("queued"))
    # The key is in it by now.
    trial.note_adoption()
    trial.stack.delete()
    equal(trial.stack.kept(), KEPT, "what stayed")


@check("a stack of the same name adopts what stayed, and delivers what waited", secs=420, is_needed=True)
def adopted(trial):
    trial.make_again()
    equal(owner(trial), trial.stack.id, "the stack that says that it works there")
    [queued] = trial.take("queued-then", 1, 180)
    equal(queued.event["id"], "queued", "the event that waited in the queue")
    parked = release_parked(trial, "parked-then")
    equal((parked.event["id"], parked.headers["webhook-id"]), ("parked", trial.waiting_id), "the event that was parked")
    equal(len(trial.receiver.new("queued-then")), 0, "how often it came again")


@check("no function of the stack that adopted was denied a right")
def rights_of_adopter(trial):
    rights(trial)
