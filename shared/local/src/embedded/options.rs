//! Settings of the embedded store.

use posthaste_core::model::{LOG_DISK_FREE_MIN, MAX_RECEIVE_COUNT, RECORDS_WAITING_BYTES_MAX};
use posthaste_core::pressure::BatchPointSettings;

/// Settings of the embedded store.
#[derive(Debug, Clone)]
pub struct LocalOptions {
    /// Most receives of a message. After them, it moves to the redrive queue.
    pub max_receive_count: u32,
    /// Most messages of the delivery queue in flight at once. One group never takes the last free
    /// ones: it gets another only while it has fewer in flight than are free.
    pub deliveries_in_flight_max: usize,
    /// Bytes of recently sent bodies kept in memory, so that the healthy path does not read the
    /// engine.
    pub body_cache_bytes: usize,
    /// Bytes of pages the engine keeps in memory.
    pub engine_cache_bytes: usize,
    /// Sends are refused as `Full` while less than this is free on the device and in the store's
    /// own file. The rest is kept for work that empties the queues: acknowledgements,
    /// replacements and state.
    pub disk_reserve_bytes: u64,
    /// Records of the delivery log are refused as `Full` while less than this is free, so that
    /// they never take the room of events.
    pub records_reserve_bytes: u64,
    /// Most bytes of records that wait. More are refused as `Full`.
    pub records_bytes_max: u64,
    /// Settings for the count of batch points.
    pub batch_points: BatchPointSettings,
}

impl Default for LocalOptions {
    fn default() -> Self {
        Self {
            max_receive_count: MAX_RECEIVE_COUNT,
            deliveries_in_flight_max: 1000,
            body_cache_bytes: 32 << 20,
            engine_cache_bytes: 24 << 20,
            disk_reserve_bytes: 32 << 20,
            records_reserve_bytes: LOG_DISK_FREE_MIN,
            records_bytes_max: RECORDS_WAITING_BYTES_MAX,
            batch_points: BatchPointSettings::default(),
        }
    }
}
