//! Stores, a clock and chance in memory, for tests alone.

use std::collections::{BTreeMap, HashSet};
use std::future::pending;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use posthaste_core::model::Timestamp;
use posthaste_core::model::time::whole_millis;
use posthaste_ports::{
    Clock, ETag, Entropy, ErrorKind, ListPage, ObjectMeta, ObjectStore, PortError, PutCondition,
    RevalidatedObject, StoredObject, validate,
};

/// The moment at which every object is written.
pub(crate) const MODIFIED_AT: &str = "2026-11-21T10:00:00.000Z";

#[derive(Debug, Clone, Default)]
pub(crate) struct Memory(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    objects: Mutex<BTreeMap<String, (Bytes, u64)>>,
    versions: AtomicU64,
    reads: AtomicU64,
    fault: Mutex<Option<ErrorKind>>,
    put_fault: Mutex<Option<ErrorKind>>,
    damaged: Mutex<HashSet<String>>,
    out_of_reach: Mutex<HashSet<String>>,
    moves: Mutex<BTreeMap<String, String>>,
    slow: Mutex<Option<(FixedClock, Duration)>>,
    slow_lists: Mutex<Option<(FixedClock, Duration)>>,
    hangs: AtomicBool,
    when_read: WhenRead,
    when_put: Mutex<Option<(&'static str, WhenRead)>>,
}

/// An action that is taken with each read.
#[derive(Default)]
struct WhenRead(Mutex<Option<Box<dyn Fn() + Send + Sync>>>);

impl std::fmt::Debug for WhenRead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WhenRead")
    }
}

impl Memory {
    /// Every call fails from now on.
    pub(crate) fn fail(&self, kind: ErrorKind) {
        *self.0.fault.lock().unwrap() = Some(kind);
    }

    /// No call ends from now on.
    pub(crate) fn hang(&self) {
        self.0.hangs.store(true, Ordering::Relaxed);
    }

    /// Every put fails from now on.
    pub(crate) fn fail_puts(&self, kind: ErrorKind) {
        *self.0.put_fault.lock().unwrap() = Some(kind);
    }

    /// Puts succeed again.
    pub(crate) fn mend_puts(&self) {
        *self.0.put_fault.lock().unwrap() = None;
    }

    /// Makes this object unreadable, until it is deleted.
    pub(crate) fn damage(&self, key: &str) {
        self.0.damaged.lock().unwrap().insert(key.to_owned());
    }

    /// Lets every read of this object time out.
    pub(crate) fn fail_reads_of(&self, key: &str) {
        self.0.out_of_reach.lock().unwrap().insert(key.to_owned());
    }

    /// Moves an object to the first of these keys when it is read, from there to the next one, and
    /// so on.
    pub(crate) fn move_when_read(&self, key: &str, to: &[&str]) {
        let from = std::iter::once(&key).chain(to);
        self.0.moves.lock().unwrap().extend(
            from.zip(to)
                .map(|(from, to)| (from.to_string(), to.to_string())),
        );
    }

    /// Lets every read take this long from now on.
    pub(crate) fn slow_reads(&self, clock: &FixedClock, length: Duration) {
        *self.0.slow.lock().unwrap() = Some((clock.clone(), length));
    }

    /// Lets every page of a list take this long from now on.
    pub(crate) fn slow_lists(&self, clock: &FixedClock, length: Duration) {
        *self.0.slow_lists.lock().unwrap() = Some((clock.clone(), length));
    }

    /// Has this happen with every read from now on.
    pub(crate) fn when_read(&self, act: impl Fn() + Send + Sync + 'static) {
        *self.0.when_read.0.lock().unwrap() = Some(Box::new(act));
    }

    /// Has this happen once, before the next put under this prefix.
    pub(crate) fn when_put(&self, prefix: &'static str, act: impl Fn() + Send + Sync + 'static) {
        let act = WhenRead(Mutex::new(Some(Box::new(act))));
        *self.0.when_put.lock().unwrap() = Some((prefix, act));
    }

    /// The keys under a prefix.
    pub(crate) fn keys(&self, prefix: &str) -> Vec<String> {
        let objects = self.0.objects.lock().unwrap();
        let keys = objects.keys().filter(|key| key.starts_with(prefix));
        keys.cloned().collect()
    }

    /// The texts of all objects under a prefix.
    pub(crate) fn list_text(&self, prefix: &str) -> String {
        let objects = self.0.objects.lock().unwrap();
        let found = objects.iter().filter(|(key, _)| key.starts_with(prefix));
        found
            .map(|(_, (bytes, _))| String::from_utf8_lossy(bytes).into_owned())
            .collect()
    }

    fn act_on_put(&self, key: &str) {
        let mut waiting = self.0.when_put.lock().unwrap();
        let acts = waiting.take_if(|(prefix, _)| key.starts_with(*prefix));
        drop(waiting);
        if let Some((_, act)) = acts
            && let Some(act) = &*act.0.lock().unwrap()
        {
            act();
        }
    }

    fn move_away(&self, key: &str) {
        let Some(to) = self.0.moves.lock().unwrap().remove(key) else {
            return;
        };
        let mut objects = self.0.objects.lock().unwrap();
        if let Some(object) = objects.remove(key) {
            objects.insert(to, object);
        }
    }

    pub(crate) fn write(&self, key: &str, bytes: impl Into<Bytes>) {
        let version = self.0.versions.fetch_add(1, Ordering::Relaxed);
        self.0
            .objects
            .lock()
            .unwrap()
            .insert(key.to_owned(), (bytes.into(), version));
    }

    pub(crate) fn read(&self, key: &str) -> Option<Bytes> {
        self.0
            .objects
            .lock()
            .unwrap()
            .get(key)
            .map(|(bytes, _)| bytes.clone())
    }

    pub(crate) fn reads(&self) -> u64 {
        self.0.reads.load(Ordering::Relaxed)
    }

    async fn check(&self) -> Result<(), PortError> {
        if self.0.hangs.load(Ordering::Relaxed) {
            pending::<()>().await;
        }
        let fault = *self.0.fault.lock().unwrap();
        fault.map_or(Ok(()), |kind| Err(PortError::new("reach the store", kind)))
    }
}

impl ObjectStore for Memory {
    async fn get(&self, key: &str) -> Result<Option<StoredObject>, PortError> {
        self.check().await?;
        validate::object_key(key).map_err(|refusal| refusal.into_port_error("read an object"))?;
        self.0.reads.fetch_add(1, Ordering::Relaxed);
        if let Some(act) = &*self.0.when_read.0.lock().unwrap() {
            act();
        }
        self.move_away(key);
        if let Some((clock, length)) = &*self.0.slow.lock().unwrap() {
            clock.advance(*length);
        }
        if self.0.damaged.lock().unwrap().contains(key) {
            let cause = format!("the object {key} is damaged on disk");
            return Err(PortError::with_cause(
                "read an object",
                ErrorKind::Damaged,
                cause,
            ));
        }
        if self.0.out_of_reach.lock().unwrap().contains(key) {
            return Err(PortError::new("read an object", ErrorKind::TimedOut));
        }
        let object = self.0.objects.lock().unwrap().get(key).cloned();
        // Others run between the read and what follows it.
        tokio::task::yield_now().await;
        Ok(object.map(|(bytes, version)| StoredObject {
            bytes,
            etag: ETag(version.to_string()),
        }))
    }

    async fn get_if_changed(
        &self,
        key: &str,
        known: &ETag,
    ) -> Result<RevalidatedObject, PortError> {
        Ok(match self.get(key).await? {
            Some(object) if object.etag == *known => RevalidatedObject::Unchanged,
            Some(object) => RevalidatedObject::Changed(object),
            None => RevalidatedObject::Missing,
        })
    }

    async fn put(
        &self,
        key: &str,
        bytes: Bytes,
        condition: PutCondition,
    ) -> Result<ETag, PortError> {
        self.check().await?;
        validate::object_key(key).map_err(|refusal| refusal.into_port_error("write an object"))?;
        // A put without a condition never breaks one.
        let is_possible = |kind: &ErrorKind| {
            *kind != ErrorKind::PreconditionFailed || condition != PutCondition::Always
        };
        let fault = *self.0.put_fault.lock().unwrap();
        if let Some(kind) = fault.filter(is_possible) {
            return Err(PortError::new("write an object", kind));
        }
        self.act_on_put(key);
        let mut objects = self.0.objects.lock().unwrap();
        let present = objects
            .get(key)
            .map(|(_, version)| ETag(version.to_string()));
        let holds = match &condition {
            PutCondition::Always => true,
            PutCondition::IfAbsent => present.is_none(),
            PutCondition::IfMatch(etag) => present.as_ref() == Some(etag),
        };
        if !holds {
            return Err(PortError::new(
                "write an object",
                ErrorKind::PreconditionFailed,
            ));
        }
        let version = self.0.versions.fetch_add(1, Ordering::Relaxed);
        objects.insert(key.to_owned(), (bytes, version));
        Ok(ETag(version.to_string()))
    }

    async fn delete(&self, key: &str) -> Result<(), PortError> {
        self.check().await?;
        validate::object_key(key).map_err(|refusal| refusal.into_port_error("delete an object"))?;
        self.0.objects.lock().unwrap().remove(key);
        self.0.damaged.lock().unwrap().remove(key);
        Ok(())
    }

    async fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        max: usize,
    ) -> Result<ListPage, PortError> {
        self.check().await?;
        if let Some((clock, length)) = &*self.0.slow_lists.lock().unwrap() {
            clock.advance(*length);
        }
        let objects = self.0.objects.lock().unwrap();
        let start = after.map_or(Bound::Unbounded, |after| Bound::Excluded(after.to_owned()));
        let all = objects
            .range((start, Bound::Unbounded))
            .filter(|(key, _)| key.starts_with(prefix));
        let modified_at = Timestamp::parse(MODIFIED_AT).unwrap();
        let meta = |(key, (bytes, _)): (&String, &(Bytes, u64))| ObjectMeta {
            key: key.clone(),
            size: bytes.len() as u64,
            modified_at,
        };
        let mut found: Vec<_> = all.take(max + 1).map(meta).collect();
        let has_more = found.len() > max;
        found.truncate(max);
        let next_after = found
            .last()
            .filter(|_| has_more)
            .map(|last| last.key.clone());
        Ok(ListPage {
            objects: found,
            next_after,
        })
    }
}

/// A clock that stands still until it is moved. Who sleeps sleeps for ever, unless nights are
/// short.
#[derive(Debug, Clone)]
pub(crate) struct FixedClock {
    ms: Arc<AtomicU64>,
    night_ms_max: Arc<AtomicU64>,
}

impl Default for FixedClock {
    fn default() -> Self {
        let ms = Arc::new(AtomicU64::new(
            Timestamp::parse(MODIFIED_AT).unwrap().as_millis(),
        ));
        Self {
            ms,
            night_ms_max: Arc::default(),
        }
    }
}

impl FixedClock {
    pub(crate) fn advance(&self, length: Duration) {
        self.ms.fetch_add(
            u64::try_from(length.as_millis()).unwrap(),
            Ordering::Relaxed,
        );
    }

    pub(crate) fn set_back(&self, length: Duration) {
        let ms = u64::try_from(length.as_millis()).unwrap();
        self.ms.fetch_sub(ms, Ordering::Relaxed);
    }

    /// Wakes every sleeper at once from now on, at the right time.
    pub(crate) fn shorten_nights(&self) {
        self.shorten_nights_to(Duration::MAX);
    }

    /// Wakes every sleeper at once from now on that sleeps no longer than this, at the right time.
    pub(crate) fn shorten_nights_to(&self, length: Duration) {
        let ms = whole_millis(length);
        self.night_ms_max.store(ms, Ordering::Relaxed);
    }
}

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.ms.load(Ordering::Relaxed))
    }

    fn monotonic(&self) -> Duration {
        self.now().since(Timestamp::EPOCH)
    }

    async fn sleep(&self, length: Duration) {
        if length.as_millis() > u128::from(self.night_ms_max.load(Ordering::Relaxed)) {
            pending::<()>().await;
        }
        self.advance(length);
    }
}

/// Bytes that are never the same twice.
#[derive(Debug, Clone, Default)]
pub(crate) struct Numbers(Arc<AtomicU64>);

impl Entropy for Numbers {
    fn fill(&self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let number = self
                .0
                .fetch_add(1, Ordering::Relaxed)
                .wrapping_mul(0x9E37_79B9_7F4A_7C15);
            chunk.copy_from_slice(&number.to_be_bytes()[..chunk.len()]);
        }
    }
}
