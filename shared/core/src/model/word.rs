//! The word of an enum's value: logs and metrics have the one that the API and stored objects have.

/// Implements `Display` for types whose values serde writes as one word.
macro_rules! display_the_word {
    ($($named:ty),+ $(,)?) => {
        $(impl std::fmt::Display for $named {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                serde::Serialize::serialize(self, f)
            }
        })+
    };
}

pub(crate) use display_the_word;

#[cfg(test)]
mod tests {
    use crate::circuit::TargetPhase;
    use crate::model::{DeadLetterReason, OutcomeName, SignatureKind};

    #[test]
    fn a_value_is_shown_by_the_word_that_is_stored() {
        let check =
            |shown: &dyn std::fmt::Display, expected| assert_eq!(shown.to_string(), expected);
        check(&OutcomeName::SocketError, "SocketError");
        check(&DeadLetterReason::EndpointGone, "EndpointGone");
        check(&TargetPhase::Glitch, "glitch");
        check(&SignatureKind::V1a, "v1a");
    }
}
