"""The trial's receiver of webhooks: a function of a stack of its own, with a public URL, that writes each request that
it gets into the trial's bucket. So nothing has to listen on the machine of who runs the trial.

A URL says how it answers: `status` and for how many attempts (`times`), and `wait`, the seconds before the answer. It
remembers nothing, as requests say themselves how often they were tried before."""

import base64
import json
import secrets
import urllib.parse

PREFIX = "received"

# It runs on AWS, and under an emulator: the code of CloudFormation's ZipFile has 4 KB at most. A request without the
# trial's token is no webhook of it.
CODE = '''
import base64, json, os, time, uuid
import boto3

S3 = boto3.client("s3")


def handler(event, context):
    at = time.time()
    path = event["rawPath"].strip("/").split("/")
    if len(path) != 2 or path[0] != os.environ["TOKEN"]:
        return {"statusCode": 404}
    if event["requestContext"]["http"]["method"] == "GET":
        return {"statusCode": 200, "headers": {"content-type": "text/plain"}, "body": repr(at)}
    asked = event.get("queryStringParameters") or {}
    tried = int(event["headers"].get("aeg-delivery-count", "0"))
    body = event.get("body") or ""
    if not event.get("isBase64Encoded"):
        body = base64.b64encode(body.encode()).decode()
    key = "%s/%s/%017.6f-%s.json" % (os.environ["PREFIX"], path[1], at, uuid.uuid4().hex)
    received = {"at": at, "headers": event["headers"], "body": body}
    S3.put_object(Bucket=os.environ["BUCKET"], Key=key, Body=json.dumps(received).encode())
    time.sleep(float(asked.get("wait", "0")))
    return {"statusCode": int(asked.get("status", "200")) if tried < int(asked.get("times", "99")) else 200}
'''

# The version of Python: one that Lambda has.
RUNTIME = "python3.13"


def template(bucket, token):
    """The stack of the receiver."""
    statements = [
        {"Effect": "Allow", "Action": "s3:PutObject",
         "Resource": {"Fn::Sub": f"arn:${{AWS::Partition}}:s3:::{bucket}/{PREFIX}/*"}},
        {"Effect": "Allow", "Action": ["logs:CreateLogStream", "logs:PutLogEvents"],
         "Resource": {"Fn::GetAtt": ["Logs", "Arn"]}},
    ]
    trusts = {"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}
    everybody = {"FunctionName": {"Ref": "Receiver"}, "Principal": "*"}
    resources = {
        "Logs": ("AWS::Logs::LogGroup", {
            "LogGroupName": {"Fn::Sub": "/aws/lambda/${AWS::StackName}"}, "RetentionInDays": 1,
        }),
        "Role": ("AWS::IAM::Role", {
            "AssumeRolePolicyDocument": {"Version": "2012-10-17", "Statement": [trusts]},
            "Policies": [{
                "PolicyName": "receiver", "PolicyDocument": {"Version": "2012-10-17", "Statement": statements},
            }],
        }),
        "Receiver": ("AWS::Lambda::Function", {
            "Runtime": RUNTIME, "Handler": "index.handler", "Role": {"Fn::GetAtt": ["Role", "Arn"]},
            # Memory is processor time too: a start with 128 MB would take seconds, and look like a slow endpoint.
            "MemorySize": 512, "Timeout": 30, "Code": {"ZipFile": CODE},
            "LoggingConfig": {"LogGroup": {"Ref": "Logs"}},
            "Environment": {"Variables": {"BUCKET": bucket, "TOKEN": token, "PREFIX": PREFIX}},
        }),
        "Url": ("AWS::Lambda::Url", {"AuthType": "NONE", "TargetFunctionArn": {"Ref": "Receiver"}}),
        "UrlPermission": ("AWS::Lambda::Permission", {
            **everybody, "Action": "lambda:InvokeFunctionUrl", "FunctionUrlAuthType": "NONE",
        }),
        "InvokePermission": ("AWS::Lambda::Permission", {
            **everybody, "Action": "lambda:InvokeFunction", "InvokedViaFunctionUrl": True,
        }),
    }
    return {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Description": "The receiver of a trial of posthaste. It is deleted when the trial ends.",
        "Resources": {name: {"Type": kind, "Properties": given} for name, (kind, given) in resources.items()},
        "Outputs": {"Url": {"Value": {"Fn::GetAtt": ["Url", "FunctionUrl"]}}},
    }


def new_token():
    """The part of the receiver's URLs that nobody guesses."""
    return secrets.token_hex(16)


class Received:
    """A request as the receiver got it, and when, in seconds by the clock of AWS."""

    def __init__(self, text):
        told = json.loads(text)
        self.at, self.headers = told["at"], told["headers"]
        self.body = base64.b64decode(told["body"])

    @property
    def event(self):
        return json.loads(self.body)


class Receiver:
    """What the receiver got, path by path, each request once."""

    def __init__(self, cloud, bucket, token, url):
        self.cloud, self.bucket, self.base = cloud, bucket, f"{url}/{token}"
        self.taken = set()

    def url(self, name, **behavior):
        """The URL of an endpoint that answers as is asked."""
        return f"{self.base}/{name}?{urllib.parse.urlencode(behavior)}".rstrip("?")

    def new(self, name):
        """The requests to an endpoint that nobody has taken, the oldest first."""
        keys = [key for key in sorted(self.cloud.keys(self.bucket, f"{PREFIX}/{name}/")) if key not in self.taken]
        self.taken.update(keys)
        return [Received(self.cloud.read(self.bucket, key)) for key in keys]

    def take(self, name, deadline, count=1, secs=120):
        """The next requests to an endpoint, once there are so many."""
        found = []

        def enough():
            found.extend(self.new(name))
            return len(found) >= count

        deadline.until(enough, f"{count} requests at the endpoint {name}", secs)
        return found

    def take_events(self, name, deadline, ids, secs):
        """The first arrival of each of these events, by its id. An event may come twice."""
        found = {}

        def all_are_there():
            for one in self.new(name):
                found.setdefault(one.event["id"], one)
            return ids <= found.keys()

        deadline.until(all_are_there, f"{len(ids)} events at the endpoint {name}", secs)
        return found
