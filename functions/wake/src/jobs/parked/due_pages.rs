//! The list of parked objects, page by page, as far as they are due.

use posthaste_core::release::parked::is_due;
use posthaste_core::stored::layout;
use posthaste_ports::{Clock, ListPage, PortError, Ports};

use crate::budget::Budget;
use crate::listing::list_until;

/// A part of the list: what lies between two keys.
#[derive(Debug, Clone, Default)]
pub(super) struct Part {
    pub(super) after: Option<String>,
    pub(super) before: Option<String>,
}

/// The keys of a page that are due.
#[derive(Debug)]
pub(super) struct DuePage {
    pub(super) due: Vec<String>,
    /// The key after which more may be due.
    pub(super) next_after: Option<String>,
}

/// Lists what is due.
pub(super) struct DuePages<'a, P: Ports> {
    pub(super) store: &'a P::Store,
    pub(super) clock: &'a P::Clock,
}

impl<P: Ports> DuePages<'_, P> {
    /// The first page of a part.
    pub(super) async fn next(&self, part: &Part, budget: Budget<'_>) -> Result<DuePage, PortError> {
        let after = part.after.as_deref();
        let ListPage { objects, next_after } =
            list_until(self.store, self.clock, budget.begin, layout::PARKED, after).await?;
        let now = self.clock.now();
        let is_in_part = |key: &str| part.before.as_deref().is_none_or(|before| key < before);
        let listed = objects.len();
        let keys = objects.into_iter().map(|object| object.key);
        let due: Vec<_> = keys.take_while(|key| is_due(key, now) && is_in_part(key)).collect();
        // A page may be short and yet not the last.
        let next_after = next_after.filter(|_| due.len() == listed);
        Ok(DuePage { due, next_after })
    }
}
