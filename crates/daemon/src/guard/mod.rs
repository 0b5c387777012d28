//! Everything between the network and the routes. The middleware, in this order:
//!
//! 1. The request gets an id, which the response and the log carry.
//! 2. On a connection beyond the limits, only `/livez` and `/readyz` are answered, then it is
//!    closed (429).
//! 3. A head that is too large is refused (431, 414).
//! 4. Without keys: a request for another host, or from a page of another origin, is refused (403).
//! 5. With keys: the key identifies the owner (401). The files of the studio need none.
//! 6. The owner's limits apply (429).
//! 7. The handler runs; if it panics, the client gets a 500 with the id.
//!
//! Before them, `heads` lets `Upgrade` be ignored, and a client that expects `100 Continue` gets it
//! when a handler asks for its body (`expectation`).
//!
//! Every response carries the id and the security headers, and counts as in use until its last byte
//! is sent. There is no CORS: pages of other origins cannot use the daemon.

mod address;
mod body;
mod client_stream;
mod connection_table;
mod connections;
pub mod descriptors;
mod expectation;
mod failed_keys;
mod head_limits;
mod heads;
mod json;
mod json_answers;
mod keys;
mod local_only;
mod malformed_heads;
mod middleware;
mod old_http;
mod rate_limit;
mod request_id;
mod response_body;
mod server;
#[cfg(test)]
mod tests;

pub(crate) use body::without_byte_order_mark;
pub use body::{Body, BodyLimits, body_of, read_body};
pub use connections::{Connection, ConnectionLimits, Connections, Exchange};
pub use head_limits::HeadLimits;
pub(crate) use json::field_of;
pub use json::json;
pub use keys::{Keys, NewKey, Owner, Rights};
pub use local_only::check_local;
pub use middleware::{Guard, OPEN, ResponseHead};
pub use rate_limit::{Limits, Permit, stream_permit};
pub use request_id::{RequestId, X_REQUEST_ID};
pub use response_body::GuardedBody;
pub use server::{Bound, bind, check_bind};
