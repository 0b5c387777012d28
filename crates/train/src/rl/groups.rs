//! Groups of episodes that are compared with each other. An episode is one sample, a completion or
//! a trajectory; a group holds the episodes that began alike.

use std::collections::{BTreeMap, BTreeSet};

use prime_bench::tasks::Machine;
use prime_lessons::action_line;
use prime_protocol::reward::Merits;
use prime_protocol::{Reward, Score};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

use super::recipe::{RewardPlan, Rollout, Source, Unit};
use crate::TrainError;
use crate::layout::uniform;
use crate::rollout::{Played, Player, Proposed, Start};
use crate::sampler::{Completion, Request};

/// A completion that was drawn at a state.
pub struct Sampled {
    pub task: usize,
    pub prompt: Vec<u16>,
    pub completion: Completion,
}

/// A completion, or the completions of a trajectory, with their rewards.
pub struct Episode {
    pub steps: Vec<Sampled>,
    /// The reward after each step.
    pub rewards: Vec<f64>,
}

impl Episode {
    /// R: the sum of its rewards.
    pub fn total(&self) -> f64 {
        self.rewards.iter().sum()
    }
}

pub type Group = Vec<Episode>;

/// An iteration's groups, and their figures.
#[derive(Default)]
pub struct Collected {
    pub groups: Vec<Group>,
    /// Sums of the unweighted parts of the composite rewards, and the number of these rewards. The
    /// rewards of oracle and verifier have no parts.
    pub parts: [f64; 4],
    pub rewarded: u64,
    /// Number of tokens drawn, including those of states that were only visited.
    pub tokens: u64,
    /// Numbers of trajectories: played from a start, with a verified answer, and with a right
    /// answer among these.
    pub played: u64,
    pub solved: u64,
    pub right: u64,
}

impl Collected {
    fn count(&mut self, played: &Played) {
        self.tokens += played.tokens;
        self.played += 1;
        self.solved += u64::from(played.merits.solved);
        self.right += u64::from(played.merits.solved && played.is_right);
    }

    fn reward(&mut self, reward: &Reward) -> f64 {
        for (sum, part) in self.parts.iter_mut().zip([
            reward.task,
            reward.verify,
            reward.efficiency,
            reward.format,
        ]) {
            *sum += part;
        }
        self.rewarded += 1;
        reward.total
    }
}

/// Draws an instance to practise: its task, and its machine at the start.
pub type DrawInstance<'d> = dyn FnMut(&mut ChaCha8Rng) -> (usize, Box<dyn Machine>) + 'd;

/// Draws the groups of one iteration.
pub struct Collector<'a> {
    pub player: Player<'a>,
    pub rollout: Rollout,
    pub reward: RewardPlan,
}

impl Collector<'_> {
    /// Draws the groups; `instance` draws a start, and `rng` everything else.
    ///
    /// # Errors
    /// If the player's sampler fails.
    pub fn collect(
        &self,
        instance: &mut DrawInstance<'_>,
        rng: &mut ChaCha8Rng,
    ) -> Result<Collected, TrainError> {
        match self.rollout.unit {
            Unit::Trajectory => self.trajectories(instance, rng),
            Unit::State => self.states(instance, rng),
        }
    }

    fn trajectories(
        &self,
        instance: &mut DrawInstance<'_>,
        rng: &mut ChaCha8Rng,
    ) -> Result<Collected, TrainError> {
        let mut starts = Vec::new();
        for _ in 0..self.rollout.groups {
            let (task, machine) = instance(rng);
            starts.extend((0..self.rollout.group).map(|_| Start {
                task,
                machine: machine.fork(),
                seed: rng.next_u64(),
            }));
        }

        let mut collected = Collected::default();
        let mut played = self.player.play(starts)?.into_iter();
        for _ in 0..self.rollout.groups {
            let episodes = played.by_ref().take(self.rollout.group).map(|played| {
                collected.count(&played);
                let total =
                    collected.reward(&self.reward.weights.reward(&self.bounded(played.merits)));
                // The whole reward follows the last step.
                let mut rewards = vec![0.0; played.proposals.len()];
                if let Some(last) = rewards.last_mut() {
                    *last = total;
                }
                Episode {
                    steps: played.proposals.into_iter().map(Sampled::from).collect(),
                    rewards,
                }
            });

            let group = episodes.collect();
            collected.groups.push(group);
        }
        Ok(collected)
    }

    /// Limits T_max of the efficiency term, the task's bound, to the longest trajectory that is
    /// played.
    fn bounded(&self, merits: Merits) -> Merits {
        Merits { steps_max: merits.steps_max.min(self.rollout.proposals_max), ..merits }
    }

    fn states(
        &self,
        instance: &mut DrawInstance<'_>,
        rng: &mut ChaCha8Rng,
    ) -> Result<Collected, TrainError> {
        let mut collected = Collected::default();
        let starts = (0..self.rollout.trajectories).map(|_| {
            let (task, machine) = instance(rng);
            let is_midway = self.rollout.midway > 0.0 && uniform(rng) < self.rollout.midway;
            let machine = if is_midway { midway(machine, rng) } else { machine };
            Start { task, machine, seed: rng.next_u64() }
        });

        let starts = starts.collect();
        let mut visited = Vec::new();
        for played in self.player.play(starts)? {
            collected.count(&played);
            visited.extend(played.proposals);
        }

        // A trajectory that is stuck proposes at the same state again and again.
        let mut seen = BTreeSet::new();
        visited.retain(|state| seen.insert(state.prompt.clone()));

        // If the reference finds no next step, no step is better than another: 24-Game has many
        // such states.
        if matches!(self.reward.source, Source::Oracle) {
            visited.retain(|state| state.machine.fork().follow_reference());
        }

        let chosen = choose(visited, self.rollout.groups, rng);
        let requests = chosen.iter().map(|state| Request {
            prompt: &state.prompt,
            streams: (0..self.rollout.group)
                .map(|_| ChaCha8Rng::seed_from_u64(rng.next_u64()))
                .collect(),
            // `Practice` refuses tasks whose derivations look values up.
            values: None,
        });

        let drawn = self.player.sampler.complete(requests.collect(), self.player.sampling)?;
        let lines: Vec<Vec<String>> = drawn
            .iter()
            .map(|group| group.iter().map(|completion| self.line(completion)).collect())
            .collect();

        let rewards = match self.reward.source {
            Source::Composite => self.play_on(&chosen, &lines, &mut collected, rng)?,
            Source::Oracle => {
                chosen.iter().zip(&lines).map(|(state, lines)| self.oracle(state, lines)).collect()
            }
            Source::Verifier => chosen
                .iter()
                .zip(&lines)
                .map(|(state, lines)| self.feedback(state, lines))
                .collect(),
        };

        for ((state, completions), rewards) in chosen.into_iter().zip(drawn).zip(rewards) {
            let episodes = completions.into_iter().zip(rewards).map(|(completion, reward)| {
                collected.tokens += completion.logprobs.len() as u64;
                let sampled =
                    Sampled { task: state.task, prompt: state.prompt.clone(), completion };
                Episode { steps: vec![sampled], rewards: vec![reward] }
            });

            let group = episodes.collect();
            collected.groups.push(group);
        }

        Ok(collected)
    }

    /// The action of a completion. If it became too long, this is empty, which no task has as an
    /// action.
    fn line(&self, completion: &Completion) -> String {
        let text = self.player.vocabulary.decode(&completion.tokens);
        if completion.has_ended { action_line(&text).to_owned() } else { String::new() }
    }

    /// The machine after the line, and V of the step; no machine if the line is refused or
    /// rejected.
    fn step(&self, state: &Proposed, line: &str) -> (Option<Box<dyn Machine>>, Score) {
        let mut machine = state.machine.fork();
        let is_applicable = machine.propose(line).is_ok();
        let judged = self.player.judge(machine.as_ref());

        // Even without a verifier, a line that cannot be applied is not a step.
        if !is_applicable || judged.score > Score::ZERO {
            return (None, judged.score);
        }
        machine.commit();
        (Some(machine), judged.score)
    }

    /// 1 − ln(1 + n) / ln(1 + cap), where n is the number of steps that the reference still needs;
    /// −1 for a step that is rejected or leads to a wrong answer.
    fn oracle(&self, state: &Proposed, lines: &[String]) -> Vec<f64> {
        let cap = self.reward.oracle_cap;
        by_line(lines, |line| {
            let Some(mut machine) = self.step(state, line).0 else { return -1.0 };
            let mut left = 0u64;
            while left < cap && machine.follow_reference() {
                left += 1;
            }

            let is_wrong = left < cap
                && machine.answer().is_none_or(|answer| !machine.problem().accepts(&answer));
            if is_wrong { -1.0 } else { 1.0 - (left as f64).ln_1p() / (cap as f64).ln_1p() }
        })
    }

    /// RLAIF: −V, plus λ times the share of the group that proposed the same line.
    fn feedback(&self, state: &Proposed, lines: &[String]) -> Vec<f64> {
        by_line(lines, |line| {
            let same = lines.iter().filter(|other| *other == line).count();
            let agreement = same as f64 / lines.len() as f64;
            self.reward.consistency * agreement - self.step(state, line).1.value()
        })
    }

    /// The composite reward of the policy's trajectory after each step. A line that several samples
    /// wrote is played once.
    fn play_on(
        &self,
        chosen: &[Proposed],
        lines: &[Vec<String>],
        collected: &mut Collected,
        rng: &mut ChaCha8Rng,
    ) -> Result<Vec<Vec<f64>>, TrainError> {
        let mut starts = Vec::new();
        let mut known: Vec<BTreeMap<&str, Result<usize, Score>>> = Vec::with_capacity(chosen.len());
        for (state, lines) in chosen.iter().zip(lines) {
            let mut of_state = BTreeMap::new();
            for line in lines {
                of_state.entry(line.as_str()).or_insert_with(|| match self.step(state, line) {
                    (None, score) => Err(score),
                    (Some(machine), _) => {
                        starts.push(Start { task: state.task, machine, seed: rng.next_u64() });
                        Ok(starts.len() - 1)
                    }
                });
            }
            known.push(of_state);
        }

        // Machines that have ended with the step need not be played.
        let (running, over): (Vec<_>, Vec<_>) =
            starts.into_iter().enumerate().partition(|(_, start)| !start.machine.ended());
        let (places, running): (Vec<usize>, Vec<Start>) = running.into_iter().unzip();

        let mut rewards: BTreeMap<usize, f64> = BTreeMap::new();
        let weights = self.reward.weights;
        for (place, played) in places.into_iter().zip(self.player.play(running)?) {
            collected.tokens += played.tokens;
            rewards.insert(place, collected.reward(&weights.reward(&self.bounded(played.merits))));
        }
        // The step itself has answered: one proposal, and nothing after it.
        for (place, start) in over {
            let steps_max = start.machine.problem().steps_max();
            let merits = Merits {
                solved: true,
                last_score: Score::ZERO,
                steps: 0,
                steps_max,
                proposals: 1,
                applicable: 1,
            };
            rewards.insert(place, collected.reward(&weights.reward(&self.bounded(merits))));
        }

        let of_line = |known: &Result<usize, Score>| match known {
            Ok(place) => rewards[place],
            // A rejected step counts as V = 1 at least.
            Err(score) => -weights.verify * score.value().max(1.0),
        };

        let rewards = lines.iter().zip(&known).map(|(lines, known)| {
            lines.iter().map(|line| of_line(&known[line.as_str()])).collect()
        });
        Ok(rewards.collect())
    }
}

/// Number of a trace's first steps after which a trajectory may begin.
const MIDWAY_MAX: u32 = 2000;

/// Draws a state of the reference's trace except its last, each equally likely.
fn midway(start: Box<dyn Machine>, rng: &mut ChaCha8Rng) -> Box<dyn Machine> {
    let mut walked = start.fork();
    let steps = (0..MIDWAY_MAX).take_while(|_| walked.follow_reference()).count();

    let mut machine = start;
    let taken = (uniform(rng) * steps as f64) as usize;
    for _ in 0..taken.min(steps.saturating_sub(1)) {
        machine.follow_reference();
    }
    machine
}

/// The reward of each line; equal lines are rewarded once.
fn by_line(lines: &[String], mut reward: impl FnMut(&String) -> f64) -> Vec<f64> {
    let mut known: BTreeMap<&String, f64> = BTreeMap::new();
    lines.iter().map(|line| *known.entry(line).or_insert_with(|| reward(line))).collect()
}

impl From<Proposed> for Sampled {
    fn from(Proposed { task, prompt, completion, .. }: Proposed) -> Self {
        Self { task, prompt, completion }
    }
}

/// Draws `count` of the states without replacement, preferring those where the policy was
/// undecided: where it is sure, its samples would all be equal.
fn choose(states: Vec<Proposed>, count: usize, rng: &mut ChaCha8Rng) -> Vec<Proposed> {
    // The largest of u^(1/w) are a weighted sample (Efraimidis and Spirakis 2006).
    let mut keyed: Vec<(f64, Proposed)> = states
        .into_iter()
        .map(|state| {
            let undecided = state.completion.entropies.iter().copied().fold(0.0, f32::max);
            // 0.01 keeps the weight above 0 where the policy is sure.
            (uniform(rng).ln() / (f64::from(undecided) + 0.01), state)
        })
        .collect();
    keyed.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    keyed.truncate(count);
    keyed.into_iter().map(|(_, state)| state).collect()
}

#[cfg(test)]
mod tests {
    use prime_bench::tasks::{self, Difficulty};

    use super::*;

    #[test]
    fn a_trajectory_may_begin_at_each_state_of_the_trace_but_the_last() {
        let problem = tasks::find("24-game").expect("a task").generate(Difficulty::Easy, 1);
        let mut rng = ChaCha8Rng::seed_from_u64(1);

        let mut left: BTreeMap<usize, usize> = BTreeMap::new();
        for _ in 0..200 {
            let mut machine = midway(problem.start(), &mut rng);
            assert!(!machine.ended());
            *left
                .entry((0..1000).take_while(|_| machine.follow_reference()).count())
                .or_default() += 1;
        }

        let mut start = problem.start();
        let steps = (0..1000).take_while(|_| start.follow_reference()).count();
        assert_eq!(left.keys().copied().collect::<Vec<_>>(), (1..=steps).collect::<Vec<_>>());
        assert!(left.values().all(|count| *count > 200 / steps / 2), "{left:?}");
    }
}
