"""Sentences of the book with numbers, made from constants; and numbers on the same pages that are of another
kind: examples, measurements, and what other systems say."""

import sys

import pages
from constants import constant, default

# What a trial in an account may take.
sys.path.append(str(pages.ROOT / "tests/aws/account"))

import deadline  # noqa: E402
import ledger  # noqa: E402

MINUTE, HOUR, DAY = 60, 3600, 24 * 3600
KIB, MIB = 1024, 1024 * 1024

WORDS = "no one two three four five six seven eight nine ten eleven twelve".split()

RETRY = "shared/core/src/model/retry_policy.rs"
HEALTH = "shared/core/src/circuit/settings.rs"
LIMITS = "functions/deliver/src/limits.rs"


def health(field):
    return default("HealthSettings", field, HEALTH)


def arrival(field):
    return default("ArrivalSettings", field, "shared/core/src/model/arrival_settings.rs")


def setting_of_deliver(field):
    return default("DeliverSettings", field, LIMITS)


def short(seconds):
    """As tables have it: 10 s, 5 min, 1 h."""
    for unit, name in ((HOUR, "h"), (MINUTE, "min"), (1, "s")):
        if seconds >= unit and seconds % unit == 0:
            return f"{int(seconds // unit)} {name}"
    raise ValueError(seconds)


def clock(seconds):
    """A length as a clock shows it: 6:40 min, 22:47 h."""
    if seconds < MINUTE:
        return f"{seconds} s"
    if seconds < HOUR:
        return f"{seconds // MINUTE}:{seconds % MINUTE:02} min"
    minutes = round(seconds / MINUTE)
    return f"{minutes // 60}:{minutes % 60:02} h"


# The schedule, attempt by attempt.

SCHEDULE = constant("SCHEDULE_DEFAULT")
TIME_TO_LIVE = constant("EVENT_TIME_TO_LIVE_MINUTES_MAX") * MINUTE
ATTEMPTS = constant("DELIVERY_ATTEMPTS_MAX")
JITTER = constant("JITTER_MAX")
DELAY = constant("DEAD_LETTER_DELAY_DEFAULT")


def attempts(schedule, lives):
    """When each attempt is made, where all fail at once and no wait is lengthened, and when the event is given
    up."""
    times, at = [], 0
    while at < lives:
        times.append(at)
        if len(times) == ATTEMPTS:
            break
        at += schedule[min(len(times), len(schedule)) - 1]
    return times, at


def longest(schedule, lives, delay):
    """A row about the longest that an event can wait: last attempt, dead letter, at the latest."""
    times, given_up = attempts(schedule, lives)
    wait = max(schedule[: len(times)])
    at_most = lives + wait + min(wait * constant("JITTER_SHARE_MAX"), JITTER) + delay
    last = clock(times[-1]) + (f", the {len(times)}th" if len(times) == ATTEMPTS else "")
    return f"| {last} | {clock(given_up + delay)} | {clock(at_most)} |"


SINCE_FIRST = attempts(SCHEDULE, TIME_TO_LIVE)[0][1:]
WAITS = SCHEDULE[: len(SINCE_FIRST)]
HOURLY = [*[step for step in SCHEDULE if step < 3 * HOUR], HOUR]
MOST_DELAY = constant("DEAD_LETTER_DELAY_MAX")
MOST = [23 * HOUR, constant("SCHEDULE_STEP_MAX")]

# Places for requests.

START, PER_LINK = setting_of_deliver("requests_per_link_start"), setting_of_deliver("requests_per_link_max")
PER_WAITING = setting_of_deliver("waiting_per_connection")
KEPT = PER_LINK // constant("KEPT_ONE_IN")
OF_ONE = PER_LINK - KEPT
INVOCATIONS = 50

# Holds, in the order of an outage.

GLITCH, FIRST, LATER = (int(health(f"{name}_hold")) // MINUTE for name in ("glitch", "first", "later"))
GLITCHES, FIRSTS = health("glitches"), health("first_holds")
PROBES = [GLITCH * nth for nth in range(1, GLITCHES + 1)]
RETRIES = [GLITCHES * GLITCH + FIRST * nth for nth in range(1, FIRSTS + 1)]
RETRIES += [RETRIES[-1] + LATER * nth for nth in (1, 2)]
CHANGE = int(health("state_change_delay")) // MINUTE
STREAK = WORDS[health("failures_in_a_row")]
RAMP = 2 ** (constant("RAMP_STEPS") - 1)

LEASES = "shared/core/src/attempt/slots.rs"
SLOTS = "functions/deliver/src/slots.rs"

TRIAL_MINUTES, TRIAL_DOLLARS = deadline.ALL_SECS_MAX // MINUTE, f"${ledger.DOLLARS_MAX:.2f}"

SENTENCES = [
    ("known-limits", f"shows most of it, in {TRIAL_MINUTES} minutes, for {TRIAL_DOLLARS} at most"),
    ("operating/trial", f"| time | {TRIAL_MINUTES} minutes at most"),
    ("operating/trial", f"| money | {TRIAL_DOLLARS} at most"),
    ("operating/trial", f"It counts with {ledger.ALARMS} alarms, a dashboard, {ledger.METRICS_MAX} metrics and a key"),
    ("operating/trial", f"Each attempt counts as {WORDS[ledger.SQS_PER_ATTEMPT]} requests to SQS, "
                        f"{WORDS[ledger.PUTS_PER_ATTEMPT]} PUT and {WORDS[ledger.GETS_PER_ATTEMPT]} GET, and "
                        f"{WORDS[ledger.INVOCATIONS_PER_ATTEMPT]} invocations"),
    ("delivery", f"posthaste reads on for at most {constant('ANSWER_REST_WAIT')} seconds and "
                 f"{constant('RESPONSE_BODY_BYTES_MAX') // KIB} KiB"),
    ("delivery", f"sends more than {constant('INTERIM_ANSWERS_MAX')} of them, or more than "
                 f"{constant('INTERIM_BYTES_MAX') // KIB} KiB, has given no answer"),
    ("delivery", f"more than {constant('BINARY_HEADERS_BYTES_MAX') // KIB} KiB of headers"),
    ("delivery", f"| 408 | retry | {short(constant('WAIT_FLOOR_REQUEST_TIMEOUT'))} |"),
    ("delivery", f"the subscription pauses | {short(constant('WAIT_FLOOR_BUSY'))} |"),
    ("delivery", f"| any other status, redirects too | retry | {short(constant('WAIT_FLOOR_DEFAULT'))} |"),
    ("delivery", f"no answer in time | retry | {short(constant('WAIT_FLOOR_DEFAULT'))} |"),
    ("delivery", f"one retry, then dead letter | {short(constant('WAIT_UNKNOWN_NAME'))} |"),
    ("delivery", f"the timeout ({constant('ATTEMPT_TIMEOUT_DEFAULT')} seconds) are"),
    ("delivery", f"an event gets {WORDS[len(SINCE_FIRST) + 1]} attempts in {TIME_TO_LIVE // HOUR} hours"),
    ("delivery", f"| after attempt | {' | '.join(str(nth + 1) for nth in range(len(WAITS)))} |"),
    ("delivery", f"| the wait is | {' | '.join(map(short, WAITS))} |"),
    ("delivery", f"| since the first attempt | {' | '.join(map(clock, SINCE_FIRST))} |"),
    ("delivery", f"lengthened by up to {constant('JITTER_SHARE_MAX') * 100:.0f} %, or by up to "
                 f"{constant('JITTER_OF_SHORT_WAITS')} seconds where that is more, and by "
                 f"{JITTER // MINUTE} minutes at most"),
    ("delivery", f"`maxDeliveryAttempts` ({ATTEMPTS}), or when the time to live ({TIME_TO_LIVE // HOUR} hours)"),
    ("delivery", f"default floor of {constant('WAIT_FLOOR_DEFAULT')} seconds the first two steps"),
    ("delivery", f"at least so long, up to {constant('RETRY_AFTER_MAX') // HOUR} hours"),
    ("delivery", f"pauses for up to {constant('PAUSE_MAX') // MINUTE} minutes of it"),
    ("delivery", f"a pause under {constant('PAUSE_SHARED_MIN')} seconds holds in the one"),
    ("delivery", f"when it accepts it: {TIME_TO_LIVE // HOUR} hours later at most"),
    ("delivery", f"`retryPolicy.eventTimeToLiveInMinutes` ({TIME_TO_LIVE // HOUR} hours)"),
    ("delivery", f"Its dead letter is written {WORDS[DELAY // MINUTE]} minutes later"),
    ("delivery", f"| the defaults {longest(SCHEDULE, TIME_TO_LIVE, DELAY)}"),
    ("delivery", "| the schedule ends with `PT1H` instead of 3, 6 and 12 hours "
                 + longest(HOURLY, TIME_TO_LIVE, DELAY)),
    ("delivery", "| `eventTimeToLiveInMinutes: 60`, the default schedule " + longest(SCHEDULE, HOUR, DELAY)),
    ("delivery", f"`schedule: [PT23H, PT24H]`, `deadLetter.delay: PT{MOST_DELAY // MINUTE}M` "
                 + longest(MOST, TIME_TO_LIVE, MOST_DELAY)),
    ("delivery", f"{WORDS[JITTER // MINUTE]} minutes of randomness, and `deadLetter.delay`"),
    ("delivery", f"A subscription may add {WORDS[constant('DELIVERY_HEADERS_MAX')]} headers"),
    ("delivery", f"For one subscription it starts at {START} and grows to {OF_ONE} as requests wait. A link has "
                 f"{PER_LINK}, and a quarter of them is kept"),
    ("delivery", f"Each gets up to {OF_ONE} of the {PER_LINK}, and the other {KEPT} are for subscriptions"),
    ("delivery", f"Where all {PER_LINK} are taken"),
    ("delivery", f"up to {INVOCATIONS} run side by side"),
    ("delivery", f"may get {INVOCATIONS} × {PER_LINK}, which is {INVOCATIONS * PER_LINK:,} requests at once, and "
                 f"one subscription of it {INVOCATIONS} × {OF_ONE}, which is {INVOCATIONS * OF_ONE:,}."),
    ("delivery", f"for up to {WORDS[constant('WAIT_MAX', SLOTS)]} seconds in the process that has requests of the "
                 "subscription open"),
    ("delivery", "are free again after the `timeout` and "
                 f"{constant('BEGINS_WITHIN', LEASES) + constant('CLOCK_MARGIN', LEASES)} s."),
    ("delivery", f"may differ by {WORDS[constant('CLOCK_MARGIN', LEASES)]} seconds"),
    ("delivery", f"listens for {WORDS[constant('LATE_ANSWER_MAX') // MINUTE]} more minutes, or until "
                 f"{constant('ANSWER_WIRE_BYTES_MAX') // MIB} MiB have come"),
    ("delivery", f"a request with {constant('HOPS_MAX')} or more gets 400"),

    ("failing-endpoints", f"| Glitch | open | {health('failures_in_a_row')} failures, or "
                          f"{health('refusals_in_row')} refusals, in a row | They wait in the queue for a minute."),
    ("failing-endpoints", f"A probe goes out every {FIRST} minutes {WORDS[FIRSTS]} times, then every {LATER}."),
    ("failing-endpoints", f"| Retry | open | {WORDS[GLITCHES]} failed probes |"),
    ("failing-endpoints", f"1, 2, 4 … {RAMP} requests at once in each worker, for {health('ramp_step')} seconds "
                          "each"),
    ("failing-endpoints", f"{STREAK.capitalize()} failures count in one worker"),
    ("failing-endpoints", f"at least {WORDS[health('failures_of_invocation')]} requests there, all of them failures"),
    ("failing-endpoints", f"| 0 min | The {STREAK}th request in a row fails. Glitch. |"),
    ("failing-endpoints", f"| {', '.join(map(str, PROBES))} min | A probe fails. After the third one: Retry. |"),
    ("failing-endpoints", f"| {PROBES[-1] + CHANGE} min | posthaste sends the [notice] `link.down`"),
    ("failing-endpoints", f"| {', '.join(map(str, RETRIES[:-1]))} min | A probe fails. |"),
    ("failing-endpoints", f"| {RETRIES[-1]} min | A probe succeeds."),
    ("failing-endpoints", f"| {RETRIES[-1] + CHANGE} min | posthaste sends the notice `link.up`."),
    ("failing-endpoints", f"{WORDS[health('refusals_in_row')].capitalize()} 4xx in a row, of at least "
                          f"{WORDS[constant('REFUSED_EVENTS_MIN')]} different events"),
    ("failing-endpoints", f"one event a minute at first, then one every {FIRST}, later {LATER} minutes"),
    ("failing-endpoints", f"Each holds up to {constant('HELD_PER_OBJECT_MAX')} deliveries."),
    ("failing-endpoints", f"a retry that is more than {constant('SQS_DELAY_MAX') // MINUTE} minutes away"),
    ("failing-endpoints", f"keep their wait, of {constant('SQS_DELAY_MAX') // MINUTE} minutes at most"),
    ("failing-endpoints", f"allows, {TIME_TO_LIVE // HOUR} hours by default"),
    ("failing-endpoints", f"for that time, and for {constant('PAUSE_MAX') // MINUTE} minutes at most"),
    ("failing-endpoints", f"After {WORDS[health('problem_failures')]} failures among the successes of others"),
    ("failing-endpoints", f"| `failing` | {WORDS[arrival('failing_in_row')]} tries in a row failed"),
    ("failing-endpoints", f"Where fewer than {arrival('tries_min')} were tried within the "
                          f"{WORDS[int(arrival('window')) // MINUTE]} minutes, older tries count too, up to "
                          f"{arrival('tries_min')} and a day."),
    ("failing-endpoints", f"and {arrival('recovered_percent')} % of the last two minutes' tries did"),
    ("failing-endpoints", f"{constant('SUBSCRIPTIONS_IN_BOOK_MAX'):,} subscriptions can be known at once"),
    ("failing-endpoints", f"in an outage of more than {PROBES[-1] + CHANGE} minutes"),
    ("failing-endpoints", f"in Retry for {CHANGE} minutes |"),
    ("failing-endpoints", f"| {CHANGE} minutes after it succeeded again"),
    ("failing-endpoints", f"The log has {constant('LINK_FAILED')} for a link and {constant('EXCHANGE_FAILED')} for"),

    ("publishing", f"an array of up to {constant('CUSTOM_EVENTS_PER_REQUEST_MAX'):,}, as"),
    ("publishing", f"A request has at most {constant('REQUEST_BYTES_MAX'):,} bytes."),
    ("publishing", f"An event has at most {constant('EVENT_DEPTH_MAX')} levels of nesting."),
    ("publishing", f"the request, or one event, is over {constant('EVENT_BYTES_MAX'):,} bytes"),
    ("publishing", f"1 to {constant('IDEMPOTENCY_KEY_BYTES_MAX')} visible ASCII characters"),
    ("publishing", f"posthaste remembers it for {constant('IDEMPOTENCY_KEPT') // HOUR} hours."),
    ("publishing", f"The time may be up to {constant('SCHEDULED_AHEAD_MAX') // DAY} days ahead."),
    ("publishing", f"at most {constant('SCHEDULED_OBJECTS_PER_REQUEST_MAX'):,} different minutes and"),
    ("publishing", f"the key is free after {constant('IDEMPOTENCY_CLAIM_LENGTH')} seconds"),

    ("known-limits", f"whose end does not come hold a place for {constant('ANSWER_REST_WAIT')} seconds each"),
    ("known-limits", f"- **More than {TIME_TO_LIVE // HOUR} hours of retries.**"),
    ("known-limits", f"as many go out as one link has requests at once ({START} and more)"),
    ("known-limits", f"the {WORDS[health('refusals_in_row')]} in a row in each worker"),
    ("known-limits", f"Each of the {constant('LINK_SHARDS')} parts of `links/` records at most "
                     f"{constant('TARGETS_PER_SHARD_MAX'):,} links"),
    ("known-limits", f"- **At most {constant('SUBSCRIPTIONS_IN_BOOK_MAX'):,} subscriptions are known to be failing.**"),
    ("known-limits", f"set back by more than {WORDS[constant('IDEMPOTENCY_CLOCK_SKEW') // MINUTE]} minutes makes publish"),
    ("known-limits", f"with a queue of more than {constant('SQS_DELAY_MAX') // MINUTE} minutes"),
    ("known-limits", f"look for {constant('ADVANCED_FILTER_VALUES_MAX')} parts of them"),
    ("known-limits", f"by count ({constant('REQUESTS_PER_INVOCATION_MAX'):,} messages)"),
    ("known-limits", f"late answers, up to {constant('LATE_ANSWERS_MAX')}, are"),
    ("known-limits", f"works alone for less than {constant('LOOKS_APART_MAX') // MINUTE} minutes is not counted"),
    ("known-limits", f"sends nothing to it until {constant('GONE_KEPT')} s after that answer"),
    ("known-limits", f"a request's {constant('HANDSHAKES_TIME_MAX')} seconds are over"),
    ("known-limits", f"After {WORDS[constant('HANDSHAKE_WINDOW') // MINUTE]} minutes the subscription reads as Failed"),
]

# Words around a number that no constant decides, by the page.
OTHER_NUMBERS = {
    "delivery": (
        "about $10 for a million deliveries",
        "0 on the first",
        "RFC 6901",
        "`maxEventsPerBatch` above 1 only",
        "0.02 is one a minute",
        "UTF-8, UTF-16, Latin-1 and Windows-1252",
    ),
    "failing-endpoints": (
        "neither 200 to 204 nor 4xx",
        "any other 4xx",
        # Measured.
        "with 100,000 messages waiting, got its events after 1.6 ms (median) and 20 ms (99th percentile), instead of "
        "0.85 and 1.39 ms",
        "99 healthy subscriptions",
        "`RegistryMaxAge` (5 s)",
        "refuses with a 4xx",
    ),
    "back-pressure": (
        # Measured, in steps.
        "32 producers publish as fast as they can, from 15 s to 125 s. Their endpoint accepts 20 events a second.",
        "1. When", "2. Each", "3. Because", "4. After", "5. After",
        "otherwise every 10 seconds",
        "delivers 10,000 messages a second",
        "Exchange Server 2013",
        "(80, 120, 200)",
    ),
    "publishing": (
        "A number of 20 digits",
        "RFC 9457",
        "After a 5xx",
        "wait 5 seconds (`RegistryMaxAge`) after step 1",
    ),
    "known-limits": (
        "HTTP/2 to endpoints", "HTTP/1.1", "[HTTP/2",
        "Below 12 requests a minute",
        "messages of 1 MB",
        "an event of 1 MB",
        "It has TLS 1.2 and 1.3",
        "It lacks TLS 1.0 and 1.1",
        "RSA keys of fewer than 2048 bits",
    ),
}
