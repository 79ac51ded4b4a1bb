//! A row of the table: names, type, unit, labels and meaning of a metric.

/// The label with the topic of a series.
pub const TOPIC: &str = "topic";

/// The label with the subscription of a series.
pub const SUBSCRIPTION: &str = "subscription";

/// The label that only `serve` shows: CloudWatch would bill each of its values.
pub const STATUS_CLASS: &str = "status_class";

/// The type of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    /// A number that only grows.
    Counter,
    /// A number as it is now.
    Gauge,
    /// The distribution of times.
    Histogram,
}

/// The unit of what is measured. `serve` shows base units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricUnit {
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
pub enum MetricSource {
    /// Functions measure it.
    Measured,
    /// The value is looked up at every request for it.
    LookedUp,
}

/// A row of the table.
#[derive(Debug, Clone, Copy)]
pub struct MetricRow {
    /// Name in `GET /metrics`; `None` where `serve` does not show it.
    pub exposed: Option<&'static str>,
    /// Name under which functions measure it, and that CloudWatch shows.
    pub measured: Option<&'static str>,
    /// Whether CloudWatch shows it.
    pub is_on_aws: bool,
    /// Type.
    pub kind: MetricKind,
    /// Unit of what is measured.
    pub unit: MetricUnit,
    /// Origin of the values that `serve` shows.
    pub source: MetricSource,
    /// Labels, in their order.
    pub labels: &'static [&'static str],
    /// A label that tells this row from the others with its name in `GET /metrics`.
    pub fixed: Option<(&'static str, &'static str)>,
    /// Functions that write it.
    pub written_by: &'static str,
    /// Meaning.
    pub help: &'static str,
}

impl MetricUnit {
    /// The number of these in a base unit.
    pub fn per_base_unit(self) -> f64 {
        match self {
            Self::Milliseconds => 1000.0,
            Self::Number(_) | Self::Bytes | Self::Seconds => 1.0,
        }
    }

    /// The base unit as UCUM writes it, for OpenTelemetry.
    /// <https://opentelemetry.io/docs/specs/semconv/general/metrics/#instrument-units>
    pub fn ucum_unit(self) -> &'static str {
        match self {
            Self::Milliseconds | Self::Seconds => "s",
            Self::Bytes => "By",
            Self::Number(_) => "1",
        }
    }

    /// The name of the base unit; `None` for numbers.
    pub fn base_unit_name(self) -> Option<&'static str> {
        match self {
            Self::Milliseconds | Self::Seconds => Some("seconds"),
            Self::Bytes => Some("bytes"),
            Self::Number(_) => None,
        }
    }
}

impl MetricRow {
    /// A row that nothing shows yet.
    pub(super) const fn new(
        kind: MetricKind,
        unit: MetricUnit,
        written_by: &'static str,
        help: &'static str,
    ) -> Self {
        Self {
            exposed: None,
            measured: None,
            is_on_aws: false,
            kind,
            unit,
            source: MetricSource::Measured,
            labels: &[],
            fixed: None,
            written_by,
            help,
        }
    }

    /// With the name under which functions measure it, everywhere.
    pub(super) const fn measured_as(self, name: &'static str) -> Self {
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
    pub(super) const fn exposed_as(self, name: &'static str) -> Self {
        Self {
            exposed: Some(name),
            ..self
        }
    }

    /// With the name under which `serve` shows what it looks up.
    pub(super) const fn looked_up(self, name: &'static str) -> Self {
        Self {
            exposed: Some(name),
            source: MetricSource::LookedUp,
            ..self
        }
    }

    /// With labels.
    pub(super) const fn with_labels(self, labels: &'static [&'static str]) -> Self {
        Self { labels, ..self }
    }

    /// With the label that tells it from its neighbours.
    pub(super) const fn with_fixed_label(self, name: &'static str, value: &'static str) -> Self {
        Self {
            fixed: Some((name, value)),
            ..self
        }
    }
}
