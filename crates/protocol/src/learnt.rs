//! What a run had rejected, state by state: another run of the same request starts from there.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::rejection::{Rejection, StuckAt};
use super::trajectory::Trajectory;

/// Most states that are gathered.
const GATHERED_MAX: usize = 16_384;
/// Most states that a plan takes.
const STATES_MAX: usize = 256;
/// Most bytes of states, lines and reasons that a plan takes.
const BYTES_MAX: usize = 256 << 10;

/// Gathers what a run had rejected at each of its states.
#[derive(Clone, Debug, Default)]
pub struct Learnt {
    /// By depth, and by the state as JSON.
    states: BTreeMap<(usize, String), StuckAt>,
    /// Lines that a person has found right, by depth and state.
    lifted: BTreeSet<(usize, String, Box<str>)>,
    /// The lines that led to these states, by depth.
    ways: BTreeSet<(usize, Box<str>)>,
}

impl Learnt {
    /// Begins with what the run itself had been taught.
    pub fn after(taught: &[StuckAt]) -> Self {
        let mut learnt = Self::default();
        for known in taught {
            let key = (known.depth, known.state.to_string());
            learnt.states.insert(key, StuckAt { trajectories: 0, ..known.clone() });
        }
        learnt
    }

    /// Adds a line that was rejected at the trajectory's state, if one was, and everything that
    /// this trajectory knows to be wrong there.
    pub fn add(&mut self, trajectory: &Trajectory, line: Option<Rejection>) {
        let known = &trajectory.stack.top().excluded;
        if line.is_none() && known.is_empty() {
            return;
        }

        let (depth, state) = (trajectory.stack.depth(), trajectory.machine.state());
        let key = (depth, state.to_string());
        if self.states.len() >= GATHERED_MAX && !self.states.contains_key(&key) {
            return;
        }
        let rejected = known.iter().cloned().chain(line).collect();
        let more = StuckAt { depth, state, rejected, trajectories: 0 };
        match self.states.get_mut(&key) {
            Some(known) => known.join(more),
            None => drop(self.states.insert(key, more)),
        }
    }

    /// Keeps a line at the trajectory's state, which a person has found right, from being rejected
    /// there, and the lines that lead to this state from being rejected before it.
    pub fn lift(&mut self, trajectory: &Trajectory, line: &str) {
        let (depth, state) = (trajectory.stack.depth(), trajectory.machine.state());
        self.lifted.insert((depth, state.to_string(), line.into()));
        let ways = trajectory.stack.lines().enumerate();
        self.ways.extend(ways.map(|(depth, line)| (depth, line.into())));
    }

    /// Drops what was lifted.
    fn drop_lifted(&mut self) {
        let Self { states, lifted, ways } = self;
        if lifted.is_empty() {
            return;
        }
        states.retain(|(depth, state), known| {
            known.rejected.retain(|Rejection { line, .. }| {
                let at = (*depth, state.clone(), line.clone());
                !lifted.contains(&at) && !ways.contains(&(*depth, line.clone()))
            });
            !known.rejected.is_empty()
        });
    }

    /// What is worth most to another run, within what a plan takes: the states with most rejected
    /// lines, and of those with as many, the first.
    pub fn finish(mut self) -> Vec<StuckAt> {
        self.drop_lifted();
        let mut states: Vec<_> = self.states.into_iter().collect();
        states.sort_by_key(|(_, known)| Reverse(known.rejected.len()));

        let mut bytes = 0;
        let mut kept: Vec<_> = states
            .into_iter()
            .take(STATES_MAX)
            .filter(|((_, state), known)| {
                let of = |rejection: &Rejection| {
                    rejection.line.len() + rejection.reason.as_ref().map_or(0, |text| text.len())
                };
                let size = state.len() + known.rejected.iter().map(of).sum::<usize>();
                let fits = bytes + size <= BYTES_MAX;
                bytes += if fits { size } else { 0 };
                fits
            })
            .collect();

        kept.sort_by(|(a, _), (b, _)| a.cmp(b));
        kept.into_iter().map(|(_, known)| known).collect()
    }
}
