//! Examination of what the other ports do not show, for `posthaste doctor`: the machine or the
//! account that an installation runs on, and its connections to endpoints.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use posthaste_core::api::doctor::{CheckView, ConnectedEndpoint, EndpointFault};
use posthaste_core::model::{Link, Timestamp};

/// A look that is under way. Dropping it ends it.
pub type PendingLook<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A check that is under way.
pub struct PendingCheck {
    /// The name of the check, by which it is reported if it does not end in time.
    pub name: &'static str,
    /// The subject of the check.
    pub of: String,
    /// The look itself, which ends with a result whatever it finds.
    pub look: PendingLook<CheckView>,
}

impl fmt::Debug for PendingCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Check")
            .field("name", &self.name)
            .field("of", &self.of)
            .finish_non_exhaustive()
    }
}

/// Looks at what an installation stands on. A look changes nothing and leaves nothing behind.
pub trait InstallationExaminer: fmt::Debug + Send + Sync {
    /// The checks of the machine or the account. They are independent of each other, and may be
    /// made at once.
    fn checks(&self) -> Vec<PendingCheck>;

    /// The time that the clock shows at least, unless it was set back. `None` where it is unknown.
    fn clock_at_least(&self) -> Option<Timestamp>;

    /// Connects to a link as a delivery does: by the same name servers, rules on addresses and
    /// trusted authorities. The TLS handshake is whole, no bytes of HTTP are sent, and the
    /// connection is closed. All of it ends within `timeout`.
    fn check_link(
        &self,
        link: Link,
        timeout: Duration,
    ) -> PendingLook<Result<ConnectedEndpoint, EndpointFault>>;
}
