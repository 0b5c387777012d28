//! One turn of an agent at a state, outside of any run: `agents try`, and the daemon's route for
//! it.

use std::sync::{Arc, Mutex, PoisonError};

use prime_agent_set::model::{Completion, CompletionRequest, Tap};
use prime_agent_set::{AgentError, AgentSet, Agents, Proposal, Ruling, Sampling};
use prime_protocol::{Trajectory, Verdict};

/// A request to a model, and its result.
pub type Exchange = (CompletionRequest, Result<Completion, AgentError>);

/// The requests to models during a turn. Clones share the list.
#[derive(Clone, Default)]
pub struct Exchanges(Arc<Mutex<Vec<Exchange>>>);

impl Exchanges {
    /// Adds each request to the list.
    pub fn tap(&self) -> Tap {
        let seen = self.clone();
        Arc::new(move |request, answer| {
            seen.0
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push((request.clone(), answer.clone()));
        })
    }

    /// Takes the requests so far out of the list.
    pub fn take(&self) -> Vec<Exchange> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// How a turn begins.
pub enum TurnInput {
    /// The executor proposes.
    Propose(Sampling),
    /// The verifier judges this line.
    Judge(String),
}

/// The result of a turn, up to where it failed.
#[derive(Default)]
pub struct TriedTurn {
    /// The executor's proposal, if it was asked for one.
    pub proposal: Option<Proposal>,
    /// The line that was judged.
    pub line: Option<String>,
    /// Why the line cannot be applied in the state.
    pub refusal: Option<String>,
    /// The verdict on the line.
    pub verdict: Option<Verdict>,
    /// What the coordinator decided on this verdict.
    pub ruling: Option<Ruling>,
    /// Why the turn could not be completed.
    pub failure: Option<AgentError>,
}

/// Lets the agents take one turn. The trajectory keeps the line as its machine's candidate; nothing
/// is committed.
pub async fn try_turn(
    agents: &AgentSet,
    trajectory: &mut Trajectory,
    input: TurnInput,
) -> TriedTurn {
    let mut turn = TriedTurn::default();
    turn.failure = take_turn(agents, trajectory, input, &mut turn).await.err();
    turn
}

async fn take_turn(
    agents: &AgentSet,
    trajectory: &mut Trajectory,
    input: TurnInput,
    turn: &mut TriedTurn,
) -> Result<(), AgentError> {
    let line = match input {
        TurnInput::Propose(sampling) => {
            let proposal = agents.executor().propose(trajectory, sampling).await?;
            let proposal = turn.proposal.insert(proposal);
            // There is no line to judge.
            if proposal.is_exhausted {
                return Ok(());
            }
            proposal.line.clone()
        }
        TurnInput::Judge(line) => line,
    };

    // Each part is kept as soon as it is known: a failure later on does not lose it.
    let line = &*turn.line.insert(line);
    turn.refusal = trajectory.machine.propose(line).err().map(|refusal| refusal.to_string());
    let verdict = &*turn.verdict.insert(agents.verifier().judge(trajectory, line).await?);
    turn.ruling = Some(agents.coordinator().decide(trajectory, line, verdict).await?);
    Ok(())
}
