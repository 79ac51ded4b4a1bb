//! The parameters of the template: those to read first, and all others by subject. A parameter that
//! gives a function the variable of a setting has its default and bounds from the setting's row in
//! the table.

use crate::parameter::{Parameter, ParameterGroup};

/// Makes a list of groups. rustfmt leaves the rows as they are.
macro_rules! groups {
    ($($subject:literal { $($row:expr;)* })*) => {
        &[$(ParameterGroup { subject: $subject, parameters: &[$($row),*] }),*]
    };
}

/// Every parameter. Those of the first group are to be read first.
pub static GROUPS: &[ParameterGroup] = groups! {
    "To read first" {
        Parameter::of_setting("AdminKeySha256",
            "The SHA-256 digest of the key of the management API, which may change every topic and read every \
             dead letter. The key itself has 16 characters or more and stays with its operators. Later \
             deployments keep what was given once.")
            .pattern("[0-9A-Fa-f]{64}",
                "64 hexadecimal digits, as `printf %s \"$POSTHASTE_KEY\" | openssl dgst -sha256 -r` prints \
                 them.")
            .label("digest of the admin key");
        Parameter::choice("Profile", "default", &["default", "cheap", "fast"],
            "What the stack is to be good at. It sets DeliverBatchWindow, DeliverBatchSize, PublishMemory and \
             DeliverMemory where they have their defaults. cheap - events wait up to a second. fast - \
             publish and deliver have a whole core each.")
            .label("what the stack is to be good at");
        Parameter::of_setting("DeliverMaximumConcurrency",
            "Most invocations of deliver at once. An account may run 1000 invocations of all its functions at \
             once, a new one often only 10; choose 5 there.")
            .label("how much it delivers at once");
        Parameter::text("AlarmTopicArn", "",
            "The SNS topic that hears of each alarm, for mail or chat. Empty - the AWS console alone shows \
             alarms.")
            .pattern("(arn:aws[a-z-]*:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]+)?",
                "The ARN of an SNS topic, or empty.")
            .label("who hears of alarms");
        Parameter::text("PagingTopicArn", "",
            "The SNS topic that wakes a person. It hears of one alarm, PagingAlarm, while any of the \
             essential ones is on, and when the last of them is off. Empty - there is no PagingAlarm.")
            .pattern("(arn:aws[a-z-]*:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]+)?",
                "The ARN of an SNS topic, or empty.")
            .label("who is woken");
        Parameter::choice("Alarms", "all", &["none", "essential", "all"],
            "Which alarms there are. essential - those that mean that posthaste is down or that events are \
             stuck. all - also those that can wait until morning. none - no alarms.")
            .label("which alarms there are");
        Parameter::of_setting("NoticesTopic",
            "The topic that gets a notice when the pressure changes, and when a link is down or up again. \
             Empty - only topics with a subscription on the link that name a topic for notices get one.")
            .pattern("([A-Za-z0-9][A-Za-z0-9-]{0,63})?", "The name of a topic, or nothing.")
            .label("topic for notices of links and pressure");
        Parameter::of_setting("ManagePublicUrl",
            "Where endpoints reach manage, so that they may consent to events by calling it \
             (endpoint.validation). A function cannot be told its own URL - give the output ManageUrl with \
             the second deployment. Empty - they consent at once only.")
            .pattern("(https?://[^\\s\\\\/?#@]+(/[^\\s\\\\?#]*)?)?",
                "A URL that begins with https:// or http://, without a query, or empty.")
            .label("where endpoints consent later");
        Parameter::number("DeadLetterRetentionDays", 365, 0, 36_500,
            "Days after which dead letters are deleted from their bucket. 0 - never.")
            .label("how long dead letters are kept");
        Parameter::of_setting("DeliveryLogRetentionDays",
            "Days after which the files of the delivery log are deleted from their bucket.")
            .label("how long the delivery log is kept");
    }
    "Access" {
        Parameter::choice("PublishUrlAuthType", "NONE", &["NONE", "AWS_IAM"],
            "Who may call the publish URL. NONE - everybody reaches it, and the function asks for the topic's \
             key. AWS_IAM - requests must be signed as well; the topic's key then goes into the header \
             aeg-sas-key.");
        Parameter::of_setting("AllowEndpoints",
            "For development - comma-separated networks (10.0.0.0/8) or addresses that endpoints may have \
             although they are not public, over plain http and on any port. Empty means none.");
        Parameter::of_setting("DnsServer",
            "The only name server that is asked for endpoints' host names, by address and port. Empty - the \
             one of Lambda's own network.")
            .pattern("([0-9.]+:[0-9]+|\\[[0-9A-Fa-f:.]+\\]:[0-9]+)?",
                "An address and port such as 10.0.0.2:53 or [fd00::2]:53, or empty.");
        Parameter::of_setting("WebhookOrigin",
            "The host name that requests to endpoints carry as WebHook-Request-Origin. Empty means posthaste.");
        Parameter::of_setting("SenderHeaders",
            "Which headers of requests say who sends them, and by which names, as one line of JSON - \
             {\"prefix\":\"acme\",\"omit\":[\"eventGrid\"]}. A topic may have its own. Empty - all, as \
             docs/src/delivery.md lists them.");
        Parameter::of_setting("Console",
            "Whether manage has pages for operators, under /console of its URL. They ask for the admin key.");
    }
    "API Gateway" {
        Parameter::choice("HttpFrontend", "FunctionUrl", &["FunctionUrl", "ApiGateway"],
            "What takes requests to publish and manage. FunctionUrl - Lambda itself, at no price. ApiGateway \
             - an HTTP API for each, which throttles and may have a domain name of yours. The URLs change \
             with it. Not with Tarpit=delay.");
        Parameter::number("PublishThrottleRate", 1000, 1, 10_000,
            "Requests per second that the HTTP API of publish takes on average. More are answered 429. An \
             account has 10000 per region by default.");
        Parameter::number("PublishThrottleBurst", 500, 1, 5000,
            "Requests that the HTTP API of publish takes at once, above the rate.");
        Parameter::number("ManageThrottleRate", 50, 1, 10_000,
            "Requests per second that the HTTP API of manage takes on average. More are answered 429.");
        Parameter::number("ManageThrottleBurst", 100, 1, 5000,
            "Requests that the HTTP API of manage takes at once, above the rate.");
        Parameter::text("PublishDomainName", "",
            "The domain name under which producers reach the HTTP API of publish. Its DNS record is yours to \
             make - an alias or CNAME to the output PublishDomainTarget. Empty - the name that API Gateway \
             gives.")
            .pattern("([a-z0-9]([a-z0-9-]*[a-z0-9])?(\\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)+)?",
                "A domain name in lower case such as events.example.com, or empty.");
        Parameter::text("PublishCertificateArn", "",
            "The certificate of PublishDomainName, in ACM of the stack's region.")
            .pattern("(arn:aws[a-z-]*:acm:[a-z0-9-]+:[0-9]{12}:certificate/[A-Za-z0-9-]+)?",
                "The ARN of a certificate in ACM, or empty.");
    }
    "Network" {
        Parameter::list("SubnetIds",
            "Private subnets in which deliver and manage run, the two that connect to endpoints. Behind a NAT \
             gateway endpoints see its address alone. Empty - the functions run in no VPC.")
            .pattern("(subnet-[0-9a-f]+)?", "Ids of subnets with commas between them, or empty.");
        Parameter::list("SecurityGroupIds",
            "Security groups of deliver and manage in SubnetIds. They need outbound TCP to ports 443, 80 and \
             8443.")
            .pattern("(sg-[0-9a-f]+)?", "Ids of security groups with commas between them, or empty.");
    }
    "Encryption" {
        Parameter::text("KmsKeyArn", "",
            "A symmetric key in KMS that encrypts queues, buckets, log groups and the environment of \
             functions. Its policy must let CloudWatch Logs use it \
             (docs/src/operating/aws-network-and-keys.md). Empty - keys that AWS owns. Never clear or change \
             it while something is left that it encrypted.")
            .pattern("(arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/[A-Za-z0-9-]+)?",
                "The ARN of a key in KMS, not of an alias, or empty.");
        Parameter::choice("KmsKeyUse", "encrypt", &["encrypt", "decrypt"],
            "What KmsKeyArn is used for. encrypt - for everything that is written. decrypt - the functions \
             may use the key, and nothing new is encrypted with it, which is the step before a running stack \
             encrypts, and the step before it leaves the key.");
    }
    "Delivery" {
        Parameter::of_setting("DeliverBatchSize",
            "Most messages that one invocation of deliver takes. More than 10 needs a batch window. With 1 the \
             delivery queue is fair to subscriptions, which SQS bills. The default leaves it to Profile.");
        Parameter::number("DeliverBatchWindow", 0, 0, 10,
            "Seconds that messages may wait for a fuller batch. Saves invocations, costs latency. The default \
             leaves it to Profile.");
        Parameter::of_setting("DeliverSlow",
            "Whether deliveries to slow endpoints have a queue of their own, so that others do not wait \
             behind them. drain - nothing more goes into it, and what is there is delivered, the step before \
             off and before an earlier version. off - it is not read either.");
        Parameter::of_setting("SlowAfter",
            "Seconds after which an answer is slow. An endpoint that makes deliver wait longer gets its \
             events from the queue of slow deliveries for at least five minutes.");
        Parameter::of_setting("DeliverSlowMaximumConcurrency",
            "Most invocations of deliver at once that read the queue of slow deliveries, beside \
             DeliverMaximumConcurrency. Where that is below 10, the default here is 2.");
        Parameter::of_setting("RequestsMax",
            "Most requests to endpoints that one invocation of deliver keeps open.");
        Parameter::of_setting("RequestsPerLinkStart",
            "Requests of one subscription that one invocation of deliver keeps open while few wait for it. \
             Not more than RequestsPerLinkMax.");
        Parameter::of_setting("WaitingPerConnection",
            "For every so many requests that wait for one subscription, one more is kept open, up to three \
             quarters of RequestsPerLinkMax.");
        Parameter::of_setting("RequestsPerLinkMax",
            "Most requests to one scheme, host and port that one invocation of deliver keeps open, however \
             many wait. All invocations together - DeliverMaximumConcurrency times as many, 3200 with the \
             defaults. Only maxRequestsPerSecond and maxConcurrentRequests of a subscription bound them all.");
        Parameter::of_setting("LinkSettings",
            "Settings of failing endpoints, as one line of JSON - {\"glitches\":4,\"laterHold\":\"PT30M\"}. \
             docs/src/reference/link-settings.md lists the keys. Empty - the defaults.");
        Parameter::of_setting("RegistryMaxAge",
            "Seconds after which functions look again whether a topic has changed, its keys included.");
        Parameter::of_setting("DeliveryLog",
            "How much the delivery log keeps of topics that do not set deliveryLog. off - nothing. attempts - \
             attempts and their answers. payloads - also the payload of each event, so that it can be sent \
             again.");
    }
    "Back pressure" {
        Parameter::of_setting("PressureProfile",
            "When producers are slowed and refused. off - never.");
        Parameter::of_setting("PressureSettings",
            "Settings of back pressure under Exchange's names, as one line of JSON - \
             {\"SubmissionQueueHighThreshold\":20000}. docs/src/reference/pressure-settings.md lists the \
             keys. Empty - the profile's defaults. To watch nothing, set PressureProfile to off, because the \
             alarm about a silent monitor goes by that.");
        Parameter::of_setting("PressureInterval",
            "Seconds between two samples of the queues while they are not calm. While they are, it is a \
             minute. Empty - the ResourceMonitoringInterval of PressureSettings, or 10.")
            .pattern("([1-9]|[1-5][0-9]|60)?", "A whole number from 1 to 60, or empty.");
        Parameter::of_setting("Tarpit",
            "How producers are slowed. advise - 429 with Retry-After. delay - the acknowledgement waits up to \
             55 seconds, which is billed and holds concurrency.");
    }
    "Dead letters and state" {
        Parameter::number("DeadletterBatchSize", 100, 1, 10_000,
            "Most dead letters that one invocation gathers into objects. It reads events back that were \
             stored for their size, up to 1 MB each: more of them need more DeadletterMemory.");
        Parameter::number("DeadletterBatchWindow", 60, 1, 300,
            "Seconds for which dead letters are gathered, so that they become few objects.");
        Parameter::of_setting("DisabledKeptMax",
            "The most that dead letters of events take which disabled subscriptions miss, such as 20GB. What \
             is missed beyond is skipped.")
            .pattern("[0-9]{1,6} ?[KMGT]?B", "A size such as 20GB.");
        Parameter::number("StateVersionDays", 30, 1, 3650,
            "Days for which former versions of topics are kept, to undo a mistake by hand.");
    }
    "Adoption of what an old stack left" {
        Parameter::text("AdoptFrom", "",
            "The name of the stack whose queues this one works on, which was deleted and may have had the \
             same name. Needs its three buckets as well. Empty - this stack makes queues and buckets of its \
             own.")
            .pattern("([A-Za-z][A-Za-z0-9-]{0,67})?", "The name of a stack, or empty.");
        Parameter::text("AdoptStateBucket", "",
            "The state bucket to adopt, with AdoptFrom. Empty - the stack makes one.")
            .pattern("([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])?", "The name of a bucket, or empty.");
        Parameter::text("AdoptDeadLetterBucket", "",
            "The dead-letter bucket to adopt, with AdoptFrom. Empty - the stack makes one.")
            .pattern("([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])?", "The name of a bucket, or empty.");
        Parameter::text("AdoptLogBucket", "",
            "The bucket of the delivery log to adopt, with AdoptFrom. Empty - the stack makes one.")
            .pattern("([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])?", "The name of a bucket, or empty.");
    }
    "Functions" {
        Parameter::choice("Architecture", "arm64", &["arm64", "x86_64"],
            "Of the functions' processors. arm64 costs a fifth less.");
        Parameter::number("PublishMemory", 256, 128, 10240,
            "MB of publish. Processor time grows with it, one core at 1769. The default leaves it to Profile.");
        Parameter::number("DeliverMemory", 512, 256, 10_240,
            "MB of deliver. A batch may hold 6 MB of messages; stored payloads and their bodies take 128 MB at \
             most. The default leaves it to Profile.");
        Parameter::number("WakeMemory", 256, 128, 10240,
            "MB of wake.");
        Parameter::number("DeadletterMemory", 512, 256, 10240,
            "MB of deadletter.");
        Parameter::number("MonitorMemory", 128, 128, 10240,
            "MB of monitor, which runs all the time while the queues fill up.");
        Parameter::number("ManageMemory", 256, 128, 10240,
            "MB of manage.");
        Parameter::number("RecordMemory", 1024, 512, 10240,
            "MB of record, which writes the delivery log and merges its files. A merge takes up to 400 MB.");
        Parameter::number("PublishReservedConcurrency", -1, -1, 10_000,
            "Invocations of publish at once, reserved and capped. Lambda takes 10 requests a second for each. \
             0 closes it. -1 - nothing reserved, no cap.");
        Parameter::number("ManageReservedConcurrency", -1, -1, 10_000,
            "Invocations of manage at once, reserved and capped. 0 closes it. -1 - nothing reserved, no cap.");
        Parameter::choice("ReserveDeliverConcurrency", "false", &["false", "true"],
            "Whether DeliverMaximumConcurrency and DeliverSlowMaximumConcurrency are reserved for deliver, \
             together, so that other functions never starve it.");
        Parameter::choice("ReserveBackgroundConcurrency", "false", &["false", "true"],
            "Whether 4 invocations are reserved for deadletter, 3 for record, 1 for wake and 2 for monitor.");
    }
    "Roles" {
        Parameter::text("PermissionsBoundary", "",
            "The managed policy that bounds what each role of the stack may do, where your organisation asks \
             for one. It must allow what the roles allow, or functions fail. Empty - the roles have no \
             boundary.")
            .pattern("(arn:aws[a-z-]*:iam::([0-9]{12}|aws):policy/[!-~]+)?",
                "The ARN of a managed policy of IAM, or empty.");
        Parameter::text("RolePath", "/",
            "The path of each role of the stack in IAM, such as /posthaste/, where your organisation asks for \
             one. Another path later replaces the roles.")
            .pattern("/([!-~]+/)?", "A path that begins and ends with a slash, such as /posthaste/.")
            .length_max(512);
    }
    "Logs and metrics" {
        Parameter::of_setting("LogLevel",
            "What the functions log.");
        Parameter::choice("SystemLogLevel", "WARN", &["WARN", "INFO", "DEBUG"],
            "What Lambda logs about invocations. INFO adds lines about memory and billed time to each, which \
             cost about as much as the invocation itself.");
        Parameter::number_of("LogRetentionDays", 30,
            &[
                1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653,
            ],
            "Days for which logs are kept.");
        Parameter::choice("LogsOutliveStack", "false", &["false", "true"],
            "Whether the log groups stay when the stack is deleted. Their names then have the stack's id in \
             them. To be chosen with the first deployment, as a change makes new groups, and true deletes \
             those that are there.");
        Parameter::of_setting("MetricsBy",
            "Whether metrics are split by topic or by subscription. Each distinct metric is billed every \
             month; as searchable fields of the log lines both are there either way.");
    }
    "Traces" {
        Parameter::of_setting("OtlpEndpoint",
            "The collector that gets traces and metrics by OTLP over HTTP, such as http://127.0.0.1:4318 of a \
             layer. The programs need their feature \"otlp\" for it. Empty is none.");
        Parameter::of_setting("OtlpHeaders",
            "Headers for the collector, as name=value with commas in between.");
        Parameter::of_setting("OtlpResource",
            "Attributes of all traces and metrics, as name=value with commas in between.");
        Parameter::of_setting("TraceRatio",
            "The share of the events without a traceparent that are traced, from 0 to 1.");
        Parameter::of_setting("TraceEndpoints",
            "Whether requests with one event carry the span of their attempt as traceparent.");
    }
    "Alarms" {
        Parameter::number("DeliveriesAgeAlarmSeconds", 3600, 1800, 1_209_600,
            "Alarm when the oldest message of a delivery queue is older, or when deliver has handed one back \
             for longer. Retries wait there for up to 15 minutes, and what a crashed invocation held for up \
             to 13.");
        Parameter::number("DeadLettersAgeAlarmSeconds", 3600, 1800, 1_209_600,
            "Alarm when the oldest message of the dead-letter queue is older, or when the dead-letter bucket \
             has refused a letter, or deadletter has handed one back, for longer.");
        Parameter::number_from("DeadLettersAlarmCount", 1, 1,
            "Alarm when at least so many messages were given up within five minutes.");
    }
};
