//! The bookkeeping against a KV pool of plain lists that carries out the changes.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;

/// A cell: the token at a position, and who holds it.
#[derive(Debug)]
struct Cell {
    token: Token,
    position: u32,
    holders: Vec<Seq>,
}

/// What llama.cpp does, as far as it matters here.
struct Pool {
    kind: KvPool,
    cells: Vec<Cell>,
}

impl Pool {
    fn change(&mut self, change: Change) {
        match change {
            Change::Cut { seq, from } => {
                for cell in self.cells.iter_mut().filter(|cell| cell.position >= from) {
                    cell.holders.retain(|holder| *holder != seq);
                }
                self.cells.retain(|cell| !cell.holders.is_empty());
            }
            Change::Copy { from, to, end } => {
                assert!(self.read(to).is_empty(), "a copy goes to an empty sequence");
                let copied = |cell: &Cell| cell.holders.contains(&from) && end.is_none_or(|end| cell.position < end);
                if self.kind == KvPool::Shared {
                    for cell in self.cells.iter_mut().filter(|cell| copied(cell)) {
                        cell.holders.push(to);
                    }
                } else {
                    assert_eq!(end, None, "a partial copy aborts");
                    let copies: Vec<_> =
                        self.cells.iter().filter(|cell| copied(cell)).map(|c| (c.token, c.position)).collect();
                    self.cells.extend(copies.into_iter().map(|(token, position)| Cell {
                        token,
                        position,
                        holders: vec![to],
                    }));
                }
            }
        }
    }

    fn decode(&mut self, seq: Seq, tokens: &[Token]) {
        let start = u32::try_from(self.read(seq).len()).unwrap();
        for (position, token) in (start..).zip(tokens) {
            self.cells.push(Cell { token: *token, position, holders: vec![seq] });
        }
    }

    /// What a sequence holds, by position.
    fn read(&self, seq: Seq) -> Vec<Token> {
        let mut held: Vec<_> =
            self.cells.iter().filter(|c| c.holders.contains(&seq)).map(|c| (c.position, c.token)).collect();
        held.sort_unstable();
        assert!(held.iter().zip(0..).all(|((position, _), place)| *position == place), "a gap in {held:?}");
        held.into_iter().map(|(_, token)| token).collect()
    }
}

/// A memory and its pool.
struct Both {
    memory: Memory,
    pool: Pool,
    changes: Vec<Change>,
}

impl Both {
    fn new(kind: KvPool, cells: u32, sequences: u16, live_max: u16) -> Self {
        let memory = Memory::new(kind, cells, sequences, live_max, u64::MAX);
        Self { memory, pool: Pool { kind, cells: Vec::new() }, changes: Vec::new() }
    }

    fn place(&mut self, prompt: &[Token], tokens_max: usize) -> Option<Placed> {
        let placed = self.memory.place(prompt, tokens_max, &mut self.changes);
        self.carry_out();
        placed
    }

    fn compute(&mut self, seq: Seq, tokens: &[Token]) {
        self.pool.decode(seq, tokens);
        self.memory.computed(seq, tokens);
    }

    fn release(&mut self, seq: Seq, is_sound: bool) {
        self.memory.release(seq, is_sound, &mut self.changes);
        self.carry_out();
    }

    /// A whole turn. Returns the tokens of its prompt that were there.
    fn turn(&mut self, prompt: &[Token], answer: &[Token]) -> usize {
        let Placed { seq, there } = self.place(prompt, answer.len()).expect("placed");
        self.compute(seq, &prompt[there..]);
        self.compute(seq, answer);
        self.release(seq, true);
        there
    }

    fn carry_out(&mut self) {
        self.changes.drain(..).for_each(|change| self.pool.change(change));
    }
}

fn tokens(text: &str) -> Vec<Token> {
    text.bytes().map(Token::from).collect()
}

#[test]
fn a_step_that_is_tried_again_begins_where_its_prompt_ended() {
    // A shared pool keeps what was rejected, as long as there is room; in a split one the next turn takes its place.
    for (kind, rejected) in [(KvPool::Shared, 8), (KvPool::Split, 7)] {
        let mut both = Both::new(kind, 400, 4, 4);
        let prompt = tokens("the head, the instance and a state of it; ");
        assert_eq!(both.turn(&prompt, &tokens("move 1 2")), 0);
        assert_eq!(both.turn(&prompt, &tokens("move 1 3")), prompt.len() - 1, "{kind:?}");
        // With what was written in the prompt, as after a step that was accepted, nothing of it is computed again.
        let longer = [prompt.clone(), tokens("move 1 3; now ")].concat();
        assert_eq!(both.turn(&longer, &tokens("move 2 3")), prompt.len() + 8, "{kind:?}");
        // A pop goes back to what is left of the history.
        let popped = [prompt.clone(), tokens("move 1 2; now ")].concat();
        assert_eq!(both.turn(&popped, &[]), prompt.len() + rejected, "{kind:?}");
    }
}

#[test]
fn turns_at_the_same_time_share_a_head_that_is_there() {
    for (kind, cells) in [(KvPool::Shared, 100 + 3 * 10), (KvPool::Split, 1000)] {
        let mut both = Both::new(kind, cells, 3, 3);
        let head: Vec<Token> = (0..100).collect();
        let prompts = [7, 8, 9].map(|last| [head.clone(), vec![last; 5]].concat());
        let first = both.place(&prompts[0], 5).expect("placed");
        both.compute(first.seq, &prompts[0]);
        for prompt in &prompts[1..] {
            let next = both.place(prompt, 5).unwrap_or_else(|| panic!("{kind:?}: no room"));
            assert_eq!((next.there, both.pool.read(next.seq)), (100, head.clone()));
        }
        assert!(both.memory.is_full() && both.place(&prompts[0], 5).is_none());
    }
}

#[test]
fn the_longest_unused_goes_first_and_only_when_its_place_is_needed() {
    let mut both = Both::new(KvPool::Shared, 100, 8, 8);
    let prompt = |first: Token| -> Vec<Token> { (0..30).map(|at| first * 1000 + at).collect() };
    for first in 1..=3 {
        both.turn(&prompt(first), &[0]);
    }
    assert_eq!(both.memory.spared().evictions, 0);
    assert_eq!(both.turn(&prompt(1), &[0]), 29);
    // There is room for three: the second is the longest unused.
    both.turn(&prompt(4), &[0]);
    assert_eq!([1, 2, 3, 4].map(|first| both.memory.there(&prompt(first))), [29, 0, 29, 29]);
}

#[test]
fn what_nobody_wants_does_not_stay_in_the_way_of_a_shared_pool() {
    for (kind, kept) in [(KvPool::Shared, 7), (KvPool::Split, 40)] {
        let memory = Memory::new(kind, 40 * 256, 40, 40, 20);
        let mut both = Both { memory, ..Both::new(kind, 0, 1, 1) };
        let prompt = |turn: Token| [turn, turn, turn];
        for turn in 0..40 {
            both.turn(&prompt(turn), &[]);
            both.memory.drop_stale(0, &mut both.changes);
            both.carry_out();
        }
        // Those after which at most 20 tokens were computed; parts of their own are in nobody's way.
        assert_eq!((0..40).filter(|turn| both.memory.there(&prompt(*turn)) == 2).count(), kept, "{kind:?}");
        assert_eq!(both.pool.cells.len(), 3 * kept, "{kind:?}");
    }
}

#[test]
fn what_the_next_decode_makes_stale_goes_before_it() {
    let mut both = Both { memory: Memory::new(KvPool::Shared, 256, 4, 4, 20), ..Both::new(KvPool::Shared, 0, 1, 1) };
    both.turn(&[1, 2, 3], &[]);
    both.memory.drop_stale(20, &mut both.changes);
    assert!(both.changes.is_empty(), "20 tokens are not too many");
    both.memory.drop_stale(21, &mut both.changes);
    assert_eq!(both.changes.len(), 1);
    both.carry_out();
    assert!(both.pool.cells.is_empty());
}

#[test]
fn what_broke_is_not_kept() {
    let mut both = Both::new(KvPool::Shared, 100, 2, 2);
    let placed = both.place(&[1, 2, 3], 5).expect("placed");
    both.compute(placed.seq, &[1, 2, 3]);
    both.release(placed.seq, false);
    assert_eq!((both.memory.there(&[1, 2, 3]), both.pool.cells.len()), (0, 0));
}

/// A turn of the random test.
struct Turn {
    placed: Placed,
    tokens: Vec<Token>,
    computed: usize,
}

#[test]
fn whatever_turns_come_and_go_the_pool_holds_what_the_book_says() {
    for seed in 0..400 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let kind = if seed % 2 == 0 { KvPool::Shared } else { KvPool::Split };
        let live_max = rng.random_range(1..=4);
        let cells = rng.random_range(60..200);
        let mut both = Both::new(kind, cells, live_max + rng.random_range(0..=3), live_max);
        let mut live: Vec<Turn> = Vec::new();
        for _ in 0..150 {
            if rng.random_bool(0.5) {
                // Few heads, of up to 40 tokens, and a few tokens of its own.
                let head = rng.random_range(0..3) * 100;
                let mut prompt: Vec<Token> = (0..rng.random_range(1..40)).map(|at| head + at).collect();
                prompt.extend((0..rng.random_range(0..5)).map(|_| rng.random_range(0..2)));
                let answer: Vec<Token> = (0..rng.random_range(0..10)).map(|_| rng.random_range(0..2)).collect();
                let there = both.memory.there(&prompt);
                let placed = both.place(&prompt, answer.len());
                assert!(placed.is_some() || !live.is_empty(), "seed {seed}: nobody is there, and yet there is no room");
                let Some(placed) = placed else { continue };
                assert!(placed.there < prompt.len() && placed.there <= there, "seed {seed}");
                assert_eq!(both.pool.read(placed.seq), prompt[..placed.there], "seed {seed}");
                assert!(live.iter().all(|turn| turn.placed.seq != placed.seq), "seed {seed}");
                live.push(Turn { placed, computed: placed.there, tokens: [prompt, answer].concat() });
                assert!(live.len() <= usize::from(live_max), "seed {seed}");
            } else if !live.is_empty() {
                let at = rng.random_range(0..live.len());
                let turn = &mut live[at];
                let end = rng.random_range(turn.computed..=turn.tokens.len());
                both.compute(turn.placed.seq, &turn.tokens[turn.computed..end]);
                turn.computed = end;
                if rng.random_bool(0.5) {
                    let turn = live.swap_remove(at);
                    both.release(turn.placed.seq, rng.random_bool(0.8));
                }
            }
            for turn in &live {
                assert_eq!(both.pool.read(turn.placed.seq), turn.tokens[..turn.computed], "seed {seed}");
            }
            if kind == KvPool::Shared {
                assert!(both.pool.cells.len() <= cells as usize, "seed {seed}: more cells than there are");
                assert_eq!(both.pool.cells.len(), both.memory.prefixes.tokens(), "seed {seed}");
            }
        }
        for turn in live.drain(..) {
            both.release(turn.placed.seq, true);
        }
        assert_eq!((both.memory.promised, both.memory.live), (0, 0), "seed {seed}");
    }
}
