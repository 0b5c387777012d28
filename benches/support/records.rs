//! The record of a step, as the journal keeps it.

use prime_agent_set::Proposal;
use prime_journal::{Head, Segment};
use prime_protocol::{Decision, RoleTimes, Speculations, TurnId, Usage, Verdict};
use prime_report::TraceLine;
use prime_runtime::Event;

/// The records of `steps` steps as JSON Lines.
pub fn encode(steps: usize) -> Vec<u8> {
    let proposal = Proposal { line: "swap 3 4".to_owned(), ..Proposal::default() };
    let verdict = Verdict::default();
    let mut body = Vec::new();

    for depth in 0..steps {
        let event = Event::Step {
            id: TurnId { round: 1, trajectory: 0 },
            elapsed_ms: 12,
            depth,
            proposal: &proposal,
            is_applicable: true,
            verdict: &verdict,
            decision: Decision::Proceed,
            located: None,
            approval: None,
            usage: Usage::default(),
            speculations: Speculations::default(),
            waited: RoleTimes::default(),
            timing: None,
        };
        TraceLine::of(&event).write(&mut body);
    }

    body
}

/// The steps encoded and chained to a head.
pub fn segment(head: Head, steps: u32) -> Segment {
    Segment::of_lines(head, steps, encode(steps as usize))
}
