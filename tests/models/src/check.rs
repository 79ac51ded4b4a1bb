//! Checks of a model: all its properties hold in every order of its steps, or one is refuted.

use std::fmt::Debug;
use std::hash::Hash;

use stateright::{Checker, Expectation, HasDiscoveries, Model};

/// The states of a model that was checked to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Explored {
    /// The number of states.
    pub states: usize,
    /// The most steps from a first state to another one.
    pub depth: usize,
}

/// Checks that each property holds, and that what happens sometimes is reached. Panics with the
/// steps that refute a property.
pub fn holds<M>(name: &str, model: M) -> Explored
where
    M: Model + Send + Sync + 'static,
    M::State: Debug + Hash + Send + Sync + Clone + PartialEq + 'static,
    M::Action: Debug + Clone + PartialEq,
{
    let checked = model
        .checker()
        .finish_when(HasDiscoveries::AnyFailures)
        .spawn_bfs()
        .join();
    let found = checked.discoveries();
    for property in checked.model().properties() {
        match (property.expectation, found.get(property.name)) {
            (Expectation::Sometimes, Some(_))
            | (Expectation::Always | Expectation::Eventually, None) => {}
            (Expectation::Sometimes, None) => {
                panic!("{name}: never reached: {}", property.name);
            }
            (Expectation::Always | Expectation::Eventually, Some(path)) => {
                let last = path.last_state().clone();
                let steps = path.clone().into_actions();
                panic!(
                    "{name}: refuted: {}, by {steps:#?} to {last:#?}",
                    property.name
                );
            }
        }
    }
    assert!(checked.is_done(), "{name}: not explored to the end");
    Explored {
        states: checked.unique_state_count(),
        depth: checked.max_depth(),
    }
}

/// Checks that a property is refuted, and returns the steps that do so: the fewest there are.
pub fn refutes<M>(name: &str, model: M, property: &'static str) -> Vec<M::Action>
where
    M: Model + Send + Sync + 'static,
    M::State: Debug + Hash + Send + Sync + Clone + PartialEq + 'static,
    M::Action: Debug + Clone + PartialEq,
{
    assert_ne!(
        model.property(property).expectation,
        Expectation::Sometimes,
        "{name}: an example refutes nothing"
    );
    let only = HasDiscoveries::AnyOf([property].into());
    let checked = model.checker().finish_when(only).spawn_bfs().join();
    match checked.discovery(property) {
        Some(path) => path.into_actions(),
        None => panic!("{name}: not refuted: {property}"),
    }
}
