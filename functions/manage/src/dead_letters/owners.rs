//! The subscriptions that have dead letters, also those that are gone: read from the keys, name by name.

use futures_util::stream::{self, StreamExt, TryStreamExt};
use posthaste_core::stored::layout;
use posthaste_ports::{ObjectStore, PortError};

/// Most subscriptions of one request.
pub(crate) const OWNERS_MAX: usize = 1000;

/// Listings side by side.
pub(crate) const LISTINGS_AT_ONCE: usize = 16;

/// A subscription with dead letters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owner {
    /// The prefix of its keys.
    pub(crate) prefix: String,
    /// The year of the first of its keys, so of its oldest dead letters.
    pub(crate) first_year: u16,
}

/// Whose dead letters are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Scope {
    All,
    /// Those under this prefix of a topic.
    Topic(String),
    /// Those under this prefix of a subscription.
    Subscription(String),
}

impl Scope {
    /// The subscriptions with dead letters, at most [`OWNERS_MAX`].
    pub(crate) async fn owners(&self, bucket: &impl ObjectStore) -> Result<Vec<Owner>, PortError> {
        let prefixes = match self {
            Self::Subscription(prefix) => vec![prefix.clone()],
            Self::Topic(prefix) => folders(bucket, prefix).await?,
            Self::All => {
                let topics = folders(bucket, "").await?;
                let topics = topics.into_iter().filter(|prefix| is_of_a_topic(prefix));
                let found = topics.map(|topic| async move { folders(bucket, &topic).await });
                stream::iter(found).buffered(LISTINGS_AT_ONCE).try_concat().await?
            }
        };
        let owners = prefixes.into_iter().take(OWNERS_MAX).map(|prefix| owner(bucket, prefix));
        let owners: Vec<_> = stream::iter(owners).buffered(LISTINGS_AT_ONCE).try_collect().await?;
        Ok(owners.into_iter().flatten().collect())
    }
}

/// Whether letters of a topic lie in a folder. Names are in upper case there.
fn is_of_a_topic(folder: &str) -> bool {
    folder != layout::MALFORMED && !folder.contains(|c: char| c.is_ascii_lowercase())
}

async fn owner(bucket: &impl ObjectStore, prefix: String) -> Result<Option<Owner>, PortError> {
    let first = bucket.list(&prefix, None, 1).await?.objects;
    let year = first.first().and_then(|meta| meta.key.strip_prefix(&prefix)?.split('/').next()?.parse().ok());
    // A key of another form comes before or behind those of dead letters: then all years are looked at.
    Ok((!first.is_empty()).then(|| Owner { prefix, first_year: year.unwrap_or(FIRST_YEAR) }))
}

/// The year before which no dead letter was written by posthaste, or by Event Grid.
const FIRST_YEAR: u16 = 2018;

/// The folders right under a prefix. Each costs a listing of one key.
async fn folders(bucket: &impl ObjectStore, prefix: &str) -> Result<Vec<String>, PortError> {
    let (mut folders, mut after) = (Vec::new(), None);
    while folders.len() < OWNERS_MAX {
        let listed = bucket.list(prefix, after.as_deref(), 1).await?.objects;
        let Some(meta) = listed.first() else { break };
        let name = meta.key.strip_prefix(prefix).and_then(|rest| rest.split_once('/'));
        after = Some(match name {
            Some((name, _)) => {
                folders.push(format!("{prefix}{name}/"));
                past(prefix, name)
            }
            None => meta.key.clone(),
        });
    }
    Ok(folders)
}

/// A key behind all keys of a folder and before those of the next one: `0` follows `/`.
fn past(prefix: &str, name: &str) -> String {
    format!("{prefix}{name}0")
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
        let found = async |scope: Scope| {
            let owners = scope.owners(&store).await.unwrap();
            owners.into_iter().map(|owner| (owner.prefix, owner.first_year)).collect::<Vec<_>>()
        };
        let owner = |prefix: &str, year| (prefix.to_owned(), year);
        let of_orders = [owner("ORDERS/A/", 2025), owner("ORDERS/AB/", 2026)];
        assert_eq!(found(Scope::Topic("ORDERS/".to_owned())).await, of_orders);
        assert_eq!(found(Scope::Subscription("ORDERS/AB/".to_owned())).await, of_orders[1..]);
        assert_eq!(found(Scope::Subscription("ORDERS/B/".to_owned())).await, []);
        let all = found(Scope::All).await;
        assert_eq!((&all[..2], &all[2..]), (&of_orders[..], &[owner("ORDERS1/A/", FIRST_YEAR)][..]));
    }
}
