//! The alarms, from their table of rows, and the lists of alarms for the pager and the dashboard.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::entry::Entry;
use super::shape::{Blocks, fill};
use super::yaml::{indented_line, wrapped};

/// The rows, by level.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AlarmTable {
    /// Alarms of which each rings the pager.
    essential: Vec<AlarmRow>,
    /// Alarms that can wait until morning.
    others: Vec<AlarmRow>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AlarmRow {
    alarm: String,
    /// The condition, if it is not that of the level.
    condition: Option<String>,
    watches: WatchedMetric,
    when: AlarmBounds,
    /// A comment for readers of the template.
    note: Option<String>,
    /// The description: the fault, and the first place to look.
    says: String,
}

/// The metric, and the one thing that it is of.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WatchedMetric {
    /// A queue, by the end of its name.
    queue: Option<String>,
    function: Option<String>,
    /// A function, whose callers are answered 5xx.
    caller: Option<String>,
    /// The stack itself: a metric that functions send, with its dimensions.
    ours: Option<BTreeMap<String, String>>,
    metric: Option<String>,
    #[serde(default = "sum")]
    statistic: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AlarmBounds {
    /// The seconds of a period.
    #[serde(default = "five_minutes")]
    period: u32,
    /// The periods that are looked at.
    #[serde(default = "one")]
    periods: u32,
    /// The periods of them in which the bound must be passed. Without it, all.
    datapoints: Option<u32>,
    /// The least value that is an alarm: a number or a parameter.
    least: Option<String>,
    /// The value below which there is an alarm. Silence is one, too.
    below: Option<u32>,
    /// Whether the topic also hears that the alarm is over.
    #[serde(default)]
    tells_end: bool,
}

fn sum() -> String {
    "Sum".to_owned()
}

const fn five_minutes() -> u32 {
    300
}

const fn one() -> u32 {
    1
}

impl AlarmTable {
    pub(crate) fn read(text: &str) -> Self {
        serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("alarms.yaml: {error}"))
    }

    /// The alarms as resources, each of the shape, below the comment of the table.
    pub(crate) fn resources(&self, shape: &str) -> Vec<String> {
        let shape: Vec<_> = shape.lines().map(str::to_owned).collect();
        let mut lines = Vec::new();
        for (condition, rows) in [
            ("HasAlarms", &self.essential),
            ("HasAllAlarms", &self.others),
        ] {
            for row in rows {
                let note = row.note.as_deref().unwrap_or_default();
                let note = if note.is_empty() {
                    Vec::new()
                } else {
                    wrapped(note, 96)
                };
                lines.extend(note.iter().map(|line| format!("# {line}")));
                lines.extend(fill(&shape, &row.entry(condition), &Blocks::new()));
                lines.push(String::new());
            }
        }
        lines.pop();
        lines
    }

    /// The lists of alarms: `paging` for the rule of the pager, and for the dashboard `essential`,
    /// `others` and, of alarms with a condition of their own, `conditional`.
    pub(crate) fn blocks(&self) -> Blocks {
        let (always, conditional): (Vec<_>, Vec<_>) = self
            .essential
            .iter()
            .partition(|row| row.condition.is_none());
        let mut paging = Vec::new();
        for row in &always {
            paging.push(format!("- !Sub ALARM(\"${{{}.Arn}}\")", row.alarm));
        }
        let mut shown = Vec::new();
        for row in &conditional {
            let (name, condition) = (&row.alarm, row.condition.as_deref().unwrap_or_default());
            paging.push(format!(
                "- !If [{condition}, !Sub 'ALARM(\"${{{name}.Arn}}\")', \"FALSE\"]"
            ));
            shown.push(format!(
                "- !If [{condition}, !Sub ', \"${{{name}.Arn}}\"', \"\"]"
            ));
        }
        Blocks::from([
            ("paging".to_owned(), paging),
            ("essential".to_owned(), alarm_names(always)),
            ("others".to_owned(), others_after(&self.others)),
            ("conditional".to_owned(), shown),
        ])
    }
}

/// The ARNs of alarms, as a list in JSON within a text with references.
fn alarm_names<'a>(rows: impl IntoIterator<Item = &'a AlarmRow>) -> Vec<String> {
    let names: Vec<_> = rows
        .into_iter()
        .map(|row| format!("\"${{{}.Arn}}\"", row.alarm))
        .collect();
    wrapped(&names.join(", "), 100)
}

/// The same, as it continues a list.
fn others_after(rows: &[AlarmRow]) -> Vec<String> {
    let mut lines = alarm_names(rows);
    lines[0] = format!(", {}", lines[0]);
    lines
}

impl AlarmRow {
    /// The words and blocks for the shape of an alarm.
    fn entry(&self, condition: &str) -> Entry {
        let when = &self.when;
        let (threshold, comparison, silence) = match (&when.least, when.below) {
            (Some(least), None) => (
                number_or_parameter(least),
                "GreaterThanOrEqualToThreshold",
                "notBreaching",
            ),
            (None, Some(below)) => (below.to_string(), "LessThanThreshold", "breaching"),
            _ => panic!("{}: either least or below", self.alarm),
        };
        let condition = self.condition.as_deref().unwrap_or(condition);
        let words = [
            ("Name", self.alarm.clone()),
            ("condition", condition.to_owned()),
            ("statistic", self.watches.statistic.clone()),
            ("period", when.period.to_string()),
            ("periods", when.periods.to_string()),
            ("threshold", threshold),
            ("comparison", comparison.to_owned()),
            ("silence", silence.to_owned()),
        ];
        let mut entry = Entry::default();
        for (name, word) in words {
            entry.words.insert(name.to_owned(), word);
        }
        if let Some(datapoints) = when.datapoints {
            entry
                .words
                .insert("datapoints".to_owned(), datapoints.to_string());
        }
        if when.tells_end {
            let topic = "!If [HasAlarmTopic, [!Ref AlarmTopicArn], !Ref AWS::NoValue]";
            entry.words.insert("end".to_owned(), topic.to_owned());
        }
        entry
            .blocks
            .insert("description".to_owned(), wrapped(&self.says, 106));
        entry.blocks.insert("watched".to_owned(), self.watched());
        entry
    }

    /// Namespace, name and dimensions of the metric.
    fn watched(&self) -> Vec<String> {
        let watches = &self.watches;
        let metric = watches.metric.as_deref();
        let named = || metric.unwrap_or_else(|| panic!("{}: which metric?", self.alarm));
        match watches {
            WatchedMetric {
                queue: Some(queue), ..
            } => {
                let dimension = format!(
                    "{{ Name: QueueName, Value: !Sub \"${{QueuePrefix.Value}}-{queue}\" }}"
                );
                one_metric("AWS/SQS", named(), &dimension)
            }
            WatchedMetric {
                function: Some(function),
                ..
            } => {
                let dimension = format!("{{ Name: FunctionName, Value: !Ref {function}Function }}");
                one_metric("AWS/Lambda", named(), &dimension)
            }
            WatchedMetric {
                caller: Some(function),
                ..
            } => callers_metric(function),
            WatchedMetric {
                ours: Some(dimensions),
                ..
            } => {
                let dimensions: Vec<_> = dimensions
                    .iter()
                    .map(|(name, value)| format!("{{ Name: {name}, Value: {value} }}"))
                    .collect();
                one_metric("!Ref AWS::StackName", named(), &dimensions.join(", "))
            }
            _ => panic!("{}: watches neither queue nor function", self.alarm),
        }
    }
}

fn one_metric(namespace: &str, metric: &str, dimensions: &str) -> Vec<String> {
    vec![
        format!("Namespace: {namespace}"),
        format!("MetricName: {metric}"),
        format!("Dimensions: [{dimensions}]"),
    ]
}

/// The answers of 5xx, as whatever takes the requests counts them.
fn callers_metric(function: &str) -> Vec<String> {
    let mut lines = vec![
        "Namespace: !If [UsesApiGateway, AWS/ApiGateway, AWS/Lambda]".to_owned(),
        "MetricName: !If [UsesApiGateway, 5xx, Url5xxCount]".to_owned(),
        "Dimensions: !If".to_owned(),
    ];
    for line in [
        "- UsesApiGateway".to_owned(),
        format!("- [{{ Name: ApiId, Value: !Ref {function}Api }}]"),
        format!("- [{{ Name: FunctionName, Value: !Ref {function}Function }}]"),
    ] {
        lines.push(indented_line(&line, 2));
    }
    lines
}

fn number_or_parameter(text: &str) -> String {
    if text.parse::<f64>().is_ok() {
        text.to_owned()
    } else {
        format!("!Ref {text}")
    }
}
