//! The early start of the proposal that follows the one a turn has just got.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::speculation::{Asker, Speculation};
use crate::turn::TurnBody;

/// Starts the next proposal if this one may be accepted and does not end the trajectory. Call it
/// when it is known which state the line leads to.
pub fn look_ahead(turn: &mut TurnBody, asker: impl FnOnce() -> Asker) {
    let usage = turn.usage();
    let Some(lookahead) = turn.lookahead.as_deref_mut() else { return };

    let has_tokens = lookahead.left.tokens.is_none_or(|left| usage.total() < left);
    // Where the executor replies at once, an early start gains nothing. A proposal that cannot be
    // applied, or was rejected before, will not be accepted.
    if !lookahead.has_waited || !turn.is_applicable || turn.is_repeated || !has_tokens {
        return;
    }

    let (line, limits) = (&turn.proposal.line, &lookahead.limits);
    // The task that was shown the copy has ended, so this is the only reference.
    let copy = lookahead.copy.take().and_then(Arc::into_inner);
    // A task whose own code panics here will panic again when the step is committed, and is
    // reported then.
    let predicted = catch_unwind(AssertUnwindSafe(|| match copy {
        _ if turn.trajectory.machine.candidate_ends() => None,
        Some(copy) => copy.into_committed(line, limits),
        None => turn.trajectory.predict(line, limits),
    }));

    if let Ok(Some(predicted)) = predicted {
        let sampling =
            lookahead.sampling.of_turn(&lookahead.strategy, lookahead.fanout, turn.id, &predicted);
        let round = lookahead.round.clone();
        turn.speculation = Some(Box::new(Speculation::start(asker(), predicted, sampling, round)));
    }
}
