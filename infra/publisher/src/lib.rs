//! Publishing of a stream of events at a pace that obeys back pressure, whatever sends the requests.

mod batches;
mod content_type;
mod driver;
mod ending;
mod events;
mod meter;
mod outcome;
mod pace;
mod pipe;
mod pressure_header;
mod run;

pub use batches::{EventBatch, EventBatches, PackingSettings, SourceItem};
pub use content_type::{EVENT, content_type_of};
pub use driver::{RateDriver, RunHost};
pub use ending::RunEnding;
pub use events::{EventPlace, EventReader, EventsError, InputEvent};
pub use outcome::{PublishOutcome, PublishReport, RetryReason};
pub use pace::PublishPace;
pub use pipe::{PipeEvents, PipeHandle, open_pipe};
pub use pressure_header::PressureHeader;
pub use run::{PublishRun, RunCounts, RunStep};
