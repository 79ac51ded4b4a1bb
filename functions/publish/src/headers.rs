//! The names of this function's own headers.

/// The header in which a producer declares its tier. It can step back behind the tier of its key,
/// never before it: `bulk` means something with every key, `standard` with an internal one.
pub const TIER_HEADER: &str = "posthaste-tier";

/// The header in which a producer names its request.
/// <https://datatracker.ietf.org/doc/draft-ietf-httpapi-idempotency-key-header/>
pub const IDEMPOTENCY_KEY_HEADER: &str = "idempotency-key";

/// The header in which a producer gives the events of its request a time to live, as an ISO 8601
/// duration. It counts from when they are accepted. An event's own `expirytime`, the subscription's
/// and the topic's time to live bound it.
pub const TIME_TO_LIVE_HEADER: &str = "posthaste-time-to-live";

/// The header in which a producer gives the time before which the events of its request are not
/// sent, as an RFC 3339 date-time. Their time to live counts from it.
pub const NOT_BEFORE_HEADER: &str = "posthaste-not-before";

/// The header in which a producer learns that it was slowed or refused, how much is used up, and of
/// what.
pub const PRESSURE_HEADER: &str = "posthaste-pressure";
