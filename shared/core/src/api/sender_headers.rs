//! The headers that identify the sender, as users write them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::model::SenderHeader;

/// Which headers of requests say who sends them, and by which names. Those of the signature
/// (`webhook-id`, `webhook-timestamp`, `webhook-signature`) and `content-type` are always sent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct SenderHeaderSettings {
    /// The beginning of names, in place of `aeg` and `posthaste`: with `acme` there is
    /// `acme-attempt`. It is the `user-agent` too, and the header `posthaste-hops`, by which loops
    /// end, is `webhook-hops`. Lower-case letters, digits and single hyphens. When left out, the
    /// names are those that are documented.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "acme")]
    pub prefix: Option<String>,
    /// The headers that are not sent. None when left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub omit: Vec<SenderHeader>,
}
