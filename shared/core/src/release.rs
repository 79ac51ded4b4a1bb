//! Release of deliveries that wait outside the queue: parked, held and forced ones, and dead letters that are
//! replayed. Which of them may be sent, how many at a time, and what a run remembers for the next.

pub mod allotment;
pub mod folder;
pub mod forced;
pub mod held;
pub mod link_shares;
pub mod messages;
pub mod outage;
pub mod parked;
pub mod quota;
pub mod replay;
pub mod room;
pub mod set_back;
pub mod speed;
