"""A trial: the stack under trial, its receiver, and what checks need of both."""

import datetime
import hashlib
import json
import secrets

import programs
import receiver
import service
import stacks

# Stacks beside the one under trial: the receiver of webhooks, and one that wants the state of the first.
RECEIVER, RIVAL = "receiver", "rival"

# Functions, as their log groups are called.
FUNCTIONS = ("publish", "deliver", "wake", "deadletter", "monitor", "manage", "record")

# Fewer invocations at once than this has a new account, whose functions share 10. The template's defaults want more,
# and each open request occupies the receiver too.
CONCURRENCY_OF_NEW_ACCOUNT = 100
NARROW = {"DeliverMaximumConcurrency": "2", "RequestsPerLinkStart": "2", "RequestsPerLinkMax": "2"}

# Back pressure begins above what checks have waiting at once, and below what the check of it publishes.
PRESSURE = {"SubmissionQueueNormalThreshold": 20, "SubmissionQueueMediumThreshold": 40,
            "SubmissionQueueHighThreshold": 60}

# What the roles may do at most. It is wider than what they may, as an organisation's is.
BOUNDARY = {"Version": "2012-10-17", "Statement": [
    {"Effect": "Allow", "Action": ["sqs:*", "s3:*", "logs:*", "kms:*"], "Resource": "*"},
]}

# Seconds after which a request counts as slow: longer than a cold start of the receiver takes.
SLOW_AFTER_SECS = 3


class Trial:
    """What is under trial. `options` are those of the command line."""

    def __init__(self, name, cloud, deadline, ledger, report, options):
        self.name, self.cloud, self.deadline = name, cloud, deadline
        self.ledger, self.report, self.options = ledger, report, options
        self.key = secrets.token_urlsafe(32)
        self.token = receiver.new_token()
        report.secrets += [self.key, self.token]
        self.bucket = f"{name}-code-{secrets.token_hex(6)}"
        self.stack = self._stack("")
        self.rival = self._stack(RIVAL)
        self.receiver_stack = self._stack(RECEIVER)
        self.receiver = self.service = self.outputs = self.resources = None
        # The ids of the stacks that had the name of the trial: those of its log groups.
        self.ids = []
        self.kms_key = self.boundary = self.waiting_id = None
        self.adoption = {}

    def _stack(self, suffix):
        return stacks.Stack(self.cloud, self.deadline, "-".join(filter(None, (self.name, suffix))))

    # Making.

    def upload(self):
        """The programs and the template, in the trial's own bucket."""
        self.cloud.make_bucket(self.bucket)
        s3 = self.cloud.client("s3")
        for key, zipped in self.options.zips.items():
            s3.put_object(Bucket=self.bucket, Key=key, Body=zipped)
        s3.put_object(Bucket=self.bucket, Key="template.yaml", Body=self.options.template)
        policy = self.cloud.client("iam").create_policy(
            Path=f"/{self.name}/", PolicyName=f"{self.name}-boundary", PolicyDocument=json.dumps(BOUNDARY)
        )
        self.boundary = policy["Policy"]["Arn"]

    def template(self):
        return {"TemplateURL": self.cloud.object_url(self.bucket, "template.yaml")}

    def parameters(self, **more):
        """The parameters of a stack under trial."""
        given = {
            "AdminKeySha256": hashlib.sha256(self.key.encode()).hexdigest(),
            "ReleaseBucket": self.bucket, "ReleaseVersion": programs.VERSION,
            "Architecture": self.options.architecture,
            # The submission queue alone decides, and is measured often while it is full.
            "PressureProfile": "exchange-2013", "PressureSettings": json.dumps(PRESSURE), "PressureInterval": "2",
            "SlowAfter": str(SLOW_AFTER_SECS),
            "RolePath": f"/{self.name}/", "PermissionsBoundary": self.boundary,
            "LogsOutliveStack": "true", "LogRetentionDays": "1", **more,
        }
        if self.cloud.is_emulator:
            given["AllowEndpoints"] = "127.0.0.0/8"
        elif self.is_narrow():
            given |= NARROW
        return given

    def concurrency(self):
        """Invocations that the account may run at once."""
        limits = self.cloud.client("lambda").get_account_settings()["AccountLimit"]
        return limits["ConcurrentExecutions"]

    def is_narrow(self):
        """Whether the account is a new one, in which the receiver and deliver share few invocations."""
        return self.concurrency() < CONCURRENCY_OF_NEW_ACCOUNT

    def make_receiver(self):
        template = receiver.template(self.bucket, self.token)
        self.receiver_stack.begin_to_make({}, **stacks.body(template))

    def connect(self):
        """Finds what has been made."""
        self.outputs, self.resources = self.stack.outputs(), self.stack.resources()
        self.ids.append(self.stack.id)
        urls = (self.cloud.url(self.outputs[name]) for name in ("PublishUrl", "ManageUrl"))
        self.service = service.Service(*urls, self.key)
        url = self.cloud.url(self.receiver_stack.outputs()["Url"])
        if self.receiver is None:
            self.receiver = receiver.Receiver(self.cloud, self.bucket, self.token, url)

    def note_adoption(self):
        """Reads what the next stack is to be given to work on with the queues and buckets of this one."""
        parameters = self.stack.outputs()["AdoptionParameters"].split()
        self.adoption = dict(one.split("=", 1) for one in parameters)

    def make_again(self):
        """Makes another stack of the same name, which adopts what the first has left."""
        self.stack = self._stack("")
        self.stack.make(self.parameters(Alarms="none", **self.adoption), **self.template())
        self.connect()

    def make_key(self):
        """A key of KMS, as the documents have people make one. By its alias it is found again."""
        kms, account = self.cloud.client("kms"), self.cloud.account()
        self.ledger.stands("the key", key=1)
        partition = self.boundary.split(":")[1]
        policy = key_policy(partition, self.cloud.region, account, self.name)
        self.kms_key = kms.create_key(Policy=json.dumps(policy), Description=self.name)["KeyMetadata"]["Arn"]
        kms.create_alias(AliasName=f"alias/{self.name}", TargetKeyId=self.kms_key)
        return self.kms_key

    # Doing.

    def subscription(self, name, *, retries=(), **behavior):
        """A subscription to an endpoint that answers as is asked."""
        return {
            "endpoint": {"url": self.receiver.url(name, **behavior)}, "deadLetter": {"delay": "PT0S"},
            **({"retryPolicy": {"schedule": list(retries), "waitFloors": {"default": "PT0S", "503": "PT0S"}}}
               if retries else {}),
        }

    def take(self, name, count=1, secs=120):
        return self.receiver.take(name, self.deadline, count, secs)

    def take_events(self, name, ids, secs=120):
        return self.receiver.take_events(name, self.deadline, set(ids), secs)

    def objects(self, output, prefix):
        """The keys below a prefix, in a bucket of the stack by the name of its output."""
        return self.cloud.keys(self.outputs[output], prefix)

    def read(self, output, key):
        return self.cloud.read(self.outputs[output], key)

    def queue_attributes(self, output):
        """All attributes of a queue of the stack, by the name of its output."""
        answer = self.cloud.client("sqs").get_queue_attributes(
            QueueUrl=self.outputs[output], AttributeNames=["All"]
        )
        return answer["Attributes"]

    def invoke(self, function, kind="RequestResponse"):
        """Runs a function of a schedule now."""
        answer = self.cloud.client("lambda").invoke(
            FunctionName=self.resources[f"{function.capitalize()}Function"], InvocationType=kind, Payload=b"{}"
        )
        if "FunctionError" in answer:
            raise AssertionError(f"{function} failed: {answer['Payload'].read()[:500]!r}")

    def switch_deliver(self, enabled):
        """Switches what reads the queue of deliveries, and waits until it is so."""
        functions = self.cloud.client("lambda")
        listed = functions.list_event_source_mappings(FunctionName=self.resources["DeliverFunction"])
        [mapping] = [one["UUID"] for one in listed["EventSourceMappings"]
                     if not one["EventSourceArn"].endswith("-slow")]
        functions.update_event_source_mapping(UUID=mapping, Enabled=enabled)
        wanted = "Enabled" if enabled else "Disabled"
        self.deadline.until(
            lambda: functions.get_event_source_mapping(UUID=mapping)["State"] == wanted,
            f"the event source mapping to be {wanted}", 180,
        )

    def logs(self, stack_id, function):
        """The log group of a function of a stack."""
        return f"/aws/lambda/{self.name}/{stack_id.split('/')[2]}/{function}"

    def parked(self):
        """The keys of parked deliveries."""
        return self.objects("StateBucketName", "parked/")

    def make_due(self, key):
        """Moves what is parked to the minute before this one: nobody waits for 16 minutes."""
        s3, bucket = self.cloud.client("s3"), self.outputs["StateBucketName"]
        minute = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(minutes=1)
        due = key.replace(key.split("/")[1], minute.strftime("%Y%m%dT%H%MZ"))
        s3.copy_object(Bucket=bucket, Key=due, CopySource={"Bucket": bucket, "Key": key})
        s3.delete_object(Bucket=bucket, Key=key)


def key_policy(partition, region, account, stack):
    """The policy of a key that docs/src/operating/aws-network-and-keys.md gives."""
    logs = f"arn:{partition}:logs:{region}:{account}:log-group:/aws/lambda/{stack}/*"
    return {"Version": "2012-10-17", "Statement": [
        {"Sid": "TheAccountDecidesByItsPolicies", "Effect": "Allow",
         "Principal": {"AWS": f"arn:{partition}:iam::{account}:root"}, "Action": "kms:*", "Resource": "*"},
        {"Sid": "CloudWatchLogs", "Effect": "Allow", "Principal": {"Service": f"logs.{region}.amazonaws.com"},
         "Action": ["kms:Encrypt", "kms:Decrypt", "kms:ReEncrypt*", "kms:GenerateDataKey*", "kms:Describe*"],
         "Resource": "*", "Condition": {"ArnLike": {"kms:EncryptionContext:aws:logs:arn": logs}}},
    ]}
