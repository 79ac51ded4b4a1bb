"""What a trial costs at most, from its own counts and the list prices of us-east-1. Nothing is taken off for a free
tier. The prices of SQS, S3 and Lambda are those of the cost model (tests/aws/tests/cost/prices.rs), those of
CloudWatch's alarms and metrics those of the template's rules."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[3]
PRICES = ROOT / "tests/aws/tests/cost/prices.rs"
ALARM_PRICES = ROOT / "tests/aws/template/rules/alarms.py"
TEMPLATE = ROOT / "template.yaml"

# What the trial promises.
DOLLARS_MAX = 0.10

# Kept for the removal, which makes few requests: it lists and deletes. Deletions cost nothing.
REMOVAL_DOLLARS = 0.005

HOURS_PER_MONTH = 720

# A dashboard a month. https://aws.amazon.com/cloudwatch/pricing/
DASHBOARD_DOLLARS = 3.00

# A request of CloudWatch's metrics. https://aws.amazon.com/cloudwatch/pricing/
CLOUDWATCH_REQUEST = 0.01 / 1_000

# A key a month, and a request that uses it. https://aws.amazon.com/kms/pricing/
KEY_DOLLARS = 1.00
KMS_REQUEST = 0.03 / 10_000

# A GB of log lines. https://aws.amazon.com/cloudwatch/pricing/
LOG_GB_DOLLARS = 0.50

# At most, of log lines, for each attempt and each minute of a stack, and of what leaves AWS, for each attempt.
LOG_GB_PER_ATTEMPT, LOG_GB_PER_MINUTE, OUT_GB_PER_ATTEMPT = 20e-6, 50e-6, 10e-6

# The alarms of a stack.
ALARMS = len(re.findall(r"^    Type: AWS::CloudWatch::Alarm$", TEMPLATE.read_text(), re.MULTILINE))

# Metrics of its own that a stack writes while the trial drives it. A test counts them on the emulator.
METRICS_MAX = 25

# At most, for each attempt of a delivery, with its records, its dead letter and the trial's receiver: far above what
# the cost test counts. A put has the price of a list.
SQS_PER_ATTEMPT, PUTS_PER_ATTEMPT, GETS_PER_ATTEMPT, INVOCATIONS_PER_ATTEMPT = 10, 6, 12, 4

# At most, for each minute of a stack: the pollers of five mappings, wake, monitor and the merges of record.
SQS_PER_MINUTE, PUTS_PER_MINUTE, GETS_PER_MINUTE, GB_SECONDS_PER_MINUTE = 120, 12, 100, 4

# At most, beside that, for each minute in which the queues are full: monitor samples every two seconds for all of it.
SQS_PER_FULL_MINUTE, PUTS_PER_FULL_MINUTE, GETS_PER_FULL_MINUTE, GB_SECONDS_PER_FULL_MINUTE = 150, 35, 70, 7.5

# Memory of deliver, which is the most that anything on an attempt's way has but record.
GB = 0.5

# At most, of an invocation that the trial asks for: a minute of monitor, with 128 MB.
GB_SECONDS_PER_INVOCATION = 7.5

# Kinds of requests to S3 that have the price of a put. Deletions are free, and all others are gets.
PUTS = ("Put", "Copy", "Post", "List", "Create", "Upload", "Complete")


def price(name, path=PRICES):
    """A constant of the cost model in dollars. It stands there as a number, or as one for a million."""
    constant = rf"^(?:pub\(crate\) )?(?:const )?{name}(?:: f64)? = ([0-9._]+)( / MILLION)?"
    found = re.search(constant, path.read_text(), re.M)
    if not found:
        raise LookupError(f"{path} has no price {name}")
    return float(found[1].replace("_", "")) / (1e6 if found[2] else 1)


class TooDear(Exception):
    """What is to come could cost more than the trial may."""


class Ledger:
    """Counts, and what they come to. `now` is in seconds, of a clock whose hours are those that AWS bills."""

    def __init__(self, now):
        self.now = now
        self.sqs, self.puts, self.gets, self.invocation = map(price, ("SQS_REQUEST", "S3_PUT", "S3_GET", "INVOCATION"))
        self.gb_second, self.gb_out = price("GB_SECOND"), price("GB_OUT")
        alarm, metric = (price(name, ALARM_PRICES) for name in ("ALARM_DOLLARS", "METRIC_DOLLARS"))
        self.by_hour = {
            "alarm": alarm / HOURS_PER_MONTH, "metric": metric / HOURS_PER_MONTH,
            "dashboard": DASHBOARD_DOLLARS / HOURS_PER_MONTH, "key": KEY_DOLLARS / HOURS_PER_MONTH,
        }
        self.counts = {"attempts": 0, "attemptSeconds": 0.0, "fullMinutes": 0}
        self.standing = {}

    def request(self, service, operation):
        """Counts a request of the trial itself."""
        if service == "s3":
            kind = "s3 put" if operation.startswith(PUTS) else "s3 get"
            kind = "free" if operation.startswith("Delete") else kind
        elif service in ("sqs", "kms", "cloudwatch"):
            kind = service
        else:
            kind = "invocation" if (service, operation) == ("lambda", "Invoke") else "free"
        self.counts[kind] = self.counts.get(kind, 0) + 1

    def attempts(self, count, secs=1.0):
        """Counts attempts that the trial causes, each of which takes so long at most."""
        self.counts["attempts"] += count
        self.counts["attemptSeconds"] += count * secs

    def full(self, minutes):
        """Counts minutes in which the queues are full at most."""
        self.counts["fullMinutes"] += minutes

    def stands(self, what, is_working=False, **hourly):
        """Something that is billed by the hour is there from now on: how many alarms, metrics, dashboards and keys. A
        stack that is working makes requests as well."""
        self.standing[what] = {"from": self.now(), "to": None, "isWorking": is_working, "hourly": hourly}

    def is_gone(self, what):
        """It is there no longer."""
        if what in self.standing:
            self.standing[what]["to"] = self.standing[what]["to"] or self.now()

    def bound(self, more_secs=0):
        """Dollars that everything so far costs at most, if what stands goes on for so much longer."""
        counted = self.counts.get
        one = self._dollars(SQS_PER_ATTEMPT, PUTS_PER_ATTEMPT, GETS_PER_ATTEMPT, 0)
        one += INVOCATIONS_PER_ATTEMPT * self.invocation
        one += LOG_GB_PER_ATTEMPT * LOG_GB_DOLLARS + OUT_GB_PER_ATTEMPT * self.gb_out
        seconds = INVOCATIONS_PER_ATTEMPT * counted("attemptSeconds") * GB * self.gb_second
        requests = (
            counted("sqs", 0) * self.sqs + counted("s3 put", 0) * self.puts + counted("s3 get", 0) * self.gets
            + counted("kms", 0) * KMS_REQUEST + counted("cloudwatch", 0) * CLOUDWATCH_REQUEST
            + counted("invocation", 0) * (self.invocation + GB_SECONDS_PER_INVOCATION * self.gb_second)
        )
        full = counted("fullMinutes") * self._dollars(
            SQS_PER_FULL_MINUTE, PUTS_PER_FULL_MINUTE, GETS_PER_FULL_MINUTE, GB_SECONDS_PER_FULL_MINUTE
        )
        stood = sum(self._stood(one, more_secs) for one in self.standing.values())
        return counted("attempts") * one + seconds + requests + full + stood

    def afford(self, what, dollars, secs):
        """Refuses what could bring the trial above its bound, with the removal after it."""
        bound = self.bound(secs) + dollars + REMOVAL_DOLLARS
        if bound > DOLLARS_MAX:
            raise TooDear(f"{what} could bring the trial to ${bound:.3f}, and it may cost ${DOLLARS_MAX:.2f}")

    def _stood(self, standing, more_secs):
        """CloudWatch and KMS bill begun hours, and the rest is by the minute."""
        ends = standing["to"] or self.now() + more_secs
        hours = int(ends // 3600) - int(standing["from"] // 3600) + 1
        hourly = sum(count * self.by_hour[kind] for kind, count in standing["hourly"].items())
        minutes = (ends - standing["from"]) / 60 if standing["isWorking"] else 0
        minute = self._dollars(SQS_PER_MINUTE, PUTS_PER_MINUTE, GETS_PER_MINUTE, GB_SECONDS_PER_MINUTE)
        return hours * hourly + minutes * (minute + LOG_GB_PER_MINUTE * LOG_GB_DOLLARS)

    def _dollars(self, sqs, puts, gets, gb_seconds):
        return sqs * self.sqs + puts * self.puts + gets * self.gets + gb_seconds * self.gb_second
