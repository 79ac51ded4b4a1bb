"""Sentences with numbers about back pressure, made from constants, on its page and on others."""

from constants import constant, default, row
from said import INVOCATIONS, JITTER, MINUTE, OF_ONE, PER_LINK, PER_WAITING, START, WORDS, health

SETTINGS = "shared/core/src/pressure/settings.rs"
STATE = "shared/core/src/pressure/state.rs"

TARPIT = {name: default("TarpitSettings", name, SETTINGS) for name in ("start", "step", "max")}
INTERVAL = default("PressureSettings", "interval", SETTINGS)
REFUSED = constant("REFUSED_RETRY_AFTER")
STALE_POLLS = constant("STATE_STALE_AFTER_POLLS")
FORGOTTEN = constant("STATE_FORGOTTEN_AFTER") // MINUTE

SUBMISSION, DRAIN, BUCKETS, POINTS, SYSTEM, BACKLOG, PROCESS = map(
    row,
    ("SUBMISSION_QUEUE", "DRAIN_TIME", "VERSION_BUCKETS", "BATCH_POINTS", "SYSTEM_MEMORY", "DEAD_LETTER_BACKLOG",
     "PROCESS_MEMORY"),
)
[MEDIUM_LESS, NORMAL_LESS] = constant("FORMULA_STEPS")
SLOW = DRAIN["thresholds"][0]
SLOW_ENDS = SLOW // constant("SLOW_DRAIN_ENDS_BELOW_PART")

MIB = 1024 * 1024
DATABASE = default("DiskConstants", "database_bytes", SETTINGS)
CHECKPOINT = default("DiskConstants", "checkpoint_depth_bytes", SETTINGS)
LOG_MOST = default("DiskConstants", "log_bytes_max", SETTINGS)
BATCH = 10


def below(high):
    """The three thresholds of a formula, the lowest first."""
    return ", ".join(str(high - less) for less in (NORMAL_LESS, MEDIUM_LESS, 0))


def three(of):
    return ", ".join(map(str, of["thresholds"]))


IN_FLIGHT = below(constant("IN_FLIGHT_HIGH"))

SENTENCES = [
    ("back-pressure", f"| 200, after up to {TARPIT['max']} seconds |"),
    ("back-pressure", f"send it again after that time, {REFUSED} seconds |"),
    ("back-pressure", f"{TARPIT['start']} s at first, then {TARPIT['step']} s longer with each poll of the monitor, "
                      f"and {TARPIT['max']} s at most"),
    ("back-pressure", f"After {DRAIN['history']} polls at Medium (a minute)"),
    ("back-pressure", f"polls nine *resources*: every {INTERVAL} seconds"),
    ("back-pressure", f"that are due | {three(SUBMISSION)} | {SUBMISSION['history']} |"),
    ("back-pressure", f"until these are delivered | {three(DRAIN)} | {DRAIN['history']} |"),
    ("back-pressure", f"that wait for the disk | {three(BUCKETS)} | {BUCKETS['history']} |"),
    ("back-pressure", f"on their way to the disk | {three(POINTS)} | {POINTS['history']} |"),
    ("back-pressure", f"| high: {DATABASE // MIB} MB free; the others {MEDIUM_LESS} and {NORMAL_LESS} percent less"),
    ("back-pressure", f"the same with {min(LOG_MOST, 3 * CHECKPOINT) / 1e9:.1f} GB |"),
    ("back-pressure", f"that posthaste uses | {below(constant('PROCESS_MEMORY_PERCENT'))} | {PROCESS['history']} |"),
    ("back-pressure", f"| percent of memory in use | {three(SYSTEM)} | – |"),
    ("back-pressure", f"wait to be tried again | {three(BACKLOG)} | {BACKLOG['history']} |"),
    ("back-pressure", f"{INVOCATIONS * BATCH} by default: {IN_FLIGHT} percent. It acts while `drain-time` is {SLOW} s "
                      f"or more, and has a history of {constant('IN_FLIGHT_HISTORY_DEPTH')} polls"),
    ("back-pressure", f"at most [{OF_ONE} requests at once]"),
    ("back-pressure", f"a line for each such topic, at most {constant('TOPICS_MAX', STATE):,}."),
    ("back-pressure", f"take more than {constant('SUBSCRIPTION_DISK_PERCENT', SETTINGS)} % of the free disk"),
    ("back-pressure", f"After {WORDS[STALE_POLLS]} missed polls ({constant('STATE_STALE_AFTER_AWS')} s on AWS)"),
    ("back-pressure", f"become waits of {TARPIT['start']} s. After {FORGOTTEN} minutes it treats"),
    ("back-pressure", f"The log has {constant('PRESSURE_ROSE')} when a level rises and {constant('PRESSURE_FELL')}"),
    ("back-pressure", f"up to the last {constant('UNTOLD_MAX')} changes"),
    ("back-pressure", f"acts once `drain-time` is {SLOW} s or more, until that is below {SLOW_ENDS} s"),
    ("back-pressure", f"needs no rest at {SUBMISSION['thresholds'][2]:,} |"),

    ("publishing", f"may wait for {TARPIT['max']} seconds, which is the default"),

    ("source-rules", f"up to {constant('JITTER_SHARE_MAX') * 100:.0f} % longer, a short one up to "
                     f"{constant('JITTER_OF_SHORT_WAITS')} s, none by more than {JITTER // MINUTE} min"),
    ("source-rules", f"after {WORDS[health('failures_in_a_row')]} in a row of one link or subscription"),
    ("source-rules", f"{WORDS[health('failures_of_invocation')].capitalize()} are enough where all of an invocation"),
    ("source-rules", f"After {WORDS[health('refusals_in_row')]} refusals in a row what follows waits"),
    ("source-rules", f"a subscription has {START} requests open at once, one more for every {PER_WAITING} that wait, "
                     f"and {OF_ONE} at most. All subscriptions of a link have {PER_LINK} together"),
    ("source-rules", f"the default; 1 to {constant('ATTEMPT_TIMEOUT_MAX')} s"),
    ("source-rules", f"the default; 0 to {constant('DEAD_LETTER_DELAY_MAX') // MINUTE} minutes"),
    ("source-rules", f"the same, for the first {constant('ADDRESSES_TRIED_MAX')} addresses"),
    ("source-rules", f"a notice after {int(health('state_change_delay')) // MINUTE} minutes each"),
    ("source-rules", f"| {constant('REQUEST_BYTES_MAX'):,} bytes for a request and for an event |"),
    ("source-rules", f"one retry after {constant('WAIT_UNKNOWN_NAME') // MINUTE} minutes first"),
    ("source-rules", f"`problemFailures`, {health('problem_failures')}"),
    ("source-rules", f"`glitchHold`, `PT{int(health('glitch_hold')) // MINUTE}M`"),
    ("source-rules", f"`stateChangeDelay`, `PT{int(health('state_change_delay')) // MINUTE}M`"),
    ("source-rules", f"leaves out the event's data above {constant('NOTICE_BYTES_MAX'):,} bytes"),
    ("source-rules", f"After {constant('MAX_RECEIVE_COUNT')} failures it is kept as a dead letter"),
    ("source-rules", f"one place for every {constant('PLACE_BYTES') // 1024} KiB"),
    ("source-rules", f"Medium {SYSTEM['thresholds'][1]} and Normal {SYSTEM['thresholds'][0]} are ours"),
    ("source-rules", f"filters: 19 operators, {constant('ADVANCED_FILTERS_MAX')} filters, "
                     f"{constant('ADVANCED_FILTER_VALUES_MAX')} values"),
    ("source-rules", f"posthaste waits {constant('ATTEMPT_TIMEOUT_DEFAULT')} seconds by default"),
]
