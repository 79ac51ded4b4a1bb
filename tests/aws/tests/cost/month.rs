//! The bill of a month at three loads.

use std::fmt::Write;

use crate::prices::{Dollars, LOG_FILES_MONTH, SECONDS_PER_MONTH, out_per_million};
use crate::scenario::Outcome;

/// Dollars that the delivery log adds to a million deliveries, with one message in an invocation of
/// deliver and with 2.6: `the_delivery_log_adds_so_much_to_a_million_deliveries` counts both.
const LOG_PER_MILLION: [f64; 2] = [0.484, 0.190];

/// The template, which has the alarms.
const TEMPLATE: &str = include_str!("../../../../template.yaml");

/// The line of an alarm in the template.
const ALARM_LINE: &str = "    Type: AWS::CloudWatch::Alarm\n";

/// An alarm a month. Source: <https://aws.amazon.com/cloudwatch/pricing/>.
const ALARM: f64 = 0.10;

/// The metrics that are in use, as `docs/src/operating/aws.md` lists them.
const METRICS: f64 = 2.40;

/// A month in which nothing is published: the sum of the table of that.
const IDLE: f64 = 1.94;

const HEAD: &str = "\
| a month of | an event every 10 s | 10 events/s | 100 events/s |
|---|---|---|---|
";

/// A load, as its scenario has it.
struct Load {
    events_per_second: f64,
    scenario: &'static str,
    /// Dollars that the delivery log adds to a million deliveries, by the batches that the load
    /// makes.
    log_per_million: f64,
}

/// The loads of the table.
fn loads([one, some]: [f64; 2]) -> [Load; 3] {
    let load = |events_per_second, scenario, log_per_million| Load {
        events_per_second,
        scenario,
        log_per_million,
    };
    [
        load(0.1, "one subscriber, an event every 10 s", one),
        load(10.0, "one subscriber, 10 events/s", one),
        load(100.0, "one subscriber, 100 events/s", some),
    ]
}

/// The table.
pub(crate) fn month_at_three_loads(outcomes: &[Outcome]) -> String {
    let columns = loads(LOG_PER_MILLION).map(|load| {
        let millions = load.events_per_second * SECONDS_PER_MONTH / 1e6;
        let outcome = outcomes
            .iter()
            .find(|outcome| outcome.name == load.scenario)
            .expect("a scenario");
        let deliveries = Dollars::per_million(outcome).total() * millions;
        // A file a minute, each with an invocation, is the least that some events cost.
        let logged = load.log_per_million * millions + LOG_FILES_MONTH;
        let rows = [
            deliveries,
            logged,
            IDLE,
            out_per_million() * millions,
            TEMPLATE.matches(ALARM_LINE).count() as f64 * ALARM + METRICS,
        ];
        (millions, rows)
    });
    let mut table = HEAD.to_owned();
    let _ = writeln!(
        table,
        "| million deliveries |{}",
        columns
            .map(|(millions, _)| format!(" {millions:.2} |"))
            .concat()
    );
    let names = [
        "deliveries: SQS, S3, Lambda",
        "the delivery log, with payloads",
        "whatever is published",
        "what leaves AWS",
        "alarms and metrics",
    ];
    for (row, name) in names.iter().enumerate() {
        let _ = writeln!(
            table,
            "| {name} |{}",
            columns
                .map(|(_, rows)| format!(" ${:.2} |", rows[row]))
                .concat()
        );
    }
    let all = columns.map(|(_, rows)| format!(" **${:.2}** |", rows.iter().sum::<f64>()));
    let _ = writeln!(table, "| all |{}", all.concat());
    table
}
