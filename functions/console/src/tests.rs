//! The console over the API, through its router.
