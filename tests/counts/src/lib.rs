#![doc = include_str!("../README.md")]

mod arrivals;
mod bounds;
mod case;
mod endpoint;
mod figure;
mod hold;
mod load;
mod trace;
mod traced;
mod wire;

pub use case::Case;
pub use endpoint::Endpoint;
pub use figure::Figure;
pub use hold::{WindowCounts, hold};
pub use load::Load;
pub use traced::hold_traced;

/// Makes a test of each case, which calls a function with it.
#[macro_export]
macro_rules! each_case {
    ($check:path) => {
        #[test]
        fn one_event_costs_no_more_than_its_bound() {
            $check($crate::Case::One);
        }

        #[test]
        fn a_hundred_events_cost_no_more_than_their_bound() {
            $check($crate::Case::Hundred);
        }

        #[test]
        fn a_fan_out_costs_no_more_than_its_bound() {
            $check($crate::Case::FanOut);
        }

        #[test]
        fn one_event_without_the_log_costs_no_more_than_its_bound() {
            $check($crate::Case::OneUnlogged);
        }

        #[test]
        fn a_hundred_events_without_the_log_cost_no_more_than_their_bound() {
            $check($crate::Case::HundredUnlogged);
        }

        #[test]
        fn a_fan_out_without_the_log_costs_no_more_than_its_bound() {
            $check($crate::Case::FanOutUnlogged);
        }
    };
}
