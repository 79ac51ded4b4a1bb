//! Dead letters: lists of them, and what an operator does about them.

mod actions;
mod end;
mod failures;
mod forms;
mod groups;
mod list;
mod notices;
mod owner;
mod places;
mod record;
mod replay;
mod replay_source;
mod rows;
mod search;
mod send_since;
mod ticked;

use axum::routing::{get, post};

use self::end::{delete, resolve};
pub(crate) use self::failures::{failure_list, left_out_facts};
use self::groups::show_groups;
use self::list::show_list;
use self::record::show_record;
use self::replay::submit_replay;
use self::send_since::show_page;
use crate::console::PageRoutes;

/// The routes of dead letters.
pub(crate) fn routes() -> PageRoutes {
    PageRoutes::new()
        .route("/dead-letters", get(show_groups))
        .route("/dead-letters/list", get(show_list))
        .route("/dead-letters/send-since", get(show_page))
        .route("/dead-letters/record", get(show_record))
        .route("/dead-letters/replay", post(submit_replay))
        .route("/dead-letters/resolve", post(resolve))
        .route("/dead-letters/delete", post(delete))
}
