//! The subscriptions that have dead letters, also those that are gone: read from the keys, name by
//! name.

use futures_util::stream::{self, StreamExt, TryStreamExt};
use posthaste_core::stored::layout;
use posthaste_ports::validate::LIST_PAGE_MAX;
use posthaste_ports::{ObjectStore, PortError};

/// Most subscriptions of one request.
pub(crate) const OWNERS_MAX: usize = 1000;

/// Listings side by side.
pub(crate) const LISTINGS_AT_ONCE: usize = 16;

/// A subscription with dead letters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeadLetterOwner {
    /// The prefix of its keys.
    pub(crate) prefix: String,
    /// The year of the first of its keys, so of its oldest dead letters.
    pub(crate) first_year: u16,
}

/// The subscriptions whose dead letters are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DeadLetterScope {
    All,
    /// Those under this prefix of a topic.
    Topic(String),
    /// Those under this prefix of a subscription.
    Subscription(String),
}

impl DeadLetterScope {
    /// The subscriptions with dead letters, at most [`OWNERS_MAX`], and whether there are more.
    pub(crate) async fn list_owners(
        &self,
        bucket: &impl ObjectStore,
    ) -> Result<(Vec<DeadLetterOwner>, bool), PortError> {
        let mut owners = match self {
            Self::Subscription(prefix) => find_owner(bucket, prefix).await?.into_iter().collect(),
            Self::Topic(prefix) => owners_of(bucket, prefix).await?,
            Self::All => {
                let topics = list_folders(bucket, "")
                    .await?
                    .into_iter()
                    .map(|(prefix, _)| prefix);
                let topics = topics.filter(|prefix| is_of_a_topic(prefix));
                let found = topics.map(|topic| async move { owners_of(bucket, &topic).await });
                stream::iter(found)
                    .buffered(LISTINGS_AT_ONCE)
                    .try_concat()
                    .await?
            }
        };
        let has_more = owners.len() > OWNERS_MAX;
        owners.truncate(OWNERS_MAX);
        Ok((owners, has_more))
    }
}

/// Whether letters of a topic lie in a folder. Names are in upper case there.
fn is_of_a_topic(folder: &str) -> bool {
    folder != layout::MALFORMED && !folder.contains(|c: char| c.is_ascii_lowercase())
}

async fn find_owner(
    bucket: &impl ObjectStore,
    prefix: &str,
) -> Result<Option<DeadLetterOwner>, PortError> {
    let first = bucket.list(prefix, None, 1).await?.objects;
    Ok(first
        .first()
        .map(|meta| DeadLetterOwner::from_first_key(prefix.to_owned(), &meta.key)))
}

async fn owners_of(
    bucket: &impl ObjectStore,
    topic: &str,
) -> Result<Vec<DeadLetterOwner>, PortError> {
    let folders = list_folders(bucket, topic).await?.into_iter();
    Ok(folders
        .map(|(prefix, first)| DeadLetterOwner::from_first_key(prefix, &first))
        .collect())
}

impl DeadLetterOwner {
    /// The subscription of a prefix, by the first of its keys.
    fn from_first_key(prefix: String, first: &str) -> Self {
        let year = first
            .strip_prefix(&prefix)
            .and_then(|rest| rest.split('/').next()?.parse().ok());
        // A key of another form comes before or behind those of dead letters: then all years are
        // looked at.
        Self {
            prefix,
            first_year: year.unwrap_or(FIRST_YEAR),
        }
    }
}

/// The year before which no dead letter was written by posthaste, or by Event Grid.
const FIRST_YEAR: u16 = 2018;

/// The folders right under a prefix, each with the first of its keys, and one more than
/// [`OWNERS_MAX`] at most. A listing shows many small ones; behind a large one the next begins.
async fn list_folders(
    bucket: &impl ObjectStore,
    prefix: &str,
) -> Result<Vec<(String, String)>, PortError> {
    let mut folders = Vec::<(String, String)>::new();
    let mut after = None::<String>;
    while folders.len() <= OWNERS_MAX {
        let listed = bucket.list(prefix, after.as_deref(), LIST_PAGE_MAX).await?;
        for meta in listed.objects {
            let name = meta
                .key
                .strip_prefix(prefix)
                .and_then(|rest| rest.split_once('/'));
            let Some((name, _)) = name else { continue };
            let folder = format!("{prefix}{name}/");
            if folders.last().is_none_or(|(last, _)| *last != folder) {
                folders.push((folder, meta.key));
            }
        }
        let Some(next) = listed.next_after else { break };
        let last = folders
            .last()
            .and_then(|(folder, _)| folder.strip_suffix('/'));
        let past_last = last.map(key_after_folder).filter(|past| *past > next);
        after = Some(past_last.unwrap_or(next));
    }
    Ok(folders)
}

/// A key behind all keys of a folder and before those of the next one: `0` follows `/`.
fn key_after_folder(folder: &str) -> String {
    format!("{folder}0")
}

#[cfg(test)]
mod tests {
    use posthaste_testkit::memory::MemoryStore;

    use super::*;

    #[tokio::test]
    async fn subscriptions_with_dead_letters_are_found_by_their_keys() {
        let store = MemoryStore::default();
        for key in [
            "MALFORMED/2026/3/7/4/x",
            "ORDERS/A/2025/12/31/23/x.json",
            "ORDERS/A/2026/1/1/0/x.json",
            "ORDERS/AB/2026/1/1/0/x.json",
            "ORDERS1/A/foreign.json",
            "resolved/ORDERS/A/2026/1/1/0/x.json",
            "stray",
        ] {
            store.write(key, "[]");
        }
        let found = async |scope: DeadLetterScope| {
            let owners = scope.list_owners(&store).await.unwrap().0;
            owners
                .into_iter()
                .map(|owner| (owner.prefix, owner.first_year))
                .collect::<Vec<_>>()
        };
        let owner = |prefix: &str, year| (prefix.to_owned(), year);
        let of_orders = [owner("ORDERS/A/", 2025), owner("ORDERS/AB/", 2026)];
        assert_eq!(
            found(DeadLetterScope::Topic("ORDERS/".to_owned())).await,
            of_orders
        );
        assert_eq!(
            found(DeadLetterScope::Subscription("ORDERS/AB/".to_owned())).await,
            of_orders[1..]
        );
        assert_eq!(
            found(DeadLetterScope::Subscription("ORDERS/B/".to_owned())).await,
            []
        );
        let all = found(DeadLetterScope::All).await;
        assert_eq!(
            (&all[..2], &all[2..]),
            (&of_orders[..], &[owner("ORDERS1/A/", FIRST_YEAR)][..])
        );
    }
}
