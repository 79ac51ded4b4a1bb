//! Work that a request began outside of its topic's record: written down before the record, and
//! finished here or by wake if the process of the request died.
//!
//! | what is written down | who finishes it |
//! |---|---|
//! | `validating_mark_key/{topic}`: endpoints are to be asked for their consent | this function |
//! | `ending/{digest}`: dead letters are resolved or deleted | this function |
//! | `force_request_key/{subscription}`: holds are to end, events to go out | wake |
//! | `disabled_notice_key/{subscription}`: a notice of a disabled subscription | wake |
//! | `replaying/{id}`: a replay, with the record that is meant | wake |
//! | `temporary/{topic}`: the topic, or a part of it, is to go | wake |

use std::sync::Arc;
use std::time::Duration;

use axum::extract::FromRef;
use futures_util::future::join;
use posthaste_ports::{Clock, Ports};
use posthaste_services::{LeftWork, timeout};

use crate::answer::ApiError;
use crate::begun_requests::BegunRequests;
use crate::left_handshakes::LeftHandshakes;
use crate::look_trigger::{LOOK_BESIDE_REST, LOOK_BESIDE_TIME_MAX, LookTrigger};
use crate::manage::Manage;
use crate::resolve::left::LeftEndings;
use crate::shared_port::SharedPort;

/// Time between two looks at what processes left.
pub const FINISH_PERIOD: Duration = Duration::from_secs(30);

impl<P: Ports> Manage<P> {
    /// Finishes what processes left. What fails, and what there is no time for, is left for the next
    /// time.
    pub async fn finish_left(self: &Arc<Self>, left: LeftWork) {
        LeftFinisher::from_ref(self)
            .finish_left_work(LookTrigger::OnSchedule, left)
            .await;
    }
}

/// The looks at what processes left.
pub(crate) struct LeftFinisher<P: Ports> {
    clock: P::Clock,
    work: SharedPort<P, BegunRequests>,
    handshakes: LeftHandshakes<P>,
    endings: LeftEndings<P>,
}

impl<P: Ports> FromRef<Arc<Manage<P>>> for LeftFinisher<P> {
    fn from_ref(manage: &Arc<Manage<P>>) -> Self {
        Self {
            clock: manage.clock.clone(),
            work: SharedPort::new(manage, |it| &it.work),
            handshakes: LeftHandshakes::from_ref(manage),
            endings: LeftEndings::from_ref(manage),
        }
    }
}

impl<P: Ports> LeftFinisher<P> {
    /// Gives an answer, and looks beside it at what other processes left, if that is due: for a
    /// process that only runs while it answers.
    pub(crate) async fn look_beside<T>(&self, answer: impl Future<Output = T>) -> T {
        if !self.work.is_look_due(self.clock.monotonic(), FINISH_PERIOD) {
            return answer.await;
        }
        let look = Box::pin(self.finish_left_work(LookTrigger::BesideAnswer, LeftWork::Old));
        let length = LOOK_BESIDE_TIME_MAX + LOOK_BESIDE_REST;
        join(answer, timeout(&self.clock, length, look)).await.0
    }

    async fn finish_left_work(&self, look: LookTrigger, left: LeftWork) {
        let until = self.clock.monotonic() + look.time_max();
        let (handshakes, endings) = join(
            Box::pin(self.handshakes.finish_handshakes(look, left, until)),
            Box::pin(self.endings.finish_endings(left, until)),
        )
        .await;
        report_unfinished("handshakes", handshakes);
        report_unfinished("dead letters", endings);
    }
}

fn report_unfinished(work: &'static str, finished: Result<(), ApiError>) {
    if let Err(error) = finished {
        let problem = error.0.kind.title();
        tracing::warn!(
            work,
            problem,
            "work that was left not finished; tried again"
        );
    }
}
