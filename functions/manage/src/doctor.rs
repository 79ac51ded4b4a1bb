//! The checks that an installation makes of itself, for `posthaste doctor`: its stores, its
//! pressure, what waits, what its examiner looks at, and on request every endpoint. A check changes
//! nothing and leaves nothing behind.

mod endpoints;
mod in_time;
mod stores;

use std::sync::Arc;

use axum::extract::{FromRef, State};
use futures_util::future::{join, join_all, join4};
use posthaste_core::api::doctor::{
    CheckResult, CheckView, DoctorView, own_clock_check, pressure_check, waiting_check,
};
use posthaste_core::api::{IsoTimestamp, PressureView};
use posthaste_core::model::{Timestamp, with_causes};
use posthaste_core::pressure::PressureState;
use posthaste_core::stored::PRESSURE_KEY;
use posthaste_ports::{Clock, InstallationExaminer, ObjectStore, PortError, Ports};
use serde::Deserialize;

use self::endpoints::EndpointChecks;
use self::in_time::in_time;
use self::stores::StoreChecks;
use crate::answer::{ApiResult, JsonResponse};
use crate::document::{BadRequests, Problems};
use crate::extract::Query;
use crate::manage::Manage;
use crate::shared_port::SharedPort;
use crate::waiting_counts::WaitingCounts;

/// The query of the checks.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct DoctorQuery {
    /// Whether the endpoints of all subscriptions are connected to as well.
    #[serde(default)]
    endpoints: bool,
}

/// Check the installation
///
/// The installation looks at what it stands on: its stores, its clock, the pressure, what waits,
/// and in `serve` the disk and the limit of open files. With `endpoints`, the server connects to
/// the host of every subscription as a delivery does, and verifies its certificate; no request is
/// sent. Each check has a result of its own, so that the answer is 200 whatever was found. It comes
/// within 25 seconds.
#[utoipa::path(get, path = "/doctor", tag = "status", params(DoctorQuery),
    responses((status = 200, description = "The checks", body = DoctorView), BadRequests, Problems))]
pub(crate) async fn doctor<P: Ports>(
    State(own): State<OwnChecks<P>>,
    State(of_endpoints): State<EndpointChecks<P>>,
    Query(query): Query<DoctorQuery>,
) -> ApiResult<DoctorView> {
    let endpoints = async {
        if query.endpoints {
            of_endpoints.check_endpoints().await
        } else {
            Vec::new()
        }
    };
    let (mut checks, endpoints) = join(own.check_itself(), endpoints).await;
    checks.extend(endpoints);
    Ok(JsonResponse::new(DoctorView {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        checks,
    }))
}

/// The checks of the installation but those of endpoints.
pub(crate) struct OwnChecks<P: Ports> {
    examiner: Option<Arc<dyn InstallationExaminer>>,
    state: SharedPort<P, P::Store>,
    clock: P::Clock,
    stores: StoreChecks<P>,
    waiting: WaitingCounts<P>,
}

impl<P: Ports> FromRef<Arc<Manage<P>>> for OwnChecks<P> {
    fn from_ref(manage: &Arc<Manage<P>>) -> Self {
        Self {
            examiner: manage.examiner.clone(),
            state: SharedPort::new(manage, |it| &it.state),
            clock: manage.clock.clone(),
            stores: StoreChecks::from_ref(manage),
            waiting: WaitingCounts::from_ref(manage),
        }
    }
}

impl<P: Ports> OwnChecks<P> {
    /// Makes all checks but those of endpoints, side by side.
    async fn check_itself(&self) -> Vec<CheckView> {
        let checks = self.examiner.as_ref().map(|examiner| examiner.checks());
        let of_examiner = checks.unwrap_or_default().into_iter().map(|check| {
            let look = in_time(&self.clock, check.name, check.of, check.look);
            async move { vec![look.await] }
        });
        let (stores, monitored, waiting, examined) = join4(
            self.stores.check_stores(&self.clock),
            self.check_pressure(),
            self.check_waiting(),
            join_all(of_examiner),
        )
        .await;
        let parts = [stores, monitored, vec![waiting]];
        parts.into_iter().chain(examined).flatten().collect()
    }

    /// The pressure, and the own clock against the time at which it was measured.
    async fn check_pressure(&self) -> Vec<CheckView> {
        let read = in_time::limit_check_time(&self.clock, self.state.get(PRESSURE_KEY)).await;
        let now = self.clock.now();
        let object = match read {
            Some(Ok(object)) => object,
            Some(Err(error)) => {
                let unread = unread_pressure(with_causes(&error));
                return vec![unread, self.check_clock(now, None)];
            }
            None => {
                let unread = unread_pressure("no answer in time".to_owned());
                return vec![unread, self.check_clock(now, None)];
            }
        };
        let state = object.map(|object| PressureState::parse(&object.bytes));
        let view = match state.transpose() {
            Ok(state) => PressureView::new(state.as_ref(), now),
            Err(_) => PressureView::unreadable(),
        };
        let measured_at = view.polled_at.map(|IsoTimestamp(at)| at);
        vec![pressure_check(&view), self.check_clock(now, measured_at)]
    }

    /// The own clock. The monitor's last look says little where it goes by the same clock: it
    /// measures anew as soon as that was set back.
    fn check_clock(&self, now: Timestamp, measured_at: Option<Timestamp>) -> CheckView {
        let examiner = self.examiner.as_ref();
        let at_least = examiner.and_then(|examiner| examiner.clock_at_least());
        own_clock_check("the clock of what answers", now, measured_at.max(at_least))
    }

    /// Checks how many events wait for all subscriptions.
    async fn check_waiting(&self) -> CheckView {
        let of = "events for all subscriptions";
        let look = async {
            match self.waiting.waiting_events().count_all().await {
                Ok(all) => waiting_check(of, &all.total(), self.clock.now()),
                Err(error) => uncounted_check(of, &error),
            }
        };
        in_time(&self.clock, "waiting", of.to_owned(), look).await
    }
}

fn unread_pressure(found: String) -> CheckView {
    CheckView::passed("pressure", "what the monitor measures", found).with_result(
        CheckResult::Unknown,
        "see the check `store`: the pressure is in the state store",
    )
}

fn uncounted_check(of: &str, error: &PortError) -> CheckView {
    CheckView::passed("waiting", of, with_causes(error)).with_result(
        CheckResult::Unknown,
        "see the checks `store` and `queue`: what waits is counted there",
    )
}
