//! The simulations of `tests/all` take seconds each, so a bare `cargo test` leaves this package out.
