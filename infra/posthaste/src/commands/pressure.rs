//! `pressure`: what the monitor measures, and what it does to producers.

use serde_json::Value;
use ureq::http::Method;

use super::{CommandError, Session};
use crate::client::Call;
use crate::output::Reply;

pub(super) fn run(session: &Session) -> Result<Reply, CommandError> {
    let call = Call::new(Method::GET, &["pressure"]).key(&session.key);
    Ok(Reply::verbatim(session.client.json::<Value>(call)?))
}
