//! Tower of Hanoi: move n disks from one peg to another, one at a time, never a larger onto a
//! smaller.
//!
//! A step is one move; the optimal solution of 2^n - 1 moves is unique.

use serde::{Deserializer, Serializer};

use crate::tasks::pages::tower_of_hanoi as page;
use crate::tasks::prelude::*;

/// The task `tower-of-hanoi`.
pub struct TowerOfHanoi;

/// Counters of moves stay below 2^53 up to here, and a peg fits its array.
const DISKS_MAX: usize = 32;

/// An input of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// Number of disks; disk 1 is the smallest.
    pub n: usize,
    /// Peg on which all disks start, 0..=2.
    pub from: usize,
    /// Peg on which all disks must end, 0..=2; not `from`.
    pub to: usize,
}

/// The disks of one peg, lowest first.
#[derive(Clone, Copy)]
pub struct Peg {
    disks: [u8; DISKS_MAX],
    len: u8,
}

impl Peg {
    const EMPTY: Self = Self { disks: [0; DISKS_MAX], len: 0 };

    fn as_slice(&self) -> &[u8] {
        &self.disks[..usize::from(self.len)]
    }

    fn top(&self) -> Option<u8> {
        self.as_slice().last().copied()
    }

    fn push(&mut self, disk: u8) {
        self.disks[usize::from(self.len)] = disk;
        self.len += 1;
    }

    fn pop(&mut self) {
        self.len -= 1;
    }
}

impl Serialize for Peg {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.as_slice())
    }
}

impl<'de> Deserialize<'de> for Peg {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let disks: Vec<u8> = Vec::deserialize(deserializer)?;
        if disks.len() > DISKS_MAX {
            return Err(serde::de::Error::custom(format!("a peg holds at most {DISKS_MAX} disks")));
        }
        let mut peg = Self::EMPTY;
        disks.into_iter().for_each(|disk| peg.push(disk));
        Ok(peg)
    }
}

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    pegs: [Peg; 3],
    disk_moves: Vec<u64>,
    pair_moves: [u64; 6],
    /// The last action; none at the start.
    pub last: Last<Action>,
    #[serde(skip)]
    plan: Plan,
}

/// The place of every disk and the place where the larger ones need it, updated move by move.
///
/// Half of the moves of a solution are those of the smallest disk and change a single entry, and
/// the next move is found among the smallest disks.
#[derive(Clone, Copy, Default)]
struct Plan {
    /// The peg of disk k+1.
    places: [u8; DISKS_MAX],
    /// The peg where disk k+1 must be before the larger ones can move on.
    wanted: [u8; DISKS_MAX],
}

impl Plan {
    fn new(n: usize, to: usize, pegs: &[Peg; 3]) -> Self {
        let mut plan = Self { places: [0; DISKS_MAX], wanted: [0; DISKS_MAX] };
        for (peg, disks) in (0..).zip(pegs) {
            for disk in disks.as_slice() {
                plan.places[usize::from(*disk) - 1] = peg;
            }
        }

        plan.wanted[n - 1] = u8::try_from(to).expect("invariant: there are three pegs");
        plan.want_below(n - 1);
        plan
    }

    /// Recomputes where the disks smaller than disk k+1 must be: on top of it if it is in place,
    /// and otherwise out of its way, on the third peg.
    fn want_below(&mut self, k: usize) {
        for above in (1..=k).rev() {
            let (place, wanted) = (self.places[above], self.wanted[above]);
            self.wanted[above - 1] = if place == wanted { wanted } else { 3 - place - wanted };
        }
    }

    fn move_disk(&mut self, disk: u8, to: usize) {
        let k = usize::from(disk) - 1;
        self.places[k] = u8::try_from(to).expect("invariant: there are three pegs");
        self.want_below(k);
    }
}

line_actions! {
    /// An action line; the page explains its form.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Action {
        /// The disk moved; 1 is the smallest.
        pub disk: u8,
        /// Peg that it is taken from, 0..=2.
        pub from: usize,
        /// Peg that it is put on, 0..=2.
        pub to: usize,
    } = "move <nat> <nat> <nat>", "move {disk} {from} {to}"
}

/// Place of a pair of pegs among 0->1, 0->2, 1->0, 1->2, 2->0, 2->1.
fn pair_index(from: usize, to: usize) -> usize {
    2 * from + usize::from(if to > from { to - 1 } else { to } == 1)
}

impl State {
    /// The disk on top of a peg.
    pub fn top(&self, peg: usize) -> Option<u8> {
        self.pegs[peg].top()
    }
}

impl Task for TowerOfHanoi {
    task_items!(Instance, State, Action, page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Instance {
        let n = page::size::N.draw(difficulty, rng);
        let (from, to) = rng.one_of(&[(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)]);
        Instance { n, from, to }
    }

    fn validate(instance: &Instance) -> Result<(), InvalidInput> {
        let range = format!("is {}; give 1 to {DISKS_MAX}", instance.n);
        InvalidInput::unless((1..=DISKS_MAX).contains(&instance.n), "n", range)?;
        InvalidInput::unless(instance.from < 3, "from", "give peg 0, 1 or 2")?;
        InvalidInput::unless(instance.to < 3, "to", "give peg 0, 1 or 2")?;
        InvalidInput::unless(instance.from != instance.to, "to", "must be another peg than `from`")
    }

    fn start(instance: &Instance) -> State {
        let mut pegs = [Peg::EMPTY; 3];
        for disk in (1..=instance.n).rev() {
            pegs[instance.from].push(u8::try_from(disk).expect("invariant: at most 32 disks"));
        }

        let plan = Plan::new(instance.n, instance.to, &pegs);
        State { pegs, disk_moves: vec![0; instance.n], pair_moves: [0; 6], last: Last(None), plan }
    }

    fn check_state(instance: &Instance, state: &State) -> Result<(), InvalidInput> {
        let n = instance.n;
        let mut disks: Vec<u8> = state.pegs.iter().flat_map(Peg::as_slice).copied().collect();
        disks.sort_unstable();
        let once = disks.into_iter().map(usize::from).eq(1..=n);
        InvalidInput::unless(once, "pegs", format!("must hold the disks 1 to {n}, each once"))?;

        limits::length("disk_moves", state.disk_moves.len(), n)?;
        limits::counts("disk_moves", state.disk_moves.iter().copied())?;
        limits::counts("pair_moves", state.pair_moves)
    }

    fn complete(instance: &Instance, state: &mut State) {
        state.plan = Plan::new(instance.n, instance.to, &state.pegs);
    }

    fn apply(_: &Instance, state: &mut State, action: &Action) -> Result<(), Illegal> {
        let Action { disk, from, to } = *action;
        if from > 2 || to > 2 {
            return Err(Illegal("there is no such peg: they are 0, 1 and 2"));
        }
        // A move from a peg to itself has no entry in pair_moves to be counted in.
        if from == to {
            return Err(Illegal("the disk must go to another peg"));
        }
        if state.pegs[from].top() != Some(disk) {
            return Err(Illegal("that disk is not on top of that peg"));
        }

        state.pegs[from].pop();
        state.pegs[to].push(disk);
        state.disk_moves[usize::from(disk) - 1] += 1;
        state.pair_moves[pair_index(from, to)] += 1;
        state.plan.move_disk(disk, to);
        Ok(())
    }

    fn reference(instance: &Instance, state: &State) -> Option<Action> {
        // The smallest disk that is not where the larger ones need it moves next. The disks smaller
        // than it are on the third peg, out of its way.
        let Plan { places, wanted } = &state.plan;
        let k = (0..instance.n).find(|k| places[*k] != wanted[*k])?;
        let disk = u8::try_from(k + 1).expect("invariant: at most 32 disks");
        let action = Action { disk, from: usize::from(places[k]), to: usize::from(wanted[k]) };

        // After a wrong line the disk may lie under a larger one: then there is no next move.
        (state.pegs[action.from].top() == Some(disk)).then_some(action)
    }

    fn violations(
        instance: &Instance,
        _: &State,
        _: &Action,
        after: &State,
        found: &mut Violations,
    ) {
        found.require(
            page::STACKING,
            after.pegs.iter().all(|peg| peg.as_slice().is_sorted_by(|a, b| a > b)),
        );

        let held =
            after.pegs.iter().flat_map(Peg::as_slice).fold(0u64, |set, disk| set | 1 << (disk - 1));
        let count: u8 = after.pegs.iter().map(|peg| peg.len).sum();
        found.require(
            page::DISKS,
            usize::from(count) == instance.n && held == (1 << instance.n) - 1,
        );

        found.require(
            page::COUNTS,
            after.disk_moves.iter().sum::<u64>() == after.pair_moves.iter().sum::<u64>(),
        );

        let halved = after
            .disk_moves
            .iter()
            .enumerate()
            .all(|(k, moves)| *moves <= 1 << (instance.n - k - 1));
        found.require(page::HALVING, halved);

        let moves: u64 = after.disk_moves.iter().sum();
        // Disk k+1 makes the moves 2^k, 3·2^k, 5·2^k, … of the trace.
        let in_turn =
            (0..).zip(&after.disk_moves).all(|(k, made)| *made == (moves + (1 << k)) >> (k + 1));
        found.require(page::TURNS, in_turn);

        let alternate = after.pegs.iter().enumerate().all(|(peg, disks)| {
            // Disk plus height has one parity everywhere on `from` and `to`, the other parity on
            // the third peg.
            let third = usize::from(peg != instance.from && peg != instance.to);
            let parity = (instance.n + third) % 2;
            (0..)
                .zip(disks.as_slice())
                .all(|(height, disk)| (usize::from(*disk) + height) % 2 == parity)
        });
        found.require(page::ALTERNATION, alternate);

        if Self::ended(instance, after) {
            found.require(page::GOAL, usize::from(after.pegs[instance.to].len) == instance.n);
        }
    }

    fn ended(instance: &Instance, state: &State) -> bool {
        usize::from(state.pegs[instance.to].len) == instance.n
    }

    fn steps_max(instance: &Instance) -> u64 {
        // The optimal solution has 2^n - 1; a legal detour may take as many again.
        2 << instance.n
    }

    fn answer(_: &Instance, state: &State) -> Value {
        json!({
            "moves": state.disk_moves.iter().sum::<u64>(),
            "disk_moves": state.disk_moves,
            "pair_moves": state.pair_moves,
            "pegs": state.pegs,
        })
    }

    fn state_on_path(instance: &Instance, draw: PathDraw, rng: &mut TaskRng) -> Option<State> {
        let moves = match draw {
            PathDraw::Uniform => rng.below((1u64 << instance.n) - 1),
            PathDraw::ByAction => {
                // The state before or after a random move of a random disk: the rare moves of large
                // disks come up as often as those of small ones.
                let disk = rng.index(instance.n);
                let before = ((2 * rng.below(1 << (instance.n - 1 - disk)) + 1) << disk) - 1;
                let after = before + 1;
                // The final state is left out, since nothing follows it.
                if after + 1 < 1 << instance.n && rng.chance(1, 2) { after } else { before }
            }
        };

        let (from, to) = (instance.from, instance.to);
        let mut state = Self::start(instance);
        state.pegs = [Peg::EMPTY; 3];

        for k in (0..instance.n).rev() {
            // Disk k+1 goes round the pegs, the largest to `to` and every other one against the
            // next larger one. It makes the moves 2^k, 3·2^k, 5·2^k, … of the trace.
            let mut round = [from, to, 3 - from - to];
            if (instance.n - k).is_multiple_of(2) {
                round.swap(1, 2);
            }
            let made = (moves + (1 << k)) >> (k + 1);
            state.disk_moves[k] = made;
            let disk = u8::try_from(k + 1).expect("invariant: at most 32 disks");

            let mut peg = from;
            for (hop, next) in [(0, round[1]), (1, round[2]), (2, from)] {
                // Hop h of the round is the disk's move number h + 1, h + 4, h + 7, ….
                state.pair_moves[pair_index(peg, next)] += (made + 2 - hop) / 3;
                // The last move is this disk's if its number has k trailing zeros.
                if made > 0 && (made - 1) % 3 == hop && moves.trailing_zeros() as usize == k {
                    state.last = Last(Some(Action { disk, from: peg, to: next }));
                }
                peg = next;
            }

            state.pegs[round[usize::try_from(made % 3).expect("invariant: below three")]]
                .push(disk);
        }

        state.plan = Plan::new(instance.n, instance.to, &state.pegs);
        Some(state)
    }
}
