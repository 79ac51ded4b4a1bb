//! Access to the pages: sign-in, sessions, the check of forms, and the headers of every response.

mod form;
mod framing;
mod guard;
mod outside;
mod session_editor;
mod sessions;
mod sign_in;
mod unavailable;
mod visitors;

pub(crate) use self::guard::guard_pages;
pub(crate) use self::sessions::session_routes;
pub(crate) use self::sign_in::{show_sign_in, sign_in};
pub use self::visitors::VisitorAccess;
