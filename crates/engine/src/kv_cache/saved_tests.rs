//! The cache of a model that cannot be rolled back, against a model of llama.cpp's hybrid memory:
//! per sequence, the cells of attention and the tokens that its recurrent state has seen.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;

#[derive(Clone, Default)]
struct Held {
    cells: Vec<Token>,
    state: Vec<Token>,
}

struct Memory {
    pool: KvPool,
    all: Vec<Held>,
}

impl Memory {
    fn of(&mut self, seq: SeqId) -> &mut Held {
        &mut self.all[usize::from(seq.0)]
    }

    fn apply(&mut self, cache: &KvCache<Vec<Token>>, op: CacheOp) {
        match op {
            CacheOp::Truncate { seq, from: 0 } => *self.of(seq) = Held::default(),
            CacheOp::Truncate { seq, from } => {
                let held = self.of(seq);
                assert!(held.state.len() <= from as usize, "a state is rolled back");
                held.cells.truncate(from as usize);
            }
            CacheOp::Copy { from, to, end } => {
                assert!(self.pool == KvPool::Shared || end.is_none(), "a partial copy aborts");
                let mut copy = self.of(from).clone();
                copy.cells.truncate(end.map_or(usize::MAX, |end| end as usize));
                *self.of(to) = copy;
            }
            CacheOp::Restore { seq, checkpoint } => {
                let saved = cache.state(checkpoint).expect("a state that is saved");
                self.of(seq).state.clone_from(saved);
            }
        }
    }

    fn decode(&mut self, seq: SeqId, tokens: &[Token]) {
        self.of(seq).cells.extend_from_slice(tokens);
        self.of(seq).state.extend_from_slice(tokens);
    }
}

fn saved(pool: KvPool, bytes_max: u64) -> KvCache<Vec<Token>> {
    KvCache::new(pool, Rollback::Saved { bytes_max }, 10_000, 4, 4, u64::MAX)
}

/// Turns in progress, and the memory that they use.
struct Running {
    cache: KvCache<Vec<Token>>,
    memory: Memory,
    ops: Vec<CacheOp>,
}

impl Running {
    fn new(pool: KvPool, bytes_max: u64) -> Self {
        let memory = Memory { pool, all: vec![Held::default(); 4] };
        Self { cache: saved(pool, bytes_max), memory, ops: Vec::new() }
    }

    fn apply(&mut self) {
        for op in self.ops.drain(..) {
            self.memory.apply(&self.cache, op);
        }
    }

    fn allocate(&mut self, prompt: &[Token], tokens_max: usize) -> Option<Slot> {
        let slot = self.cache.allocate(0, prompt, tokens_max, |_, _| true, &mut self.ops);
        self.apply();
        slot
    }

    fn compute(&mut self, seq: SeqId, tokens: &[Token]) {
        self.memory.decode(seq, tokens);
        self.cache.computed(seq, tokens);
    }

    fn save(&mut self, seq: SeqId, tokens: &[Token]) {
        if self.cache.wants_state(seq, tokens, 1) {
            self.cache.save(seq, tokens, 1, tokens.to_vec());
        }
    }

    fn release(&mut self, seq: SeqId, is_sound: bool) {
        self.cache.release(seq, is_sound, &mut self.ops);
        self.apply();
    }
}

#[test]
fn a_turn_starts_from_the_last_saved_state_before_its_divergence() {
    for pool in [KvPool::Shared, KvPool::Split] {
        let mut running = Running::new(pool, 10);
        let head: Vec<Token> = (0..40).collect();
        let prompt = |last: Token| [head.clone(), vec![last; 5]].concat();

        let slot = running.allocate(&prompt(7), 5).expect("a sequence");
        running.compute(slot.seq, &head[..30]);
        running.save(slot.seq, &head[..30]);
        running.compute(slot.seq, &prompt(7)[30..]);

        // The state after 30 tokens is saved; the state after the common 40 is not.
        let second = running.allocate(&prompt(8), 5).expect("a sequence");
        assert_eq!((second.cached, second.branch), (30, None), "{pool:?}: too close to save");
        running.release(second.seq, true);
        let other = [&head[..], &[1; 20]].concat();
        let early = [&head[..20], &[2; 20]].concat();
        assert_eq!(running.cache.cached(0, &other, |_, _| true), 30, "{pool:?}");
        assert_eq!(running.cache.cached(0, &early, |_, _| true), 0, "{pool:?}: nothing before 20");
        let elsewhere = running.cache.cached(1, &other, |_, _| true);
        assert_eq!(elsewhere, 0, "{pool:?}: a state of another space");
        let third = running.allocate(&early, 5).expect("a sequence");
        assert_eq!((third.cached, third.branch), (0, Some(20)), "{pool:?}: worth saving");
    }
}

#[test]
fn states_and_cells_agree_under_random_turns() {
    for seed in 0..300 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let pool = if seed % 2 == 0 { KvPool::Shared } else { KvPool::Split };
        let mut running = Running::new(pool, rng.random_range(0..6));

        let mut active: Vec<(SeqId, Vec<Token>, usize)> = Vec::new();
        for _ in 0..120 {
            if rng.random_bool(0.4) {
                let head = rng.random_range(0..2) * 100;
                let mut prompt: Vec<Token> =
                    (0..rng.random_range(1..60)).map(|at| head + at).collect();
                prompt.extend((0..rng.random_range(0..5)).map(|_| rng.random_range(0..2)));

                let Some(slot) = running.allocate(&prompt, 6) else { continue };
                assert!(slot.cached < prompt.len(), "seed {seed}");
                let held = running.memory.of(slot.seq).clone();
                assert_eq!(held.cells, prompt[..slot.cached], "seed {seed}");
                assert_eq!(held.state, prompt[..slot.cached], "seed {seed}");
                prompt.extend((0..6).map(|_| rng.random_range(0..2)));
                active.push((slot.seq, prompt, slot.cached));
            } else if !active.is_empty() {
                let at = rng.random_range(0..active.len());
                let (seq, tokens, computed) = &mut active[at];
                let end = rng.random_range(*computed..=tokens.len());
                running.compute(*seq, &tokens[*computed..end]);
                *computed = end;
                if end > 0 && rng.random_bool(0.6) {
                    running.save(*seq, &tokens[..end]);
                }
                if rng.random_bool(0.4) {
                    let (seq, ..) = active.swap_remove(at);
                    running.release(seq, rng.random_bool(0.9));
                }
            }
        }
    }
}
