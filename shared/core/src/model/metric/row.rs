//! A row of the table: names, type, unit, labels and meaning of a metric.

/// The label with the topic of a series.
pub const TOPIC: &str = "topic";

/// The label with the subscription of a series.
pub const SUBSCRIPTION: &str = "subscription";

/// The label that only `serve` shows: CloudWatch would bill each of its values.
pub const STATUS_CLASS: &str = "status_class";

/// The type of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A number that only grows.
    Counter,
    /// A number as it is now.
    Gauge,
    /// The distribution of times.
    Histogram,
}

/// The unit of what is measured. `serve` shows base units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A number of these.
    Number(&'static str),
    /// Bytes.
    Bytes,
    /// Seconds.
    Seconds,
    /// Milliseconds, which `serve` shows as seconds.
    Milliseconds,
}

/// The origin of the values that `serve` shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Functions measure it.
    Measured,
    /// It is looked up whenever it is asked for.
    LookedUp,
}

/// A row of the table.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    /// Name in `GET /metrics`; `None` where `serve` does not show it.
    pub exposed: Option<&'static str>,
    /// Name under which functions measure it, and that CloudWatch shows.
    pub measured: Option<&'static str>,
    /// Whether CloudWatch shows it.
    pub is_on_aws: bool,
    /// Type.
    pub kind: Kind,
    /// Unit of what is measured.
    pub unit: Unit,
    /// Origin of the values that `serve` shows.
    pub source: Source,
    /// Labels, in their order.
    pub labels: &'static [&'static str],
    /// A label that tells this row from the others with its name in `GET /metrics`.
    pub fixed: Option<(&'static str, &'static str)>,
    /// Functions that write it.
    pub written_by: &'static str,
    /// Meaning.
    pub help: &'static str,
}

impl Unit {
    /// The number of these in a base unit.
    pub fn per_base_unit(self) -> f64 {
        match self {
            Self::Milliseconds => 1000.0,
            Self::Number(_) | Self::Bytes | Self::Seconds => 1.0,
        }
    }

    /// The base unit as UCUM writes it, for OpenTelemetry.
    /// <https://opentelemetry.io/docs/specs/semconv/general/metrics/#instrument-units>
    pub fn ucum(self) -> &'static str {
        match self {
            Self::Milliseconds | Self::Seconds => "s",
            Self::Bytes => "By",
            Self::Number(_) => "1",
        }
    }

    /// The name of the base unit; `None` for numbers.
    pub fn base(self) -> Option<&'static str> {
        match self {
            Self::Milliseconds | Self::Seconds => Some("seconds"),
            Self::Bytes => Some("bytes"),
            Self::Number(_) => None,
        }
    }
}

impl Metric {
    /// A row that nothing shows yet.
    pub(super) const fn new(
        kind: Kind,
        unit: Unit,
        written_by: &'static str,
        help: &'static str,
    ) -> Self {
        Self {
            exposed: None,
            measured: None,
            is_on_aws: false,
            kind,
            unit,
            source: Source::Measured,
            labels: &[],
            fixed: None,
            written_by,
            help,
        }
    }

    /// With the name under which functions measure it, everywhere.
    pub(super) const fn measured(self, name: &'static str) -> Self {
        Self {
            measured: Some(name),
            is_on_aws: true,
            ..self
        }
    }

    /// Measured in `serve` alone.
    pub(super) const fn measured_in_serve(self, name: &'static str) -> Self {
        Self {
            measured: Some(name),
            ..self
        }
    }

    /// With its name in `GET /metrics`.
    pub(super) const fn exposed(self, name: &'static str) -> Self {
        Self {
            exposed: Some(name),
            ..self
        }
    }

    /// With the name under which `serve` shows what it looks up.
    pub(super) const fn looked_up(self, name: &'static str) -> Self {
        Self {
            exposed: Some(name),
            source: Source::LookedUp,
            ..self
        }
    }

    /// With labels.
    pub(super) const fn labels(self, labels: &'static [&'static str]) -> Self {
        Self { labels, ..self }
    }

    /// With the label that tells it from its neighbours.
    pub(super) const fn fixed(self, name: &'static str, value: &'static str) -> Self {
        Self {
            fixed: Some((name, value)),
            ..self
        }
    }
}
