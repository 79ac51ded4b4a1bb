//! One test for each requirement on a sender, named after it. `requirements.md` lists them by
//! source.

mod cloud_events_http;
mod cloud_events_json;
mod dead_letters;
mod event_grid;
mod handshakes;
mod own;
mod standard_webhooks;
mod table;
mod webhooks;
mod wire;
