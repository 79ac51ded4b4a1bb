//! All searches.

use crate::search::Search;
use crate::{budget, fair, inbox, pool, single_flight, subscription};

/// Each of them. A test finds its own by the file that it searches.
pub const SEARCHES: [Search; 6] = [
    fair::SEARCH,
    subscription::SEARCH,
    budget::SEARCH,
    single_flight::SEARCH,
    inbox::SEARCH,
    pool::SEARCH,
];
