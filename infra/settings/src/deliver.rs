//! The settings of deliver, made from what was given in either place.

use posthaste_deliver::DeliverSettings;

use crate::table;
use crate::values::Values;

/// The settings of deliver: `base`, changed by what is given.
pub fn deliver_settings(values: &mut impl Values, base: DeliverSettings) -> DeliverSettings {
    let mut number = |setting, default| values.get(setting).map_or(default, usize::from);
    DeliverSettings {
        requests_max: number(&table::REQUESTS_MAX, base.requests_max),
        requests_per_link_start: number(&table::REQUESTS_PER_LINK_START, base.requests_per_link_start),
        requests_per_link_max: number(&table::REQUESTS_PER_LINK_MAX, base.requests_per_link_max),
        waiting_per_connection: number(&table::WAITING_PER_CONNECTION, base.waiting_per_connection),
        origin: values.get(&table::WEBHOOK_ORIGIN).unwrap_or(base.origin),
        ..base
    }
}
