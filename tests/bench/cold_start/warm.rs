//! The CPU of a warm invocation that has next to nothing to do.

use crate::events;
use crate::programs::{NOTHING, World};

/// Invocations before those that count.
const WARM_UP: usize = 200;

/// CPU per invocation in microseconds; `None` for a program every invocation of which calls S3 or SQS.
pub(crate) fn measure(world: &World, program: &str, invocations: usize) -> Option<f64> {
    let event = match program {
        NOTHING | "deliver" | "deadletter" => events::empty_batch(),
        "publish" => events::unauthorized(),
        "manage" => events::without_key(),
        _ => return None,
    };
    let (api, process) = world.start(program);
    api.invoke(&event, WARM_UP);
    let before = process.cpu();
    api.invoke(&event, invocations);
    let spent = process.cpu().saturating_sub(before);
    Some(spent.as_secs_f64() * 1e6 / invocations as f64)
}
