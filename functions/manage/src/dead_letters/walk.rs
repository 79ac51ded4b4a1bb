//! The dead-letter objects of some subscriptions, the newest first: month by month, and where a month has
//! more than one listing shows, day by day and hour by hour.

use futures_util::stream::{self, StreamExt, TryStreamExt};
use posthaste_core::model::Timestamp;
use posthaste_core::stored::WrittenIn;
use posthaste_core::stored::dead_letter::{Period, written_at};
use posthaste_ports::validate::LIST_PAGE_MAX;
use posthaste_ports::{ListPage, ObjectMeta, ObjectStore, PortError};

use super::owners::{LISTINGS_AT_ONCE, Owner};

/// Most listings of one request. What lies before the last one is on the next page.
const LISTINGS_MAX: usize = 2000;

/// An object and when it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Placed {
    pub(crate) written_at: Timestamp,
    pub(crate) key: String,
    pub(crate) bytes: u64,
    /// The subscription, by its place among the owners.
    pub(crate) owner: usize,
}

/// A step of the walk.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The objects of a period, the newest first. All later steps have older ones.
    Objects(Vec<Placed>),
    /// The listings are used up. Everything written at this time or later was answered.
    Cut(Timestamp),
    /// There is nothing more.
    End,
}

/// A walk.
#[derive(Debug)]
pub(crate) struct Walk {
    owners: Vec<Owner>,
    written: WrittenIn,
    /// Periods to look at with the owners that have objects in them, the next one last.
    periods: Vec<(Period, Vec<usize>)>,
    month: Period,
    listings: usize,
}

impl Walk {
    /// A walk over what was written in a time, which ends at `written.to` or, without it, at `now`.
    pub(crate) fn new(owners: Vec<Owner>, written: WrittenIn, now: Timestamp) -> Self {
        let latest = written.to.map_or(now, |to| to.min(now));
        Self { owners, written, periods: Vec::new(), month: Period::month_of(latest), listings: 0 }
    }

    /// The owners.
    pub(crate) fn owners(&self) -> &[Owner] {
        &self.owners
    }

    /// The next step.
    pub(crate) async fn step(&mut self, bucket: &impl ObjectStore) -> Result<Step, PortError> {
        loop {
            let Some((period, owners)) = self.next_period() else { return Ok(Step::End) };
            if self.listings >= LISTINGS_MAX {
                return Ok(Step::Cut(period.ends()));
            }
            let listed = self.list(bucket, period, owners).await?;
            self.listings += listed.len();
            let is_whole = listed.iter().all(|(_, page)| page.next_after.is_none());
            if is_whole || period.parts().is_empty() {
                return Ok(Step::Objects(self.placed(listed)));
            }
            let some = listed.into_iter().filter(|(_, page)| !page.objects.is_empty());
            let owners: Vec<_> = some.map(|(owner, _)| owner).collect();
            self.periods.extend(period.parts().into_iter().map(|part| (part, owners.clone())));
        }
    }

    /// The next period that may have objects of the time that is asked for.
    fn next_period(&mut self) -> Option<(Period, Vec<usize>)> {
        loop {
            let (period, owners) = self.periods.pop().or_else(|| self.next_month())?;
            let is_late = self.written.to.is_some_and(|to| period.begins() >= to);
            let is_early = self.written.from.is_some_and(|from| period.ends() <= from);
            if !is_late && !is_early && !owners.is_empty() {
                return Some((period, owners));
            }
        }
    }

    fn next_month(&mut self) -> Option<(Period, Vec<usize>)> {
        let month = self.month;
        let is_over = self.written.from.is_some_and(|from| month.ends() <= from);
        let first_year = self.owners.iter().map(|owner| owner.first_year).min()?;
        if is_over || month.year() < first_year {
            return None;
        }
        self.month = month.month_before();
        let owners = self.owners.iter().enumerate();
        let owners = owners.filter(|(_, owner)| owner.first_year <= month.year());
        Some((month, owners.map(|(index, _)| index).collect()))
    }

    /// A listing of the period for each of the owners.
    async fn list(
        &self,
        bucket: &impl ObjectStore,
        period: Period,
        owners: Vec<usize>,
    ) -> Result<Vec<(usize, ListPage)>, PortError> {
        let key = period.key();
        let is_hour = period.parts().is_empty();
        let listings = stream::iter(owners).map(|owner| {
            let prefix = format!("{}{key}", self.owners[owner].prefix);
            async move {
                let page =
                    if is_hour { whole(bucket, &prefix).await } else { page(bucket, &prefix, None).await };
                Ok((owner, page?))
            }
        });
        listings.buffered(LISTINGS_AT_ONCE).try_collect().await
    }

    /// The objects that were written in the time that is asked for, in order.
    fn placed(&self, listed: Vec<(usize, ListPage)>) -> Vec<Placed> {
        let all = listed.into_iter().flat_map(|(owner, page)| {
            page.objects.into_iter().filter_map(move |meta| self.place(owner, meta))
        });
        let mut placed: Vec<_> = all.collect();
        placed.sort_by(|one, other| {
            other.written_at.cmp(&one.written_at).then_with(|| one.key.cmp(&other.key))
        });
        placed
    }

    fn place(&self, owner: usize, meta: ObjectMeta) -> Option<Placed> {
        let prefix = &self.owners[owner].prefix;
        let written_at = written_at(prefix, &meta.key, meta.modified_at)?;
        let is_wanted = self.written.takes(prefix, &meta.key, meta.modified_at);
        is_wanted.then_some(Placed { written_at, key: meta.key, bytes: meta.size, owner })
    }
}

async fn page(bucket: &impl ObjectStore, prefix: &str, after: Option<&str>) -> Result<ListPage, PortError> {
    bucket.list(prefix, after, LIST_PAGE_MAX).await
}

/// All objects of an hour, which is not divided any further.
async fn whole(bucket: &impl ObjectStore, prefix: &str) -> Result<ListPage, PortError> {
    let mut hour = page(bucket, prefix, None).await?;
    while let Some(after) = hour.next_after.take() {
        let more = page(bucket, prefix, Some(&after)).await?;
        hour.objects.extend(more.objects);
        hour.next_after = more.next_after;
    }
    Ok(hour)
}
