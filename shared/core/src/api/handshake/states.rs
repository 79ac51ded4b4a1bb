//! The states of a subscription: what a write, an operator's action and the end of a handshake make
//! of them.
//!
//! A subscription whose endpoint is asked is sent events only with a consent to the URL it has now,
//! and by the way it is asked now. So a consent is kept with both, and whatever makes it active
//! looks at that.

use serde::Deserialize;
use utoipa::ToSchema;

use super::answer::{AllowedRate, HandshakeResult};
use crate::api::{
    ConsentView, EndpointSettings, HandshakeView, IsoTimestamp, SecretText, StatusState,
    StatusView, SubscriptionSettings,
};
use crate::model::{EndpointUrl, HANDSHAKE_WINDOW, Secret, Timestamp};

/// The reason why an endpoint did not consent although it was never asked: too many others were to
/// be asked at once, or the program died.
const NOT_ASKED: &str =
    "it was not asked to the end, which validating or writing the subscription does";

/// The time and the code of a handshake that begins.
#[derive(Debug, Clone, Copy)]
pub struct NewHandshake<'a> {
    /// When.
    pub now: Timestamp,
    /// The code that the endpoint proves itself with: new for each handshake, and impossible to
    /// guess.
    pub code: &'a SecretText,
}

/// An operator's action on a subscription, as the API's paths name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(description = "What can be done.")]
pub enum SubscriptionAction {
    /// Ask the endpoint again.
    Validate,
    /// Let events wait.
    Pause,
    /// Deliver again after a pause.
    Resume,
    /// Deliver again after it was disabled, or after its endpoint did not consent.
    Enable,
    /// Let events pass by.
    Disable,
    /// Ask its endpoint now, whatever is known of it. The API has a route of its own for it.
    #[serde(skip)]
    Force,
}

impl SubscriptionAction {
    /// The word for it in paths of the API and in the log.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Validate => "validate",
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Enable => "enable",
            Self::Disable => "disable",
            Self::Force => "force",
        }
    }
}

/// Why an action is not possible now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WrongState {
    /// The subscription's state does not allow the action.
    #[error("it is {state:?}, and only {needed} can be {done}")]
    State {
        /// The state it is in.
        state: StatusState,
        /// The states it should be in.
        needed: &'static str,
        /// The participle of the action, such as "paused".
        done: &'static str,
    },
    /// The subscription's endpoint is not asked for consent.
    #[error("its endpoint.validation is none, so there is nothing to validate")]
    NothingToValidate,
}

/// The status of a subscription that is written. A paused one stays paused. One that is disabled,
/// or whose endpoint has begun to be asked, stays so as long as its endpoint is the same: settings
/// are written again and again by programs that do not mean to change anything. Every other one
/// becomes active, at once or when its endpoint has consented.
pub fn status_after_write(
    present: Option<&SubscriptionSettings>,
    endpoint: &EndpointSettings,
    begin: NewHandshake<'_>,
) -> StatusView {
    let Some((settings, status)) =
        present.and_then(|settings| Some((settings, settings.status.as_ref()?)))
    else {
        return activate_or_ask(None, endpoint, begin);
    };
    let present = status.effective_at(begin.now);
    let consent = present
        .consent
        .clone()
        .filter(|consent| consent.is_for(endpoint));
    let is_same = EndpointUrl::is_same(&settings.endpoint.url, &endpoint.url)
        && settings.endpoint.validation == endpoint.validation;
    match present.state {
        StatusState::Paused => StatusView {
            consent,
            handshake: None,
            ..present
        },
        StatusState::Active if consent.is_some() || endpoint.validation.is_none() => {
            StatusView { consent, ..present }
        }
        StatusState::Disabled if is_same => StatusView { consent, ..present },
        StatusState::Pending if is_same && present.handshake.is_some() => present,
        StatusState::Active
        | StatusState::Pending
        | StatusState::Failed
        | StatusState::Disabled => activate_or_ask(None, endpoint, begin),
    }
}

/// The status after an operator's action. Where it holds a handshake, that is to be run now.
pub fn status_after_action(
    action: SubscriptionAction,
    settings: &SubscriptionSettings,
    begin: NewHandshake<'_>,
) -> Result<StatusView, WrongState> {
    let present = current_status(settings, begin.now);
    let (needed, done, is_possible) = match (action, present.state) {
        (SubscriptionAction::Validate, _) => return revalidate(present, &settings.endpoint, begin),
        (SubscriptionAction::Pause, state) => {
            ("an Active one", "paused", state == StatusState::Active)
        }
        (SubscriptionAction::Resume, state) => {
            ("a Paused one", "resumed", state == StatusState::Paused)
        }
        (SubscriptionAction::Enable, state) => (
            "a Disabled or Failed one",
            "enabled",
            matches!(state, StatusState::Disabled | StatusState::Failed),
        ),
        (SubscriptionAction::Disable, state) => (
            "one that is not",
            "disabled",
            state != StatusState::Disabled,
        ),
        (SubscriptionAction::Force, state) => {
            ("an Active one", "forced", state == StatusState::Active)
        }
    };
    if !is_possible {
        return Err(WrongState::State {
            state: present.state,
            needed,
            done,
        });
    }
    Ok(match action {
        SubscriptionAction::Pause => StatusView {
            consent: present.consent,
            ..StatusView::new(
                StatusState::Paused,
                Some("paused by an operator".to_owned()),
                begin.now,
            )
        },
        SubscriptionAction::Disable => StatusView::new(
            StatusState::Disabled,
            Some("disabled by an operator".to_owned()),
            begin.now,
        ),
        SubscriptionAction::Resume => activate_or_ask(present.consent, &settings.endpoint, begin),
        SubscriptionAction::Enable | SubscriptionAction::Validate => {
            activate_or_ask(None, &settings.endpoint, begin)
        }
        SubscriptionAction::Force => present,
    })
}

/// The status after a handshake's end; `None` if it is not the one that is under way any more,
/// because another began or the endpoint has called back meanwhile.
pub fn status_after_handshake(
    settings: &SubscriptionSettings,
    code: &SecretText,
    answer: &HandshakeResult,
    now: Timestamp,
) -> Option<StatusView> {
    let present = current_status(settings, now);
    let own = present.handshake.as_ref()?.code.as_ref()?;
    if !Secret::new(own.expose()).matches(code.expose()) {
        return None;
    }
    Some(match answer {
        HandshakeResult::Consented { rate } => {
            after_consent(present, &settings.endpoint, *rate, now)
        }
        HandshakeResult::Awaited { said } => after_no_consent_yet(present, said, now),
        HandshakeResult::Refused { reason } => after_refusal(present, reason, now),
        HandshakeResult::Unasked { reason } => after_silence(present, reason, now),
    })
}

/// The status after the endpoint called back with this code; `None` if it came too late or with
/// another code.
pub fn called_back(
    settings: &SubscriptionSettings,
    code: &SecretText,
    rate: AllowedRate,
    now: Timestamp,
) -> Option<StatusView> {
    let expires_at = settings.status.as_ref()?.handshake.as_ref()?.expires_at.0;
    if expires_at <= now {
        return None;
    }
    status_after_handshake(settings, code, &HandshakeResult::Consented { rate }, now)
}

impl HandshakeView {
    /// The code of a handshake whose endpoint is still to be asked.
    pub fn code_to_ask_with(&self) -> Option<&SecretText> {
        self.code.as_ref().filter(|_| self.asked_at.is_none())
    }
}

impl StatusView {
    /// A status without a handshake.
    pub fn new(state: StatusState, reason: Option<String>, since: Timestamp) -> Self {
        Self {
            state,
            reason,
            since: IsoTimestamp(since),
            consent: None,
            handshake: None,
        }
    }

    /// The status as it reads at this time. An endpoint that has not consented by its deadline
    /// counts as failed; no write is needed for that.
    pub fn effective_at(&self, now: Timestamp) -> Self {
        let expired = self
            .handshake
            .as_ref()
            .map(|handshake| handshake.expires_at.0)
            .filter(|until| *until <= now);
        match expired {
            Some(until) if self.state == StatusState::Pending => {
                let was_asked = self
                    .handshake
                    .as_ref()
                    .is_some_and(|handshake| handshake.asked_at.is_some());
                let said = self
                    .reason
                    .as_ref()
                    .filter(|_| was_asked)
                    .map(|said| format!(": {said}"));
                let said = said.unwrap_or_else(|| format!(": {NOT_ASKED}"));
                let reason = format!("the endpoint did not consent in time{said}");
                Self::new(StatusState::Failed, Some(reason), until)
            }
            Some(_) => Self {
                handshake: None,
                ..self.clone()
            },
            None => self.clone(),
        }
    }
}

/// Active, if nothing is to be asked or was consented to already; else pending, with a handshake.
fn activate_or_ask(
    consent: Option<ConsentView>,
    endpoint: &EndpointSettings,
    begin: NewHandshake<'_>,
) -> StatusView {
    let consent = consent.filter(|consent| consent.is_for(endpoint));
    if consent.is_some() || endpoint.validation.is_none() {
        return StatusView {
            consent,
            ..StatusView::new(StatusState::Active, None, begin.now)
        };
    }
    let reason = Some("the endpoint is asked whether it wants events".to_owned());
    let handshake = Some(begin_handshake(begin));
    StatusView {
        handshake,
        ..StatusView::new(StatusState::Pending, reason, begin.now)
    }
}

/// An active, paused or disabled one stays so while it is asked.
fn revalidate(
    present: StatusView,
    endpoint: &EndpointSettings,
    begin: NewHandshake<'_>,
) -> Result<StatusView, WrongState> {
    if endpoint.validation.is_none() {
        return Err(WrongState::NothingToValidate);
    }
    Ok(match present.state {
        StatusState::Pending | StatusState::Failed => activate_or_ask(None, endpoint, begin),
        StatusState::Active | StatusState::Paused | StatusState::Disabled => StatusView {
            handshake: Some(begin_handshake(begin)),
            ..present
        },
    })
}

fn begin_handshake(begin: NewHandshake<'_>) -> HandshakeView {
    let expires_at = IsoTimestamp(begin.now + HANDSHAKE_WINDOW);
    HandshakeView {
        code: Some(begin.code.clone()),
        expires_at,
        asked_at: None,
    }
}

fn after_consent(
    present: StatusView,
    endpoint: &EndpointSettings,
    rate: AllowedRate,
    now: Timestamp,
) -> StatusView {
    let EndpointSettings {
        url, validation, ..
    } = endpoint;
    let at = IsoTimestamp(now);
    let AllowedRate(allowed_requests_per_minute) = rate;
    let consent = ConsentView {
        url: url.clone(),
        validation: *validation,
        at,
        allowed_requests_per_minute,
    };
    let given = StatusView {
        consent: Some(consent),
        handshake: None,
        ..present
    };
    match given.state {
        StatusState::Pending | StatusState::Failed => StatusView {
            state: StatusState::Active,
            reason: None,
            since: at,
            ..given
        },
        StatusState::Active => StatusView {
            reason: None,
            ..given
        },
        StatusState::Paused | StatusState::Disabled => given,
    }
}

fn after_no_consent_yet(present: StatusView, said: &str, now: Timestamp) -> StatusView {
    let reason = Some(format!("the endpoint has yet to consent: {said}"));
    let asked_at = Some(IsoTimestamp(now));
    let handshake = present.handshake.clone().map(|handshake| HandshakeView {
        asked_at,
        ..handshake
    });
    match present.state {
        StatusState::Active | StatusState::Failed => StatusView {
            handshake,
            ..StatusView::new(StatusState::Pending, reason, now)
        },
        StatusState::Pending => StatusView {
            reason,
            handshake,
            ..present
        },
        StatusState::Paused | StatusState::Disabled => StatusView {
            consent: None,
            ..present
        },
    }
}

fn after_refusal(present: StatusView, reason: &str, now: Timestamp) -> StatusView {
    match present.state {
        StatusState::Active | StatusState::Pending | StatusState::Failed => {
            StatusView::new(StatusState::Failed, Some(reason.to_owned()), now)
        }
        StatusState::Paused | StatusState::Disabled => StatusView {
            consent: None,
            handshake: None,
            ..present
        },
    }
}

/// Silence takes nothing back: of what is not pending, only that nothing was said is kept.
fn after_silence(present: StatusView, reason: &str, now: Timestamp) -> StatusView {
    match present.state {
        StatusState::Active => StatusView {
            handshake: None,
            reason: Some(format!("it stays as it was: {reason}")),
            ..present
        },
        StatusState::Paused | StatusState::Disabled => StatusView {
            handshake: None,
            ..present
        },
        StatusState::Pending | StatusState::Failed => after_refusal(present, reason, now),
    }
}

/// The status as it reads now. What was written before there were states is active.
fn current_status(settings: &SubscriptionSettings, now: Timestamp) -> StatusView {
    match &settings.status {
        Some(status) => status.effective_at(now),
        None => StatusView::new(StatusState::Active, None, Timestamp::EPOCH),
    }
}

#[cfg(test)]
mod tests;
