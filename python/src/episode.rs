//! One attempt at an instance, line by line, with the reward of each line. Knows nothing of Python
//! but its exceptions.

use std::borrow::Cow;
use std::sync::Arc;

use prime_bench::judge::ActionList;
use prime_bench::output::Found;
use prime_bench::output::line::propose;
use prime_bench::output::value::equal;
use prime_bench::tasks::{Kind, Kinds, Machine, Refusal, Violations};
use prime_protocol::{JudgedStep, Reward, RewardWeights, Score, StepRewards};
use pyo3::PyResult;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::errors::value_error;
use crate::instance::{Named, Saved};

/// How an episode goes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rules {
    /// Kinds of constraints that count, as bits in the order of [`Kind::ALL`].
    kinds: u8,
    pub weights: RewardWeights,
    /// Lines after which an episode is truncated.
    pub steps_max: u64,
    /// Whether a line that breaks a constraint leaves the state as it is.
    pub reject_violations: bool,
}

impl Rules {
    pub fn new(
        kinds: Kinds,
        weights: RewardWeights,
        steps_max: u64,
        reject_violations: bool,
    ) -> Self {
        let bits = Kind::ALL
            .iter()
            .enumerate()
            .map(|(place, kind)| u8::from(kinds.contains(*kind)) << place);
        Self { kinds: bits.sum(), weights, steps_max, reject_violations }
    }

    pub fn kinds(&self) -> Kinds {
        Kind::ALL
            .into_iter()
            .enumerate()
            .filter(|(place, _)| self.kinds & (1 << place) != 0)
            .map(|(_, kind)| kind)
            .collect()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Status {
    Running,
    /// The trace has ended.
    Terminated,
    /// `steps_max` lines were proposed.
    Truncated,
}

/// What came of a line.
pub struct Outcome<'l> {
    /// The line in the form in which it was judged.
    pub line: Cow<'l, str>,
    pub reward: Reward,
    pub refusal: Option<Refusal>,
    pub violations: Violations,
    pub score: Score,
    /// The line was applied.
    pub committed: bool,
    /// The trace ended with it.
    pub answered: bool,
}

pub struct Episode {
    pub named: Arc<Named>,
    pub rules: Rules,
    kinds: Kinds,
    machine: Box<dyn Machine>,
    pub rewards: StepRewards,
    pub status: Status,
    /// The lines that made the state.
    pub committed: ActionList,
    /// The state as JSON.
    pub observation: Vec<u8>,
}

/// An episode in the form that is pickled.
#[derive(Serialize, Deserialize)]
pub struct SavedEpisode {
    instance: Saved,
    rules: Rules,
    rewards: StepRewards,
    status: Status,
    committed: Vec<String>,
}

impl Episode {
    pub fn new(named: Arc<Named>, rules: Rules) -> Self {
        let machine = named.problem.start();
        let rewards = StepRewards::new(rules.weights, named.problem.steps_max());

        let mut episode = Self {
            named,
            rules,
            kinds: rules.kinds(),
            machine,
            rewards,
            status: Status::Running,
            committed: ActionList::default(),
            observation: Vec::new(),
        };

        episode.machine.write_state(&mut episode.observation);

        episode
    }

    /// The rules for another instance, whose length bounds its episode if this one's does.
    pub fn rules_for(&self, other: &Named) -> Rules {
        let is_own = self.rules.steps_max == self.named.problem.steps_max().max(1);
        let steps_max =
            if is_own { other.problem.steps_max().max(1) } else { self.rules.steps_max };
        Rules { steps_max, ..self.rules }
    }

    pub fn reset(&mut self) {
        *self = Self::new(Arc::clone(&self.named), self.rules);
    }

    /// Takes a step. The episode must be running.
    pub fn step<'l>(&mut self, line: &'l str) -> Outcome<'l> {
        let proposals = self.rewards.merits().proposals + 1;
        let steps_max = self.rules.steps_max;
        let outcome =
            self.judge(line, &Found::Absent, |answered| answered || proposals >= steps_max);

        if outcome.committed {
            self.committed.push(&outcome.line);
            self.machine.write_state(&mut self.observation);
        }

        self.status = if outcome.answered {
            Status::Terminated
        } else if proposals >= steps_max {
            Status::Truncated
        } else {
            Status::Running
        };

        outcome
    }

    /// Judges the lines of a whole trajectory and returns the reward of each. After the end of the
    /// trace no line can be applied. The trajectory has answered if `answer`, which was given beside
    /// the lines, is absent or is that of its last state.
    pub fn judge_all<'l>(
        &mut self,
        lines: impl ExactSizeIterator<Item = &'l str>,
        answer: &Found<Value>,
    ) -> Vec<Reward> {
        let count = lines.len();
        lines
            .enumerate()
            .map(|(place, line)| self.judge(line, answer, |_| place + 1 == count).reward)
            .collect()
    }

    /// Whether an answer beside the trace says what the trace says, or passes the task's goal test.
    /// The reference is not consulted.
    fn agrees(&self, answer: &Found<Value>) -> bool {
        match answer {
            Found::Absent => true,
            Found::Unreadable(_) => false,
            Found::Read(answer) => self
                .named
                .problem
                .goal(answer)
                .unwrap_or_else(|| self.machine.answer().is_some_and(|own| equal(&own, answer))),
        }
    }

    /// Judges a line and applies it unless the rules reject it. `is_last` says whether the
    /// trajectory ends with the line, given whether the trace does.
    fn judge<'l>(
        &mut self,
        line: &'l str,
        answer: &Found<Value>,
        is_last: impl FnOnce(bool) -> bool,
    ) -> Outcome<'l> {
        let (line, proposed) = propose(self.machine.as_mut(), line);
        let refusal = proposed.err();
        let violations = self.machine.violations(self.kinds);
        let score = Score::from_tenths(violations.tenths(self.machine.spec()));
        let committed = refusal.is_none() && !(self.rules.reject_violations && score > Score::ZERO);
        // Asked of the candidate, which is gone once it is committed.
        let ended = committed && self.machine.candidate_ends();

        if committed {
            self.machine.commit();
        }

        let answered = ended && self.agrees(answer);

        let applicable = refusal.is_none();
        let step = JudgedStep { applicable, committed, score, answered, last: is_last(answered) };
        let reward = self.rewards.add(&step);
        Outcome { line, reward, refusal, violations, score, committed, answered }
    }

    pub fn machine(&self) -> &dyn Machine {
        self.machine.as_ref()
    }

    pub fn fork(&self) -> Self {
        Self {
            named: Arc::clone(&self.named),
            rules: self.rules,
            kinds: self.kinds,
            machine: self.machine.fork(),
            rewards: self.rewards,
            status: self.status,
            committed: self.committed.clone(),
            observation: self.observation.clone(),
        }
    }

    pub fn save(&self) -> SavedEpisode {
        SavedEpisode {
            instance: self.named.save(),
            rules: self.rules,
            rewards: self.rewards,
            status: self.status,
            committed: self.committed.iter().map(str::to_owned).collect(),
        }
    }

    /// The episode of a pickle. Its lines are carried out again: a state as JSON does not tell all
    /// of its history.
    pub fn restore(saved: SavedEpisode) -> PyResult<Self> {
        let mut episode = Self::new(Arc::new(Named::restore(saved.instance)?), saved.rules);

        for (place, line) in saved.committed.iter().enumerate() {
            let replayed = episode.machine.replay(line);
            replayed.map_err(|refusal| {
                value_error("episode", format!("line {place}, {line:?}: {refusal}"))
            })?;

            episode.committed.push(line);
        }

        episode.machine.write_state(&mut episode.observation);
        Ok(Self { rewards: saved.rewards, status: saved.status, ..episode })
    }
}
