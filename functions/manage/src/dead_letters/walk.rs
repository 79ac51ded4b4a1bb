//! The dead-letter objects of some subscriptions, the newest first: month by month, and where a
//! month has more than one listing shows, day by day and hour by hour.

use futures_util::stream::{self, StreamExt, TryStreamExt};
use posthaste_core::model::Timestamp;
use posthaste_core::stored::WrittenIn;
use posthaste_core::stored::dead_letter::{KeyPeriod, written_at};
use posthaste_ports::validate::LIST_PAGE_MAX;
use posthaste_ports::{ListPage, ObjectMeta, ObjectStore, PortError};

use super::owners::{DeadLetterOwner, LISTINGS_AT_ONCE};

/// Most listings of one request. What lies before the last one is on the next page.
const LISTINGS_MAX: usize = 2000;

/// An object and when it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DatedObject {
    pub(crate) written_at: Timestamp,
    pub(crate) key: String,
    pub(crate) bytes: u64,
    /// The subscription, by its place among the owners.
    pub(crate) owner: usize,
}

/// A step of the walk.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum WalkStep {
    /// The objects of a period, the newest first. All later steps have older ones.
    Objects(Vec<DatedObject>),
    /// The listings are used up. Everything written at this time or later was answered.
    Cut(Timestamp),
    /// There is nothing more.
    End,
}

/// A walk.
#[derive(Debug)]
pub(crate) struct NewestFirstWalk {
    owners: Vec<DeadLetterOwner>,
    written: WrittenIn,
    /// Periods to look at with the owners that have objects in them, the next one last.
    periods: Vec<(KeyPeriod, Vec<usize>)>,
    month: KeyPeriod,
    /// Objects that a listing of a longer period showed, until their part of it has its turn.
    listed: Vec<DatedObject>,
    listings: usize,
    listings_max: usize,
    has_stepped: bool,
}

impl NewestFirstWalk {
    /// A walk over what was written in a time, and before `now`.
    pub(crate) fn new(owners: Vec<DeadLetterOwner>, written: WrittenIn, now: Timestamp) -> Self {
        let to = written.to.map_or(now, |to| to.min(now));
        Self {
            owners,
            written: WrittenIn {
                to: Some(to),
                ..written
            },
            periods: Vec::new(),
            month: KeyPeriod::month_of(to),
            listed: Vec::new(),
            listings: 0,
            listings_max: LISTINGS_MAX,
            has_stepped: false,
        }
    }

    /// The owners.
    pub(crate) fn owners(&self) -> &[DeadLetterOwner] {
        &self.owners
    }

    /// The next step. The first one has objects of a period, however much is listed for it; before
    /// each later one the walk is cut when it must end.
    pub(crate) async fn next_step(
        &mut self,
        bucket: &impl ObjectStore,
        has_time: impl Fn() -> bool,
    ) -> Result<WalkStep, PortError> {
        loop {
            let Some((period, owners)) = self.next_period() else {
                return Ok(WalkStep::End);
            };
            if self.has_stepped && (self.listings >= self.listings_max || !has_time()) {
                return Ok(WalkStep::Cut(period.ends_at()));
            }
            let listed = self.list_period(bucket, period, owners).await?;
            let is_hour = period.sub_periods().is_empty();
            let (whole, divided): (Vec<_>, Vec<_>) = listed
                .into_iter()
                .partition(|(_, page)| page.next_after.is_none() || is_hour);
            let placed = whole
                .into_iter()
                .flat_map(|(owner, page)| self.dated_objects(owner, page));
            let placed: Vec<_> = placed.collect();
            self.listed.extend(placed);
            if divided.is_empty() {
                self.has_stepped = true;
                return Ok(WalkStep::Objects(self.take_since(period.begins_at())));
            }
            let owners: Vec<_> = divided.into_iter().map(|(owner, _)| owner).collect();
            self.periods.extend(
                period
                    .sub_periods()
                    .into_iter()
                    .map(|part| (part, owners.clone())),
            );
        }
    }

    /// The listed objects that were written at this time or later, in order.
    fn take_since(&mut self, begins: Timestamp) -> Vec<DatedObject> {
        let mut placed: Vec<_> = self
            .listed
            .extract_if(.., |object| object.written_at >= begins)
            .collect();
        placed.sort_by(|one, other| {
            other
                .written_at
                .cmp(&one.written_at)
                .then_with(|| one.key.cmp(&other.key))
        });
        placed
    }

    /// The next period that may have objects of the time that is asked for.
    fn next_period(&mut self) -> Option<(KeyPeriod, Vec<usize>)> {
        loop {
            let (period, owners) = self.periods.pop().or_else(|| self.next_month())?;
            let is_late = self.written.to.is_some_and(|to| period.begins_at() >= to);
            let is_early = self
                .written
                .from
                .is_some_and(|from| period.ends_at() <= from);
            if !is_late && !is_early && !owners.is_empty() {
                return Some((period, owners));
            }
        }
    }

    fn next_month(&mut self) -> Option<(KeyPeriod, Vec<usize>)> {
        let month = self.month;
        let is_over = self
            .written
            .from
            .is_some_and(|from| month.ends_at() <= from);
        let first_year = self.owners.iter().map(|owner| owner.first_year).min()?;
        if is_over || month.year() < first_year {
            return None;
        }
        self.month = month.month_before();
        let owners = self.owners.iter().enumerate();
        let owners = owners.filter(|(_, owner)| owner.first_year <= month.year());
        Some((month, owners.map(|(index, _)| index).collect()))
    }

    /// The listing of a period for each of the owners: its first page, or all of an hour, which has
    /// no parts.
    async fn list_period(
        &mut self,
        bucket: &impl ObjectStore,
        period: KeyPeriod,
        owners: Vec<usize>,
    ) -> Result<Vec<(usize, ListPage)>, PortError> {
        let key = period.key_part();
        let is_hour = period.sub_periods().is_empty();
        let prefixes = owners
            .into_iter()
            .map(|owner| (owner, format!("{}{key}", self.owners[owner].prefix)));
        let listings =
            stream::iter(prefixes.collect::<Vec<_>>()).map(|(owner, prefix)| async move {
                let (page, listings) = list_prefix(bucket, &prefix, is_hour).await?;
                Ok((owner, page, listings))
            });
        let listed: Vec<_> = listings.buffered(LISTINGS_AT_ONCE).try_collect().await?;
        self.listings += listed
            .iter()
            .map(|(_, _, listings)| listings)
            .sum::<usize>();
        Ok(listed
            .into_iter()
            .map(|(owner, page, _)| (owner, page))
            .collect())
    }

    /// The objects of an owner that were written in the time that is asked for.
    fn dated_objects(&self, owner: usize, page: ListPage) -> Vec<DatedObject> {
        page.objects
            .into_iter()
            .filter_map(|meta| self.dated_object(owner, meta))
            .collect()
    }

    fn dated_object(&self, owner: usize, meta: ObjectMeta) -> Option<DatedObject> {
        let prefix = &self.owners[owner].prefix;
        let written_at = written_at(prefix, &meta.key, meta.modified_at)?;
        let is_wanted = self
            .written
            .includes_object(prefix, &meta.key, meta.modified_at);
        is_wanted.then_some(DatedObject {
            written_at,
            key: meta.key,
            bytes: meta.size,
            owner,
        })
    }
}

/// A page of objects, or all of them, with the number of listings.
async fn list_prefix(
    bucket: &impl ObjectStore,
    prefix: &str,
    all: bool,
) -> Result<(ListPage, usize), PortError> {
    let mut listed = bucket.list(prefix, None, LIST_PAGE_MAX).await?;
    let mut listings = 1;
    while all && let Some(after) = listed.next_after.take() {
        let more = bucket.list(prefix, Some(&after), LIST_PAGE_MAX).await?;
        listed.objects.extend(more.objects);
        listed.next_after = more.next_after;
        listings += 1;
    }
    Ok((listed, listings))
}

#[cfg(test)]
mod tests {
    use posthaste_testkit::memory::MemoryStore;
    use posthaste_testkit::{PortOperation, Recorded, RecordedCalls};

    use super::super::owners::DeadLetterScope;
    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    /// A store with the objects of these subscriptions and hours, so many of each.
    fn store(objects: &[(&str, &str, usize)]) -> MemoryStore {
        let store = MemoryStore::default();
        for (subscription, hour, count) in objects {
            for number in 0..*count {
                let key = format!("ORDERS/{subscription}/{hour}/{number:04}.json");
                // A copy: it counts as written at the beginning of its hour.
                store.write_at(&key, "[]", at("2027-01-01T00:00:00Z"));
            }
        }
        store
    }

    /// The subscriptions and hours of the objects that a walk finds, and how many of each, in
    /// order; and the number of listings.
    async fn walked(store: &MemoryStore, listings_max: usize) -> (Vec<(String, usize)>, usize) {
        let calls = RecordedCalls::default();
        let bucket = Recorded::new(store.clone(), "bucket", &calls);
        let mut found = Vec::<(String, usize)>::new();
        let mut to = None;
        for _ in 0..100 {
            let owners = DeadLetterScope::Topic("ORDERS/".to_owned())
                .list_owners(&bucket)
                .await
                .unwrap()
                .0;
            let written = WrittenIn { from: None, to };
            let walk = NewestFirstWalk::new(owners, written, at("2026-03-10T12:00:00Z"));
            let mut walk = NewestFirstWalk {
                listings_max,
                ..walk
            };
            to = loop {
                match walk.next_step(&bucket, || true).await.unwrap() {
                    WalkStep::Cut(at) => break Some(at),
                    WalkStep::End => return (found, calls.count(PortOperation::List)),
                    WalkStep::Objects(objects) => {
                        for DatedObject { key, .. } in objects {
                            let folder = key["ORDERS/".len()..]
                                .rsplit_once('/')
                                .unwrap()
                                .0
                                .to_owned();
                            match found.last_mut() {
                                Some((last, count)) if *last == folder => *count += 1,
                                _ => found.push((folder, 1)),
                            }
                        }
                    }
                }
            };
        }
        panic!("the walk does not get on: {found:?}");
    }

    /// A quiet month costs one listing a subscription, and no day that is to come is listed.
    #[tokio::test]
    async fn quiet_month_costs_one_listing_and_skips_future_days() {
        let quiet = store(&[
            ("A", "2026/3/9/23", 2),
            ("A", "2026/3/10/9", 1),
            ("B", "2026/3/10/10", 1),
        ]);
        let (found, listings) = walked(&quiet, LISTINGS_MAX).await;
        let expected = [
            ("B/2026/3/10/10", 1),
            ("A/2026/3/10/9", 1),
            ("A/2026/3/9/23", 2),
        ];
        assert_eq!(
            found,
            expected.map(|(folder, count)| (folder.to_owned(), count))
        );
        // One for the subscriptions, and one of each of them for each month back to January.
        assert_eq!(listings, 1 + 3 * 2);
        let (_, listings) = walked(&store(&[("A", "2026/3/9/23", 1_001)]), LISTINGS_MAX).await;
        // The month, ten days, the hours of one, two pages of an hour, two months; pages of
        // subscriptions.
        assert_eq!(listings, 1 + 10 + 24 + 1 + 2 + 2);
    }

    /// Periods are divided only where one listing does not show all of them, and the order is kept.
    #[tokio::test]
    async fn only_overfull_periods_are_divided_and_order_is_kept() {
        let busy = store(&[
            ("A", "2026/3/9/23", 1_001),
            ("B", "2026/3/9/9", 1),
            ("B", "2026/3/10/1", 1),
        ]);
        let (found, _) = walked(&busy, LISTINGS_MAX).await;
        let expected = [
            ("B/2026/3/10/1", 1),
            ("A/2026/3/9/23", 1_001),
            ("B/2026/3/9/9", 1),
        ];
        assert_eq!(
            found,
            expected.map(|(folder, count)| (folder.to_owned(), count))
        );
    }

    /// A walk that is cut at every step still gets on, and finds each object once.
    #[tokio::test]
    async fn walk_cut_at_every_step_finds_each_object_once() {
        let names: Vec<String> = (0..30).map(|number| format!("S{number:02}")).collect();
        let mut objects: Vec<(&str, &str, usize)> = vec![("A", "2026/3/9/23", 1_001)];
        objects.extend(names.iter().map(|name| (&**name, "2026/3/9/23", 1)));
        objects.push(("A", "2026/3/9/22", 1_001));
        let (found, _) = walked(&store(&objects), 1).await;
        assert_eq!(
            found.iter().map(|(_, count)| count).sum::<usize>(),
            2 * 1_001 + 30
        );
    }
}
