//! The one step that every framework carries out: its messages, and the work of executor and
//! verifier, which is none.

use std::hint::black_box;

const PAYLOAD: usize = 64;

/// Coordinator to executor: the next step is due.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    pub trajectory: u32,
    pub step: u64,
    pub payload: [u8; PAYLOAD],
}

/// Executor to verifier.
#[derive(Clone, Copy, Debug)]
pub struct Action {
    pub trajectory: u32,
    pub step: u64,
    pub payload: [u8; PAYLOAD],
}

/// Verifier to coordinator.
#[derive(Clone, Copy, Debug)]
pub struct Verdict {
    pub trajectory: u32,
    pub step: u64,
    pub score: f64,
    pub payload: [u8; PAYLOAD],
}

impl Request {
    /// The request with which a trajectory begins a lap.
    #[must_use]
    pub fn first(trajectory: u32, step: u64) -> Self {
        Self { trajectory, step, payload: [trajectory.to_le_bytes()[0]; PAYLOAD] }
    }
}

#[inline]
#[must_use]
pub fn execute(request: Request) -> Action {
    Action {
        trajectory: request.trajectory,
        step: request.step,
        payload: black_box(request.payload),
    }
}

/// The score is always 0: nothing is violated.
#[inline]
#[must_use]
pub fn verify(action: Action) -> Verdict {
    Verdict {
        trajectory: action.trajectory,
        step: action.step,
        score: black_box(0.0),
        payload: action.payload,
    }
}
