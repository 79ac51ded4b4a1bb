"""Ways to break the template, by the rule that must name each: a rule that nothing breaks would be none."""


def put(path, value):
    """A break that writes `value` at a path of the template, parted by spaces."""
    *way, last = path.split()

    def break_it(template):
        parent = step(template, way)
        parent[int(last) if isinstance(parent, list) else last] = value

    return break_it


def drop(path):
    """A break that takes a member out."""
    *way, last = path.split()

    def break_it(template):
        parent = step(template, way)
        del parent[int(last) if isinstance(parent, list) else last]

    return break_it


def step(value, way):
    for one in way:
        value = value[int(one) if isinstance(value, list) else one]
    return value


def property_of(name, path, value):
    return put(f"Resources {name} Properties {path}", value)


def without(name, path):
    return drop(f"Resources {name} Properties {path}")


def grant(role, action, resource):
    """A break that lets a role do more."""

    def break_it(template):
        [policy] = template["Resources"][role]["Properties"]["Policies"]
        policy["PolicyDocument"]["Statement"].append(
            {"Effect": "Allow", "Action": action, "Resource": resource}
        )

    return break_it


def revoke(role, sid):
    """A break that takes a statement of a role away."""

    def break_it(template):
        [policy] = template["Resources"][role]["Properties"]["Policies"]
        statements = policy["PolicyDocument"]["Statement"]
        statements[:] = [one for one in statements if optional(one)["Sid"] != sid]

    return break_it


def optional(statement):
    """The statement itself, or what stands in its place if a condition holds."""
    return statement["Fn::If"][1] if "Fn::If" in statement else statement


ENCRYPTION = "BucketEncryption ServerSideEncryptionConfiguration 0"
def six_more_alarms(template):
    """A break that makes alarms dear."""
    for number in range(6):
        template["Resources"][f"More{number}Alarm"] = template["Resources"]["RedriveAlarm"]


TLS = "PolicyDocument Statement 0 Condition Bool aws:SecureTransport"
DELIVERIES = "Events Deliveries Properties"
SLOW = "Events DeliveriesSlow Properties"

BREAKS = {
    "visibility-covers-six-invocations-and-the-window": [
        property_of("DeliveriesQueue", "VisibilityTimeout", 729),
        property_of("DeliverFunction", "Timeout", 121),
        property_of("RedriveQueue", "VisibilityTimeout", 359),
        put("Parameters DeadletterBatchWindow MaxValue", 301),
        property_of("RecordFunction", "Events Records Properties MaximumBatchingWindowInSeconds", 61),
    ],
    "failures-are-reported-message-by-message": [
        without("DeliverFunction", f"{DELIVERIES} FunctionResponseTypes"),
        without("DeadletterFunction", "Events Redrive Properties FunctionResponseTypes"),
    ],
    "a-full-batch-has-a-window": [
        put("Parameters DeliverBatchSize Default", 11),
        property_of("DeadletterFunction", "Events Redrive Properties BatchSize", 11),
        without("RecordFunction", "Events Records Properties MaximumBatchingWindowInSeconds"),
    ],
    "what-fails-often-is-redriven": [
        property_of("DeliveriesQueue", "RedrivePolicy maxReceiveCount", 5),
        without("DeadLettersQueue", "RedrivePolicy"),
        property_of("RecordsQueue", "RedrivePolicy maxReceiveCount", 51),
        without("DeliveriesSlow", "Attributes RedrivePolicy"),
    ],
    "the-redrive-queue-takes-from-its-sources-alone": [
        property_of("DeliveriesQueue", "QueueName", "renamed"),
        property_of("DeadLettersQueue", "RedriveAllowPolicy redrivePermission", "allowAll"),
        without("RedriveQueue", "RedriveAllowPolicy"),
        without("RedriveQueue", "RedriveAllowPolicy sourceQueueArns 1"),
        without("RedriveQueue", "RedriveAllowPolicy sourceQueueArns 4"),
        property_of("RedriveQueue", "RedriveAllowPolicy sourceQueueArns 4 Fn::Sub 1 Id", "any"),
    ],
    "queues-take-the-largest-message": [
        property_of("DeliveriesQueue", "MaximumMessageSize", 262_144),
        property_of("RecordsQueue", "MaximumMessageSize", 1_048_575),
        without("RedriveQueue", "MaximumMessageSize"),
    ],
    "the-redrive-queue-keeps-as-long-as-its-sources": [
        property_of("RedriveQueue", "MessageRetentionPeriod", 345_600),
        property_of("DeliveriesQueue", "MessageRetentionPeriod", 345_600),
    ],
    "queues-are-encrypted": [
        without("RedriveQueue", "SqsManagedSseEnabled"),
        property_of("RedriveQueue", "SqsManagedSseEnabled", True),
        without("RecordsQueue", "KmsMasterKeyId"),
        property_of("DeliveriesQueue", "KmsDataKeyReusePeriodSeconds Fn::If 1", 86_400),
        property_of("DeadLettersQueue", "KmsMasterKeyId Fn::If 0", "HasKey"),
        without("DeliveriesSlow", "Attributes SqsManagedSseEnabled"),
        property_of("DeliveriesSlow", "Attributes KmsMasterKeyId Fn::If 0", "HasKey"),
    ],
    "queues-take-tls-only": [
        property_of("DeliveriesQueuePolicy", TLS, "true"),
        property_of("RedriveQueuePolicy", "Queues", [{"Ref": "DeliveriesQueue"}]),
        drop("Resources DeadLettersQueuePolicy"),
        drop("Resources RecordsQueuePolicy"),
        drop("Resources DeliveriesSlowPolicy"),
    ],
    "buckets-are-private": [
        property_of("StateBucket", "PublicAccessBlockConfiguration BlockPublicPolicy", False),
        without("DeadLetterBucket", "PublicAccessBlockConfiguration"),
        without("DeadLetterBucket", "OwnershipControls"),
    ],
    "buckets-are-encrypted": [
        without("StateBucket", "BucketEncryption"),
        property_of("LogBucket", f"{ENCRYPTION} ServerSideEncryptionByDefault SSEAlgorithm", "AES256"),
        without("LogBucket", f"{ENCRYPTION} BucketKeyEnabled"),
        without("DeadLetterBucket", f"{ENCRYPTION} ServerSideEncryptionByDefault KMSMasterKeyID"),
        property_of("StateBucket", f"{ENCRYPTION} BucketKeyEnabled Fn::If 0", "HasKey"),
    ],
    "buckets-take-tls-only": [
        property_of(
            "StateBucketPolicy", "PolicyDocument Statement 0 Resource", {"Fn::GetAtt": ["StateBucket", "Arn"]}
        ),
        property_of("DeadLetterBucketPolicy", "PolicyDocument Statement 0 Action", "s3:GetObject"),
    ],
    "queues-outlive-the-stack": [
        drop("Resources DeliveriesQueue DeletionPolicy"),
        put("Resources RedriveQueue UpdateReplacePolicy", "Delete"),
        put("Resources RecordsQueue DeletionPolicy", "Retain"),
        put("Resources DeliveriesSlow DeletionPolicy", "RetainExceptOnCreate"),
        drop("Resources DeliveriesSlow UpdateReplacePolicy"),
    ],
    "what-uses-the-slow-queue-is-made-after-it": [
        put("Resources PublishFunction DependsOn", "StateClaim"),
        put("Resources RecordFunction DependsOn", "StateClaim"),
        put("Resources DeliveriesSlowPolicy DependsOn", "StateClaim"),
        property_of("MonitorFunction", "Events EveryMinute Properties Input", {"Fn::Sub": "${DeliveriesQueue}"}),
    ],
    "the-slow-queue-is-made-by-monitor-as-its-neighbours-are": [
        property_of("DeliveriesSlow", "ServiceToken", {"Fn::GetAtt": ["WakeFunction", "Arn"]}),
        property_of("DeliveriesSlow", "QueueName", {"Fn::Sub": "${AWS::StackName}-slow"}),
        property_of("DeliveriesSlow", "RedriveQueueUrl", {"Fn::Sub": "${QueueUrls.Value}-deadletters"}),
        without("DeliveriesSlow", "ServiceTimeout"),
        property_of("DeliveriesSlow", "Attributes VisibilityTimeout", "731"),
    ],
    "the-slow-lane-is-as-wide-as-was-asked-for": [
        property_of("DeliverFunction", f"{SLOW} ScalingConfig MaximumConcurrency", 10),
        property_of("MonitorFunction", "Environment Variables DELIVER_SLOW_MAXIMUM_CONCURRENCY", 10),
        put("Conditions IsSlowNarrow", {"Condition": "IsDeliverNarrow"}),
        without("DeliverFunction", f"{SLOW} Enabled"),
        put("Conditions IsSlowRead", {"Fn::Equals": [{"Ref": "DeliverSlow"}, "on"]}),
    ],
    "deliver-reads-both-of-its-queues": [
        without("DeliverFunction", "Events DeliveriesSlow"),
        property_of("DeliverFunction", f"{SLOW} BatchSize", 10),
        property_of("DeliverFunction", f"{SLOW} MaximumBatchingWindowInSeconds", 0),
    ],
    "adoption-is-all-or-nothing": [
        drop("Rules AdoptionNamesEveryBucket"),
        drop("Rules BucketsAreAdoptedWithTheirQueues"),
        drop("Rules AdoptionNamesEveryBucket Assertions 1"),
        drop("Rules BucketsAreAdoptedWithTheirQueues Assertions 2"),
    ],
    "what-is-adopted-is-all-that-differs": [
        drop("Resources DeliveriesQueue Condition"),
        drop("Resources LogBucket Condition"),
        property_of("WakeFunction", "Environment Variables STATE_BUCKET", {"Ref": "StateBucket"}),
        property_of("DeliverFunction", "Events Deliveries Properties Queue",
                    {"Fn::GetAtt": ["DeliveriesQueue", "Arn"]}),
        property_of("StateBucketPolicy", "Bucket", {"Ref": "StateBucket"}),
        put("Outputs DeliveriesQueueUrl Value", {"Ref": "DeliveriesQueue"}),
        property_of("RedriveAlarm", "Dimensions 0 Value", {"Fn::GetAtt": ["RedriveQueue", "QueueName"]}),
        grant("PublishRole", "sqs:SendMessage", {"Fn::GetAtt": ["DeliveriesQueue", "Arn"]}),
    ],
    "what-uses-a-queue-is-made-after-it": [
        property_of("QueuePrefix", "Description", "The beginning of names."),
        property_of("QueueUrls", "Value", "https://sqs.us-east-1.amazonaws.com/123456789012/posthaste"),
    ],
    "two-stacks-never-work-on-one-state": [
        drop("Resources StateClaim"),
        without("StateClaim", "ServiceTimeout"),
        property_of("StateClaim", "StateBucket", {"Ref": "LogBucket"}),
        drop("Resources WakeFunction DependsOn"),
        drop("Resources DeliveriesSlow DependsOn"),
        drop("Resources RedriveQueuePolicy DependsOn"),
        drop("Resources StateBucketPolicy DependsOn"),
        without("MonitorFunction", "Events EveryMinute Properties Input"),
    ],
    "buckets-outlive-the-stack": [
        drop("Resources StateBucket DeletionPolicy"),
        put("Resources StateBucket DeletionPolicy", "RetainExceptOnCreate"),
        put("Resources DeadLetterBucket DeletionPolicy", "Retain"),
        put("Resources DeadLetterBucket UpdateReplacePolicy", "Delete"),
        drop("Resources LogBucket DeletionPolicy"),
    ],
    "state-has-former-versions-for-a-time": [
        without("StateBucket", "VersioningConfiguration"),
        without("StateBucket", "LifecycleConfiguration Rules 0 NoncurrentVersionExpiration"),
    ],
    "the-log-keeps-no-former-versions": [
        property_of("LogBucket", "VersioningConfiguration", {"Status": "Enabled"}),
    ],
    "objects-go-when-nothing-needs-them": [
        property_of("LogBucket", "LifecycleConfiguration Rules 1 ExpirationInDays", 8),
        property_of("LogBucket", "LifecycleConfiguration Rules 1 Prefix", "date="),
        property_of("StateBucket", "LifecycleConfiguration Rules 1 ExpirationInDays", 7),
        property_of("StateBucket", "LifecycleConfiguration Rules 2 Status", "Disabled"),
        property_of("StateBucket", "LifecycleConfiguration Rules 0 ExpirationInDays", 30),
        property_of("StateBucket", "LifecycleConfiguration Rules 1 Prefix", "topics/"),
        property_of("DeadLetterBucket", "LifecycleConfiguration Rules 1", {"Ref": "AWS::NoValue"}),
    ],
    "uploads-that-were-given-up-go": [
        without("DeadLetterBucket", "LifecycleConfiguration Rules 0 AbortIncompleteMultipartUpload")
    ],
    "deliver-alone-may-loop": [
        without("DeliverFunction", "RecursiveLoop"),
        property_of("DeadletterFunction", "RecursiveLoop", "Allow"),
    ],
    "concurrency-is-bounded-and-fits-what-is-reserved": [
        without("DeliverFunction", f"{DELIVERIES} ScalingConfig"),
        property_of("DeliverFunction", f"{DELIVERIES} ScalingConfig MaximumConcurrency", 1001),
        property_of("DeliverFunction", "ReservedConcurrentExecutions Fn::If 1", {"Ref": "DeliverMaximumConcurrency"}),
        property_of("DeadletterFunction", "Events Redrive Properties ScalingConfig MaximumConcurrency", 3),
        property_of("RecordFunction", "Events Records Properties ScalingConfig MaximumConcurrency", 3),
        without("RecordFunction", "Events Records Properties ScalingConfig"),
        property_of("MonitorFunction", "ReservedConcurrentExecutions", 1),
    ],
    "nothing-is-reserved-unless-asked-for": [
        property_of("MonitorFunction", "ReservedConcurrentExecutions", 1),
        without("PublishFunction", "ReservedConcurrentExecutions"),
    ],
    "a-public-url-asks-for-a-key": [
        property_of("MonitorFunction", "FunctionUrlConfig", {"AuthType": "NONE"}),
        property_of("PublishUrlPermission", "FunctionName", {"Ref": "DeliverFunction"}),
        put("Resources PublishUrlInvokePermission Condition", "UsesFunctionUrls"),
    ],
    "a-public-url-can-be-called": [
        drop("Resources PublishUrlPermission"),
        drop("Resources PublishUrlInvokePermission"),
        without("PublishUrlInvokePermission", "InvokedViaFunctionUrl"),
    ],
    "logs-are-json-and-kept-for-a-time": [
        without("WakeLogGroup", "RetentionInDays"),
        without("WakeFunction", "LoggingConfig"),
        property_of("WakeFunction", "LoggingConfig ApplicationLogLevel", "WARN"),
        property_of("WakeFunction", "LoggingConfig LogGroup", {"Ref": "ManageLogGroup"}),
    ],
    "logs-outlive-the-stack-where-that-was-asked-for": [
        drop("Resources WakeKeptLogGroup DeletionPolicy"),
        put("Resources WakeKeptLogGroup UpdateReplacePolicy", "Delete"),
        put("Resources WakeLogGroup DeletionPolicy", "Retain"),
        property_of("WakeKeptLogGroup", "LogGroupName", {"Fn::Sub": "/aws/lambda/${AWS::StackName}/wake"}),
        put("Conditions DoLogsGo", {"Fn::Equals": ["1", "1"]}),
    ],
    "schedules-are-never-retried": [
        without("WakeFunction", "EventInvokeConfig"),
        without("MonitorFunction", "Events EveryMinute Properties RetryPolicy"),
        without("MonitorFunction", "Events"),
        without("RecordFunction", "EventInvokeConfig"),
        without("RecordFunction", "Events Merge"),
    ],
    "functions-run-on-the-processor-asked-for": [
        put("Globals Function Architectures", ["x86_64"]),
        put("Globals Function Runtime", "provided.al2"),
    ],
    "roles-may-do-what-the-golden-list-says": [
        grant("PublishRole", "s3:DeleteObject", {"Fn::Sub": "${StateBucket.Arn}/payloads/*"}),
        revoke("PublishRole", "TellAbsentFromForbidden"),
        revoke("RecordRole", "UseKey"),
        put("Conditions HasKey", {"Fn::Equals": [{"Ref": "KmsKeyUse"}, "encrypt"]}),
        revoke("ManageRole", "JoinNetwork"),
        grant("WakeRole", "ec2:CreateNetworkInterface", "*"),
        grant("DeliverRole", "kms:Encrypt", {"Ref": "KmsKeyArn"}),
    ],
    "roles-name-what-they-touch": [
        grant("WakeRole", "s3:*", {"Fn::GetAtt": ["StateBucket", "Arn"]}),
        grant("WakeRole", "s3:GetObject", "*"),
        grant("WakeRole", "s3:GetObject", "arn:aws:s3:::another/*"),
        grant("WakeRole", "kms:Decrypt", "*"),
        grant("WakeRole", "ec2:DescribeVpcs", "*"),
        property_of("WakeRole", "ManagedPolicyArns", ["arn:aws:iam::aws:policy/AdministratorAccess"]),
    ],
    "roles-have-the-boundary-and-the-path-that-were-given": [
        without("WakeRole", "PermissionsBoundary"),
        property_of("RecordRole", "PermissionsBoundary Fn::If 2", "arn:aws:iam::aws:policy/ReadOnlyAccess"),
        without("ManageRole", "Path"),
        property_of("DeliverRole", "Path", {"Ref": "RolePath"}),
    ],
    "each-function-has-a-role-of-its-own": [
        without("WakeFunction", "Role"),
        property_of("WakeFunction", "Role", {"Fn::GetAtt": ["DeliverRole", "Arn"]}),
        property_of("WakeRole", "AssumeRolePolicyDocument Statement 0 Principal", "*"),
        grant("WakeRole", "logs:PutLogEvents", {"Fn::GetAtt": ["ManageLogGroup", "Arn"]}),
    ],
    "alarms-tell-the-topic-that-was-given": [
        without("RedriveAlarm", "AlarmActions"),
        property_of("RedriveAlarm", "AlarmActions", [{"Ref": "AlarmTopicArn"}]),
        without("RedriveAlarm", "AlarmDescription"),
    ],
    "silence-is-an-alarm-for-what-a-schedule-starts-every-minute": [
        property_of("MonitorSilentAlarm", "TreatMissingData", "missing"),
        property_of("WakeSilentAlarm", "TreatMissingData", "notBreaching"),
        property_of("RedriveAlarm", "TreatMissingData", "breaching"),
    ],
    "each-level-has-its-alarms": [
        drop("Resources WakeErrorsAlarm"),
        drop("Resources DeadLettersRefusedAlarm"),
        drop("Resources DeliveriesSlowAgeAlarm"),
        drop("Resources DeliveriesReturnedAlarm"),
        drop("Resources DeadLettersReturnedAlarm"),
        put("Resources DeliverErrorsAlarm Condition", "HasAllAlarms"),
        put("Resources DeadletterErrorsAlarm Condition", "HasAllAlarms"),
        drop("Resources RecordsLostAlarm"),
        drop("Resources RecordsAgeAlarm"),
        drop("Resources RecordsRefusedAlarm"),
        drop("Resources MonitorSilentAlarm"),
        drop("Resources WakeSilentAlarm"),
        drop("Resources PublishUrlErrorsAlarm"),
        drop("Resources ManageUrlErrorsAlarm"),
        property_of("DrainTimePressureAlarm", "Dimensions 0 Value", "log-disk"),
        drop("Resources RedriveAlarm Condition"),
        put("Resources RedriveAlarm Condition", "HasAlarms"),
        put("Resources WakeSilentAlarm Condition", "HasAllAlarms"),
        put("Resources MonitorSilentAlarm Condition", "HasAlarms"),
    ],
    "the-pager-hears-of-each-essential-alarm-and-of-nothing-else": [
        drop("Resources PagingAlarm"),
        put("Resources PagingAlarm Condition", "HasAlarms"),
        property_of("PagingAlarm", "AlarmActions", [{"Ref": "AlarmTopicArn"}]),
        without("PagingAlarm", "OKActions"),
        without("PagingAlarm", "AlarmRule Fn::Join 1 5"),
        property_of("PagingAlarm", "AlarmRule Fn::Join 1 0", {"Fn::Sub": 'ALARM("${RedriveAlarm.Arn}")'}),
        property_of("PagingAlarm", "AlarmRule Fn::Join 0", " AND "),
    ],
    "a-pager-without-alarms-is-refused": [drop("Rules PagingNeedsAlarms")],
    "alarms-and-metrics-of-an-idle-stack-cost-little": [six_more_alarms],
    "a-single-failure-of-what-is-tried-again-wakes-nobody": [
        property_of("DeliverErrorsAlarm", "Period", 300),
        without("DeadletterErrorsAlarm", "DatapointsToAlarm"),
        property_of("WakeErrorsAlarm", "DatapointsToAlarm", 1),
        property_of("MonitorErrorsAlarm", "EvaluationPeriods", 1),
    ],
    "an-alarm-looks-at-what-is-written-with-its-invocation": [
        property_of("RecordsLostAlarm", "MetricName", "LogRecordsWrittenCount"),
    ],
    "what-is-told-in-tries-is-looked-for-as-long-as-a-try-may-take": [
        property_of("DeadLettersRefusedAlarm", "EvaluationPeriods", 1),
        without("DeadLettersRefusedAlarm", "DatapointsToAlarm"),
        property_of("DeliveriesReturnedAlarm", "EvaluationPeriods", 2),
        property_of("DeadLettersQueue", "VisibilityTimeout", 1_800),
    ],
    "our-metrics-are-those-that-the-code-sends": [
        property_of("DeadLettersRefusedAlarm", "Dimensions", [{"Name": "topic", "Value": "orders"}]),
        property_of("DeliveriesReturnedAlarm", "Dimensions 0 Value", "publish"),
        property_of("DeadLettersReturnedAlarm", "Dimensions", []),
        property_of("DrainTimePressureAlarm", "MetricName", "PressureLevels"),
        property_of("DrainTimePressureAlarm", "Dimensions 0 Value", "drain"),
        property_of("Dashboard", "DashboardBody", '{"widgets": []}'),
    ],
    "the-dashboard-shows-every-alarm": [
        property_of("Dashboard", "DashboardBody", '{"widgets": []}'),
        property_of("Dashboard", "DashboardBody Fn::Join 1 2", ""),
        put("Resources Dashboard Properties DashboardBody Fn::Join 1 3 Fn::If 0", "HasAlarms"),
        property_of("Dashboard", "DashboardBody Fn::Join 1 4", ""),
    ],
    "parameters-are-described-and-in-one-group": [
        drop("Parameters Tarpit Description"),
        drop("Metadata AWS::CloudFormation::Interface ParameterGroups 0"),
        put("Metadata AWS::CloudFormation::Interface ParameterGroups 0 Parameters 0", "Unknown"),
    ],
    "numbers-have-bounds": [drop("Parameters RequestsMax MinValue")],
    "a-profile-sets-what-has-its-default": [
        put("Mappings Profiles cheap DeliverBatchWindow", "0"),
        put("Mappings Profiles fast DeliverBatchSize", "1"),
        put("Conditions IsDeliverMemoryGiven", {"Fn::Equals": ["1", "1"]}),
        property_of("PublishFunction", "MemorySize Fn::If 1", 256),
        property_of("MonitorFunction", "Environment Variables DELIVER_BATCH_SIZE", {"Ref": "DeliverBatchSize"}),
    ],
    "what-aws-would-refuse-is-refused-at-once": [
        drop("Rules FullBatchesNeedAWindow"),
        put("Rules FullBatchesNeedAWindow RuleCondition", {"Fn::Equals": [{"Ref": "DeliverBatchWindow"}, "0"]}),
        drop("Rules ApiGatewayEndsADelay"),
        drop("Rules ADomainNameHasACertificate"),
        drop("Rules ADomainNameNeedsApiGateway"),
        drop("Rules ANetworkIsGivenAsAWhole"),
        put("Rules ANetworkIsGivenAsAWhole Assertions 0 Assert Fn::Or 1", {"Fn::Equals": ["1", "0"]}),
        put("Rules FullBatchesNeedAWindow Assertions 0 Assert Fn::Contains 0", ["1"]),
    ],
    "the-admin-key-stays-secret": [
        drop("Parameters AdminKeySha256 NoEcho"),
        put("Parameters AdminKeySha256 Default", "5c1e" * 16),
        put("Parameters AdminKeySha256 AllowedPattern", ".*"),
        drop("Rules AdminKeyIsNotEmpty"),
        property_of("PublishFunction", "Environment Variables ADMIN_KEY_SHA256", {"Ref": "AdminKeySha256"}),
        put("Outputs Key", {"Value": {"Ref": "AdminKeySha256"}}),
    ],
    "outputs-say-where-everything-is": [
        drop("Outputs ManageUrl"),
        put("Outputs PublishUrl Value Fn::If 2 Fn::If 1", {"Fn::GetAtt": ["ManageApi", "ApiEndpoint"]}),
        put("Outputs PublishUrl Value Fn::If 1", {"Fn::GetAtt": ["PublishApi", "ApiEndpoint"]}),
        drop("Outputs PublishDomainTarget"),
        put("Outputs StateBucketName Value", {"Ref": "DeadLetterBucket"}),
        put("Outputs AdoptionParameters Value Fn::Sub 1 Key", ""),
    ],
    "each-function-is-built-from-its-program": [
        put("Resources WakeFunction Metadata BuildProperties Binary", "posthaste-delivery"),
        property_of("WakeFunction", "Handler", "deliver"),
        put("Resources WakeFunction Metadata BuildProperties Flags", ["--release"]),
        put("Globals Function CodeUri", "."),
    ],
    "timeouts-are-those-the-code-counts-with": [property_of("ManageFunction", "Timeout", 29)],
}
