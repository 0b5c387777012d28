//! The order in which runs begin on this node, and how many at once: `places` for those that are
//! executed, `limits` on them, `rates` of acceptance, the `wall_clock`. It knows nothing of what a
//! run does.

pub(super) mod limits;
pub(super) mod places;
pub(super) mod rates;
pub(super) mod wall_clock;
