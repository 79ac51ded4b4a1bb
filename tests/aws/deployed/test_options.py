"""A stack with what is optional: HTTP APIs, a domain name, a network and a key."""

import json
import urllib.parse

import boto3
import case
import stack
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from case import CLOUD_EVENT, Case, cloud_event, request
from installation import Installation

KEY = "arn:aws:kms:us-east-1:000000000000:key/5c1e5c1e-5c1e-5c1e-5c1e-5c1e5c1e5c1e"

QUEUES = (
    "DeliveriesQueueUrl", "DeliveriesSlowQueueUrl", "DeadLettersQueueUrl", "RecordsQueueUrl", "RedriveQueueUrl",
)

FUNCTIONS = ("publish", "deliver", "wake", "deadletter", "monitor", "manage", "record")

# The emulator takes a boundary and forgets it: that each role has it is a rule of tests/aws/template.
BOUNDARY = "arn:aws:iam::000000000000:policy/developers"

LOGS = "/aws/lambda/bounded/"


class Options(Case):
    @classmethod
    def setUpClass(cls):
        cls.made = stack.Stack(
            HttpFrontend="ApiGateway", KmsKeyArn=KEY, SubnetIds="subnet-5c1e,subnet-e1c5",
            SecurityGroupIds="sg-5c1e", PublishDomainName="events.example.com",
            PublishCertificateArn="arn:aws:acm:us-east-1:000000000000:certificate/5c1e",
            PublishUrlAuthType="AWS_IAM", OtlpEndpoint=case.SINK.url("/otlp"), OtlpHeaders="x-key=a%20secret",
            TraceEndpoints="on",
        )
        cls.enterClassContext(cls.made)

    def setUp(self):
        super().setUp()
        self.stack = self.made

    def post(self, body, content_type=CLOUD_EVENT, **headers):
        """Publishes with a signature of AWS beside the topic's key."""
        sent = {"aeg-sas-key": self.publish_key, "content-type": content_type, **headers}
        signed = AWSRequest("POST", self.events_url, sent, body)
        keys = (self.stack.environment[name] for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"))
        credentials = boto3.Session(*keys).get_credentials()
        SigV4Auth(credentials, "execute-api", "us-east-1").add_auth(signed)
        self.assertEqual(request("POST", self.events_url, signed.headers, body).status, 200)

    def test_a_producer_without_a_signature_of_aws_is_refused_by_the_http_api(self):
        self.apply()
        sent = {"aeg-sas-key": self.publish_key, "content-type": CLOUD_EVENT}
        body = json.dumps(cloud_event("1")).encode()
        self.assertEqual(request("POST", self.events_url, sent, body).status, 403)

    def test_an_event_goes_through_the_http_api_to_its_endpoint(self):
        self.apply()
        self.assertIn("/_aws/execute-api/", self.events_url)
        event = cloud_event("1", data="Grüße")
        self.post_event(event)
        [received] = self.sink.take(self.path)
        self.assertEqual(json.loads(received.body)["data"], event["data"])

    def exported(self, signal, *texts):
        """Waits for a request to the collector with these texts, which stand in protobuf as they are."""
        while True:
            [request] = self.sink.take(f"/otlp/v1/{signal}")
            if all(text.encode() in request.body for text in texts):
                return request

    def test_functions_export_the_trace_of_an_event_and_their_metrics(self):
        self.apply()
        trace = "0af7651916cd43dd8448eb211c80319c"
        self.post_event(cloud_event("1", traceparent=f"00-{trace}-b7ad6b7169203331-01"))
        [received] = self.sink.take(self.path)
        published = self.exported("traces", f"publish {self.topic}")
        self.assertEqual(published.headers["x-key"], "a secret")
        attempted = self.exported("traces", f"attempt {self.topic}/all", f"wait {self.topic}/all")
        # The endpoint is told the span of its request.
        _, told, span, _ = received.headers["traceparent"].split("-")
        self.assertEqual(told, trace)
        for of_trace in (published, attempted):
            self.assertIn(bytes.fromhex(trace), of_trace.body)
        self.assertIn(bytes.fromhex(span), attempted.body)
        self.exported("metrics", "posthaste_events_accepted_total")

    def test_an_id_with_escapes_is_found_through_the_http_api(self):
        self.apply()
        identity = "50% of a b+c#d ü"
        self.post_event(cloud_event(identity))
        self.sink.take(self.path)
        path = f"/topics/{self.topic}/events/{urllib.parse.quote(identity, safe='')}"
        answer = request("GET", self.stack.manage_url + path, {"authorization": f"Bearer {self.stack.key}"})
        self.assertEqual((answer.status, answer.json()["id"]), (200, identity))

    def test_no_function_url_is_left_beside_the_http_apis(self):
        functions = self.stack.client("lambda")
        for name in ("publish", "manage"):
            with self.assertRaises(functions.exceptions.ResourceNotFoundException):
                functions.get_function_url_config(FunctionName=self.stack.function(name))

    def test_producers_are_told_of_the_domain_name(self):
        self.assertEqual(self.stack.outputs["PublishUrl"], "https://events.example.com/")
        self.assertIn("PublishDomainTarget", self.stack.outputs)

    def test_a_running_stack_takes_a_key_and_leaves_it_in_two_steps_each(self):
        keyed = Installation("keyed")
        steps = [
            ({"KmsKeyArn": KEY, "KmsKeyUse": "decrypt"}, (True, None)),
            ({"KmsKeyUse": "encrypt"}, (True, KEY)),
            ({"KmsKeyUse": "decrypt"}, (True, None)),
            ({"KmsKeyArn": ""}, (False, None)),
        ]
        for given, expected in steps:
            with self.subTest(given):
                keyed.update(**given)
                self.assertEqual((self.may_use_key(keyed), self.key_of_queue(keyed, "deliveries")), expected)
                self.assertEqual(self.key_of_queue(keyed, "deliveries-slow"), expected[1])
        keyed.delete()

    def test_roles_have_their_path_and_logs_stay_when_the_stack_goes(self):
        roles, logs = case.STACK.client("iam"), case.STACK.client("logs")
        bounded = Installation(
            "bounded", PermissionsBoundary=BOUNDARY, RolePath="/made/here/", LogsOutliveStack="true"
        )
        for name in FUNCTIONS:
            role = roles.get_role(RoleName=bounded.resources[f"{name.capitalize()}Role"])["Role"]
            self.assertEqual(role["Path"], "/made/here/", name)
        bounded.run_monitor()
        bounded.delete()
        groups = {one["logGroupName"] for one in logs.describe_log_groups(logGroupNamePrefix=LOGS)["logGroups"]}
        folder = f"{LOGS}{bounded.id.split('/')[2]}/"
        self.assertEqual(groups, {folder + name for name in FUNCTIONS})
        self.assertTrue(logs.filter_log_events(logGroupName=f"{folder}monitor")["events"])
        # Another stack of the name has groups of its own.
        again = Installation("bounded", LogsOutliveStack="true", **bounded.adoption())
        again.delete()
        groups = logs.describe_log_groups(logGroupNamePrefix=LOGS)["logGroups"]
        self.assertEqual(len(groups), 2 * len(FUNCTIONS))

    def may_use_key(self, installation):
        """Whether deliver may use the key."""
        role = installation.resources["DeliverRole"]
        policy = installation.shared.client("iam").get_role_policy(RoleName=role, PolicyName="deliver")
        return KEY in json.dumps(policy["PolicyDocument"])

    def key_of_queue(self, installation, queue):
        """The key that encrypts a queue. The emulator keeps an empty text, by which SQS takes a key away."""
        return installation.queue_attributes(queue).get("KmsMasterKeyId") or None

    def test_queues_and_logs_are_encrypted_by_the_key_and_roles_may_use_it(self):
        queues, logs, roles = (self.stack.client(one) for one in ("sqs", "logs", "iam"))
        for name in QUEUES:
            url = self.stack.outputs[name]
            found = queues.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
            self.assertEqual((found["KmsMasterKeyId"], found["KmsDataKeyReusePeriodSeconds"]), (KEY, "300"))
        groups = logs.describe_log_groups(logGroupNamePrefix="/aws/lambda/posthaste/")["logGroups"]
        self.assertEqual([one["kmsKeyId"] for one in groups], [KEY] * len(FUNCTIONS))
        for name in FUNCTIONS:
            role = self.stack.described["resources"][f"{name.capitalize()}Role"]
            policy = roles.get_role_policy(RoleName=role, PolicyName=name)["PolicyDocument"]
            self.assertIn(KEY, json.dumps(policy), name)
