//! One turn of an agent at a state, outside of any run: `agents try`, and the daemon's route for
//! it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prime_agent_set::model::{Completion, CompletionRequest, Tap};
use prime_agent_set::{AgentError, AgentSet, Agents, Proposal, Ruling, Sampling};
use prime_protocol::{Trajectory, Verdict};

/// A request to a model, and its result.
pub type Exchange = (CompletionRequest, Result<Completion, AgentError>);

/// Texts that replace those of the first request of a turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edited {
    /// The system prompt; empty = none; `None` = the agent's own.
    pub system: Option<String>,
    /// The prompt; `None` = the agent's own.
    pub prompt: Option<String>,
}

impl Edited {
    /// True if it replaces anything.
    pub fn is_some(&self) -> bool {
        self.system.is_some() || self.prompt.is_some()
    }
}

/// The requests to models during a turn. Clones share the list.
#[derive(Clone, Default)]
pub struct Exchanges(Arc<Mutex<Turn>>);

#[derive(Default)]
struct Turn {
    edited: Option<Edited>,
    exchanges: Vec<Exchange>,
}

impl Exchanges {
    /// The requests of a turn whose first one has these texts.
    pub fn edited(edited: Edited) -> Self {
        Self(Arc::new(Mutex::new(Turn { edited: Some(edited), ..Turn::default() })))
    }

    /// Adds each request to the list.
    pub fn tap(&self) -> Arc<dyn Tap> {
        Arc::new(self.clone())
    }

    /// Takes the requests so far out of the list.
    pub fn take(&self) -> Vec<Exchange> {
        std::mem::take(&mut self.turn().exchanges)
    }

    fn turn(&self) -> MutexGuard<'_, Turn> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tap for Exchanges {
    fn before(&self, request: &mut CompletionRequest) {
        let Some(edited) = self.turn().edited.take() else { return };
        if let Some(system) = edited.system {
            request.system = Some(system).filter(|system| !system.is_empty());
        }
        if let Some(prompt) = edited.prompt {
            request.prompt = prompt;
        }
    }

    fn after(&self, request: &CompletionRequest, answer: &Result<Completion, AgentError>) {
        self.turn().exchanges.push((request.clone(), answer.clone()));
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
