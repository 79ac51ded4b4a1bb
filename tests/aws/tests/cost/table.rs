//! The tables, in Markdown.

use std::fmt::Write;

use crate::bill::Requests;
use crate::prices::{Dollars, idle_month};
use crate::scenario::Outcome;

const REQUESTS: &str = "\
| per 1,000 deliveries | publish: send | mapping: receive | mapping: delete | deliver: send \
| deliver: delete | wake: send | S3 PUT, LIST | S3 GET | invocations of publish | of deliver | POSTs |
|---|---|---|---|---|---|---|---|---|---|---|---|
";

const DOLLARS: &str = "\
| per million deliveries | SQS | S3 | Lambda | all |
|---|---|---|---|---|
";

const MONTH: &str = "\
| per month, whatever is published | |
|---|---|
";

/// The requests of each scenario.
pub(crate) fn requests(outcomes: &[Outcome]) -> String {
    let mut table = REQUESTS.to_owned();
    for Outcome {
        name, bill, posts, ..
    } in outcomes
    {
        let all = bill.requests();
        let counts = [
            bill.publish.sends,
            bill.mapping.receives,
            bill.mapping.deletes,
            bill.deliver.sends,
            bill.deliver.deletes,
            bill.wake.sends,
            all.puts,
            all.gets,
            bill.publish_invocations,
            bill.deliver_invocations,
        ];
        let _ = write!(table, "| {name} |");
        for count in counts {
            let _ = write!(table, " {count} |");
        }
        let _ = writeln!(table, " {posts} |");
    }
    table
}

/// The cost of each scenario.
pub(crate) fn dollars(outcomes: &[Outcome]) -> String {
    let mut table = DOLLARS.to_owned();
    for outcome in outcomes {
        let name = outcome.name;
        let dollars = Dollars::per_million(outcome);
        let Dollars { sqs, s3, lambda } = dollars;
        let _ = writeln!(
            table,
            "| {name} | ${sqs:.2} | ${s3:.2} | ${lambda:.2} | ${:.2} |",
            dollars.total()
        );
    }
    table
}

/// The cost of a month by itself.
pub(crate) fn month(monitor: Requests) -> String {
    let mut table = MONTH.to_owned();
    let rows = idle_month(monitor);
    for (name, dollars) in rows {
        let _ = writeln!(table, "| {name} | ${dollars:.2} |");
    }
    let _ = writeln!(
        table,
        "| all | ${:.2} |",
        rows.map(|(_, dollars)| dollars).iter().sum::<f64>()
    );
    table
}
