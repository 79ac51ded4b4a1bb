//! `pressure`: what the monitor measures, and what it does to producers.

use posthaste_core::api::{PressureResource, PressureView};
use posthaste_core::time::format_duration;
use serde_json::json;
use ureq::http::Method;

use super::{CommandError, Session};
use crate::client::Call;
use crate::output::Reply;

pub(super) fn run(session: &Session) -> Result<Reply, CommandError> {
    let view: PressureView = session.client.json(Call::new(Method::GET, &["pressure"]).key(&session.key))?;
    let rows = view.resources.iter().map(row).collect();
    let header = ["resource", "level", "reading", "normal", "medium", "high", "acts", "refused from"];
    Ok(Reply::new(json!(view)).line(headline(&view)).table(header, rows))
}

/// One sentence on how producers are treated.
fn headline(view: &PressureView) -> String {
    let Some(polled_at) = view.polled_at else {
        return "nothing was measured yet".to_owned();
    };
    if !view.monitored {
        return "resources are not watched".to_owned();
    }
    let refused: Vec<_> = view.refused_tiers.iter().map(ToString::to_string).collect();
    let refused = if refused.is_empty() { "nobody".to_owned() } else { refused.join(", ") };
    let tarpit = format_duration(view.tarpit.0);
    format!("{}: acknowledgements wait {tarpit}, refused: {refused} (measured {})", view.level, polled_at.0)
}

fn row(resource: &PressureResource) -> [String; 8] {
    [
        resource.resource.to_string(),
        resource.level.to_string(),
        resource.reading.to_string(),
        resource.thresholds.normal.to_string(),
        resource.thresholds.medium.to_string(),
        resource.thresholds.high.to_string(),
        if resource.acts { "yes" } else { "no" }.to_owned(),
        resource.refused_from.map(|tier| tier.to_string()).unwrap_or_default(),
    ]
}
