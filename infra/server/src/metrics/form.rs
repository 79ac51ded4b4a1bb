//! The two forms of a page of metrics, and which of them a request asks for.

use axum::http::{HeaderMap, header};

/// The form of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PageFormat {
    /// Prometheus' text.
    /// <https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format>
    Text,
    /// `OpenMetrics`. <https://prometheus.io/docs/specs/om/open_metrics_spec/>
    OpenMetrics,
}

/// The version of `OpenMetrics` that is written.
const OPEN_METRICS_VERSION: &str = "1.0.0";

/// The media type of `OpenMetrics`.
const OPEN_METRICS: &str = "application/openmetrics-text";

impl PageFormat {
    /// The form that a request accepts. `OpenMetrics` only where it is named, and not liked less than
    /// text.
    pub fn accepted_by(headers: &HeaderMap) -> Self {
        let mut open_metrics = 0.0;
        let mut text = 0.0;
        let values = headers.get_all(header::ACCEPT).into_iter();
        let ranges = values
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','));
        for range in ranges {
            let mut parts = range.split(';').map(str::trim);
            let media = parts.next().unwrap_or_default();
            let mut quality = 1.0;
            let mut version = None;
            for (name, value) in parts.filter_map(|parameter| parameter.split_once('=')) {
                match name.trim().to_ascii_lowercase().as_str() {
                    "q" => quality = value.trim().parse().unwrap_or(0.0),
                    "version" => version = Some(value.trim().trim_matches('"')),
                    _ => {}
                }
            }
            let is_written = version.is_none_or(|version| version == OPEN_METRICS_VERSION);
            if media.eq_ignore_ascii_case(OPEN_METRICS) && is_written {
                open_metrics = f64::max(open_metrics, quality);
            } else if ["text/plain", "text/*", "*/*"].contains(&&*media.to_ascii_lowercase()) {
                text = f64::max(text, quality);
            }
        }
        if open_metrics > 0.0 && open_metrics >= text {
            Self::OpenMetrics
        } else {
            Self::Text
        }
    }

    /// The content type of a page.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(accept: &[&str]) -> PageFormat {
        let mut headers = HeaderMap::new();
        for value in accept {
            headers.append(header::ACCEPT, value.parse().unwrap());
        }
        PageFormat::accepted_by(&headers)
    }

    #[test]
    fn open_metrics_is_given_to_who_asks_for_it() {
        for accept in [
            // Prometheus 2.42, and 3.
            "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,\
             text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
            "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
             text/plain;version=1.0.0;escaping=allow-utf-8;q=0.5,text/plain;version=0.0.4;q=0.4,*/*;q=0.3",
            "application/openmetrics-text",
            "Application/OpenMetrics-Text; Version=\"1.0.0\"; Q=1",
            "text/plain;q=0.5, application/openmetrics-text;q=0.5",
        ] {
            assert_eq!(form(&[accept]), PageFormat::OpenMetrics, "{accept}");
        }
        let apart = ["text/plain;q=0.1", "application/openmetrics-text;q=0.2"];
        assert_eq!(form(&apart), PageFormat::OpenMetrics);
    }

    #[test]
    fn text_is_given_to_all_others() {
        for accept in [
            "",
            "*/*",
            "text/plain",
            "text/html,application/xhtml+xml,*/*;q=0.8",
            "application/openmetrics-text;version=0.0.1",
            "application/openmetrics-text;version=1.0.0;q=0",
            "application/openmetrics-text;q=0.4, text/plain;q=0.5",
            "application/openmetrics-text;q=a",
            ";;q=,=",
        ] {
            assert_eq!(form(&[accept]), PageFormat::Text, "{accept}");
        }
        assert_eq!(form(&[]), PageFormat::Text);
    }
}
