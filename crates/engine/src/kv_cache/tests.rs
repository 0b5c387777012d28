//! The cache against a model of llama.cpp's KV pool, made of plain lists, that applies the
//! operations.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;

/// A cell: the token at a position, and the sequences that hold it.
#[derive(Debug)]
struct Cell {
    token: Token,
    position: u32,
    holders: Vec<SeqId>,
}

/// llama.cpp's KV pool, as far as it matters here.
struct Pool {
    kind: KvPool,
    cells: Vec<Cell>,
}

impl Pool {
    fn apply(&mut self, op: CacheOp) {
        match op {
            CacheOp::Truncate { seq, from } => {
                for cell in self.cells.iter_mut().filter(|cell| cell.position >= from) {
                    cell.holders.retain(|holder| *holder != seq);
                }
                self.cells.retain(|cell| !cell.holders.is_empty());
            }
            CacheOp::Restore { .. } => unreachable!("this pool rolls back to any length"),
            CacheOp::Copy { from, to, end } => {
                assert!(self.read(to).is_empty(), "the target of a copy is empty");
                let copied = |cell: &Cell| {
                    cell.holders.contains(&from) && end.is_none_or(|end| cell.position < end)
                };
                if self.kind == KvPool::Shared {
                    for cell in self.cells.iter_mut().filter(|cell| copied(cell)) {
                        cell.holders.push(to);
                    }
                } else {
                    assert_eq!(end, None, "a partial copy aborts");
                    let copies: Vec<_> = self
                        .cells
                        .iter()
                        .filter(|cell| copied(cell))
                        .map(|c| (c.token, c.position))
                        .collect();
                    self.cells.extend(copies.into_iter().map(|(token, position)| Cell {
                        token,
                        position,
                        holders: vec![to],
                    }));
                }
            }
        }
    }

    fn decode(&mut self, seq: SeqId, tokens: &[Token]) {
        let start = u32::try_from(self.read(seq).len()).unwrap();
        for (position, token) in (start..).zip(tokens) {
            self.cells.push(Cell { token: *token, position, holders: vec![seq] });
        }
    }

    /// The tokens of a sequence, by position.
    fn read(&self, seq: SeqId) -> Vec<Token> {
        let mut held: Vec<_> = self
            .cells
            .iter()
            .filter(|c| c.holders.contains(&seq))
            .map(|c| (c.position, c.token))
            .collect();

        held.sort_unstable();
        assert!(
            held.iter().zip(0..).all(|((position, _), at)| *position == at),
            "a gap in {held:?}"
        );
        held.into_iter().map(|(_, token)| token).collect()
    }
}

/// A cache and its pool.
struct Both {
    space: u64,
    cache: KvCache<()>,
    pool: Pool,
    ops: Vec<CacheOp>,
}

impl Both {
    fn new(kind: KvPool, cells: u32, sequences: u16, active_max: u16) -> Self {
        let cache = KvCache::new(kind, Rollback::Any, cells, sequences, active_max, u64::MAX);
        Self { space: 0, cache, pool: Pool { kind, cells: Vec::new() }, ops: Vec::new() }
    }

    fn allocate(&mut self, prompt: &[Token], tokens_max: usize) -> Option<Slot> {
        let slot = self.cache.allocate(self.space, prompt, tokens_max, |_, _| true, &mut self.ops);
        self.apply();
        slot
    }

    fn cached(&self, prompt: &[Token]) -> usize {
        self.cache.cached(self.space, prompt, |_, _| true)
    }

    fn compute(&mut self, seq: SeqId, tokens: &[Token]) {
        self.pool.decode(seq, tokens);
        self.cache.computed(seq, tokens);
    }

    fn release(&mut self, seq: SeqId, is_sound: bool) {
        self.cache.release(seq, is_sound, &mut self.ops);
        self.apply();
    }

    /// A whole turn. Returns the length of its prompt's cached prefix.
    fn turn(&mut self, prompt: &[Token], answer: &[Token]) -> usize {
        let Slot { seq, cached, .. } = self.allocate(prompt, answer.len()).expect("a sequence");
        self.compute(seq, &prompt[cached..]);
        self.compute(seq, answer);
        self.release(seq, true);
        cached
    }

    fn apply(&mut self) {
        self.ops.drain(..).for_each(|op| self.pool.apply(op));
    }
}

fn tokens(text: &str) -> Vec<Token> {
    text.bytes().map(Token::from).collect()
}

#[test]
fn a_retry_starts_where_its_prompt_ended() {
    // A shared pool keeps the rejected answer while there is room; in a split one the next turn
    // overwrites it.
    for (kind, rejected) in [(KvPool::Shared, 8), (KvPool::Split, 7)] {
        let mut both = Both::new(kind, 400, 4, 4);
        let prompt = tokens("the head, the instance and a state of it; ");

        assert_eq!(both.turn(&prompt, &tokens("move 1 2")), 0);
        assert_eq!(both.turn(&prompt, &tokens("move 1 3")), prompt.len() - 1, "{kind:?}");

        // After an accepted step the answer is part of the prompt, and is not computed again.
        let longer = [prompt.clone(), tokens("move 1 3; now ")].concat();
        assert_eq!(both.turn(&longer, &tokens("move 2 3")), prompt.len() + 8, "{kind:?}");

        // After a pop, the remaining history is still cached.
        let popped = [prompt.clone(), tokens("move 1 2; now ")].concat();
        assert_eq!(both.turn(&popped, &[]), prompt.len() + rejected, "{kind:?}");
    }
}

/// What one system left must not make the next one cheaper.
#[test]
fn spaces_share_nothing_and_keep_what_they_have() {
    for kind in [KvPool::Shared, KvPool::Split] {
        let mut both = Both::new(kind, 1_000, 6, 3);
        let prompt = tokens("the head, the instance and a state of it; ");
        let longer = [prompt.clone(), tokens("move 1 2; now ")].concat();

        for space in [0, 1, 2] {
            both.space = space;
            assert_eq!(both.turn(&prompt, &tokens("move 1 2")), 0, "{kind:?}: cold");
        }
        // Each continues its own, in any order.
        for space in [1, 0, 2] {
            both.space = space;
            let own = prompt.len() + 8;
            assert_eq!(both.turn(&longer, &[]), own, "{kind:?}: its own answer");
        }

        // A turn in flight is not copied from, either.
        both.space = 7;
        let active = both.allocate(&longer, 5).expect("a sequence");
        both.compute(active.seq, &longer);
        both.space = 8;
        assert_eq!((active.cached, both.cached(&longer)), (0, 0), "{kind:?}");
    }
}

#[test]
fn concurrent_turns_share_a_cached_prefix() {
    for (kind, cells) in [(KvPool::Shared, 100 + 3 * 10), (KvPool::Split, 1000)] {
        let mut both = Both::new(kind, cells, 3, 3);
        let head: Vec<Token> = (0..100).collect();

        let prompts = [7, 8, 9].map(|last| [head.clone(), vec![last; 5]].concat());
        let first = both.allocate(&prompts[0], 5).expect("a sequence");
        both.compute(first.seq, &prompts[0]);

        for prompt in &prompts[1..] {
            let next = both.allocate(prompt, 5).unwrap_or_else(|| panic!("{kind:?}: no room"));
            assert_eq!((next.cached, both.pool.read(next.seq)), (100, head.clone()));
        }

        assert!(both.cache.is_full() && both.allocate(&prompts[0], 5).is_none());
    }
}

#[test]
fn the_least_recently_used_is_evicted_when_room_is_needed() {
    let mut both = Both::new(KvPool::Shared, 100, 8, 8);
    let prompt = |first: Token| -> Vec<Token> { (0..30).map(|at| first * 1000 + at).collect() };

    for first in 1..=3 {
        both.turn(&prompt(first), &[0]);
    }
    assert_eq!(both.cache.stats().evictions, 0);
    assert_eq!(both.turn(&prompt(1), &[0]), 29);

    // There is room for three: the second is the least recently used.
    both.turn(&prompt(4), &[0]);
    assert_eq!([1, 2, 3, 4].map(|first| both.cached(&prompt(first))), [29, 0, 29, 29]);
}

#[test]
fn a_shared_pool_evicts_what_was_unused_for_long() {
    for (kind, kept) in [(KvPool::Shared, 7), (KvPool::Split, 40)] {
        let cache = KvCache::new(kind, Rollback::Any, 40 * 256, 40, 40, 20);

        let mut both = Both { cache, ..Both::new(kind, 0, 1, 1) };
        let prompt = |turn: Token| [turn, turn, turn];
        for turn in 0..40 {
            both.turn(&prompt(turn), &[]);
            both.cache.evict_unused(0, &mut both.ops);
            both.apply();
        }

        // Those after which at most 20 tokens were computed; the parts of a split pool cost the
        // others nothing.
        assert_eq!(
            (0..40).filter(|turn| both.cached(&prompt(*turn)) == 2).count(),
            kept,
            "{kind:?}"
        );
        assert_eq!(both.pool.cells.len(), 3 * kept, "{kind:?}");
    }
}

#[test]
fn eviction_counts_the_tokens_of_the_next_decode() {
    let mut both = Both {
        cache: KvCache::new(KvPool::Shared, Rollback::Any, 256, 4, 4, 20),
        ..Both::new(KvPool::Shared, 0, 1, 1)
    };

    both.turn(&[1, 2, 3], &[]);
    both.cache.evict_unused(20, &mut both.ops);
    assert!(both.ops.is_empty(), "20 tokens are not too many");

    both.cache.evict_unused(21, &mut both.ops);
    assert_eq!(both.ops.len(), 1);
    both.apply();
    assert!(both.pool.cells.is_empty());
}

#[test]
fn the_tokens_of_a_failed_turn_are_not_cached() {
    let mut both = Both::new(KvPool::Shared, 100, 2, 2);

    let slot = both.allocate(&[1, 2, 3], 5).expect("a sequence");
    both.compute(slot.seq, &[1, 2, 3]);
    both.release(slot.seq, false);

    assert_eq!((both.cached(&[1, 2, 3]), both.pool.cells.len()), (0, 0));
}

/// A turn of the random test.
struct Turn {
    slot: Slot,
    tokens: Vec<Token>,
    computed: usize,
}

#[test]
fn cache_and_pool_agree_under_random_turns() {
    for seed in 0..400 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let kind = if seed % 2 == 0 { KvPool::Shared } else { KvPool::Split };
        let active_max = rng.random_range(1..=4);
        let cells = rng.random_range(60..200);
        let mut both = Both::new(kind, cells, active_max + rng.random_range(0..=3), active_max);

        let mut active: Vec<Turn> = Vec::new();
        for _ in 0..150 {
            if rng.random_bool(0.5) {
                // One of few prefixes of up to 40 tokens, and a few tokens of its own.
                let head = rng.random_range(0..3) * 100;
                let mut prompt: Vec<Token> =
                    (0..rng.random_range(1..40)).map(|at| head + at).collect();
                prompt.extend((0..rng.random_range(0..5)).map(|_| rng.random_range(0..2)));
                let answer: Vec<Token> =
                    (0..rng.random_range(0..10)).map(|_| rng.random_range(0..2)).collect();

                let cached = both.cached(&prompt);
                let slot = both.allocate(&prompt, answer.len());

                assert!(
                    slot.is_some() || !active.is_empty(),
                    "seed {seed}: an idle cache has no room"
                );
                let Some(slot) = slot else { continue };

                assert!(slot.cached < prompt.len() && slot.cached <= cached, "seed {seed}");
                assert_eq!(both.pool.read(slot.seq), prompt[..slot.cached], "seed {seed}");
                assert!(active.iter().all(|turn| turn.slot.seq != slot.seq), "seed {seed}");
                active.push(Turn {
                    slot,
                    computed: slot.cached,
                    tokens: [prompt, answer].concat(),
                });

                assert!(active.len() <= usize::from(active_max), "seed {seed}");
            } else if !active.is_empty() {
                let at = rng.random_range(0..active.len());
                let turn = &mut active[at];
                let end = rng.random_range(turn.computed..=turn.tokens.len());
                both.compute(turn.slot.seq, &turn.tokens[turn.computed..end]);
                turn.computed = end;
                if rng.random_bool(0.5) {
                    let turn = active.swap_remove(at);
                    both.release(turn.slot.seq, rng.random_bool(0.8));
                }
            }

            for turn in &active {
                assert_eq!(
                    both.pool.read(turn.slot.seq),
                    turn.tokens[..turn.computed],
                    "seed {seed}"
                );
            }

            if kind == KvPool::Shared {
                assert!(
                    both.pool.cells.len() <= cells as usize,
                    "seed {seed}: more cells than there are"
                );
                assert_eq!(both.pool.cells.len(), both.cache.tree.tokens(), "seed {seed}");
            }
        }

        for turn in active.drain(..) {
            both.release(turn.slot.seq, true);
        }
        assert_eq!((both.cache.reserved, both.cache.active), (0, 0), "seed {seed}");
    }
}
