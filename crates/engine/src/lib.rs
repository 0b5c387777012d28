//! Model ownership: an engine owns one llama.cpp context on one device, in a process of its own.
//!
//! It knows tokens and texts, not tasks, and imports no other module of the crate. llama.cpp answers many errors with
//! `abort()`, so the context lives in a child process (the same binary) that a pump thread feeds, watches and replaces;
//! in a thread instead for tests and small tools. Nothing outside this module may call llama.cpp.

#[cfg_attr(not(feature = "llama"), allow(dead_code, reason = "what decodes is not built"))]
mod automaton;
mod counts;
mod devices;
mod echo;
mod error;
#[cfg_attr(not(feature = "llama"), allow(dead_code, reason = "what decodes is not built"))]
mod fair;
mod fit;
mod gguf_check;
mod handle;
mod keeper;
mod link;
mod listening;
#[cfg_attr(not(feature = "llama"), allow(dead_code, reason = "what decodes is not built"))]
mod memory;
#[cfg_attr(not(feature = "llama"), allow(dead_code, reason = "there is no loop to run in a thread"))]
mod port;
mod request;
mod spec;
mod status;
#[doc(hidden)]
pub mod testing;
mod turns;
mod wire;
mod worker;

#[cfg(feature = "llama")]
mod batching;
#[cfg(feature = "llama")]
mod chat;
#[cfg(feature = "llama")]
mod choice;
#[cfg(feature = "llama")]
mod ffi;
#[cfg(feature = "llama")]
mod grammar;
#[cfg(feature = "llama")]
mod live;
#[cfg(feature = "llama")]
mod model;
#[cfg(feature = "llama")]
mod pace;
#[cfg(feature = "llama")]
mod share;
#[cfg(feature = "llama")]
mod tools;

pub use counts::EngineCounts;
pub use devices::{Device, DeviceError, DeviceInfo, DeviceKind, Devices, DevicesError, PciId, devices, devices_of};
pub use error::EngineError;
pub use fit::{Bytes, Fit, Needs, Room, Shortage, needs};
pub use handle::Engine;
pub use request::{Finish, Format, Generation, Request, Sampling};
#[doc(hidden)]
pub use spec::Fault;
pub use spec::{EngineSpec, Isolation, KvPool};
pub use status::EngineStatus;
pub use worker::worker_main;
