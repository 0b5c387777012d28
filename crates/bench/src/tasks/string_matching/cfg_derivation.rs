//! CFG Derivation: derive a word from a simple grammar, always expanding the leftmost nonterminal.
//!
//! A step is one production applied; its line is the production's number.

use crate::tasks::pages::cfg_derivation as page;
use crate::tasks::prelude::*;

/// The task `cfg-derivation`.
pub struct CfgDerivation;

const PRODUCTIONS_MAX: usize = 200;
const RIGHT_SIDE_MAX: usize = 20;
const WORD_MAX: usize = 2_000;
const TERMINALS: &[u8] = b"abcde";
/// Words tried before a grammar is discarded.
const WORDS_A_GRAMMAR: usize = 50;

/// Left side and right side.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Production(pub char, pub String);

/// An input of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// The nonterminals, one letter each, the start symbol `S` first.
    pub nonterminals: String,
    /// The productions, grouped by left side, in the order of the nonterminals.
    pub productions: Vec<Production>,
    /// The letters to derive.
    pub word: String,
}

impl Instance {
    /// The number of letters before the first nonterminal.
    fn letters_before(&self, form: &str) -> usize {
        form.find(|symbol| self.nonterminals.contains(symbol)).unwrap_or(form.len())
    }

    fn yields_word(&self, state: &State) -> bool {
        state.rest.is_empty() && state.matched == self.word.len()
    }
}

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Number of letters before the leftmost nonterminal.
    pub matched: usize,
    /// The sentential form from the leftmost nonterminal on; empty when none is left.
    pub rest: String,
    /// Depth of each symbol of `rest` in the derivation tree; the start symbol has 1.
    pub depths: Vec<usize>,
    /// Numbers of the productions applied, from 0, in order.
    pub derivation: Vec<usize>,
    /// Greatest depth of a nonterminal that was expanded; 0 at the start.
    pub depth: usize,
    /// The last action; none at the start.
    pub last: Last<Action>,
}

line_actions! {
    /// Apply this production to the leftmost nonterminal.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Action { production: usize } = "p<nat>", "p{production}"
}

fn draw_productions(nonterminals: &str, rng: &mut TaskRng) -> Vec<Production> {
    let letter = |rng: &mut TaskRng| char::from(rng.one_of(TERMINALS));
    let mut productions = Vec::new();

    for left in nonterminals.chars() {
        let mut first_letters = TERMINALS.to_vec();
        rng.shuffle(&mut first_letters);

        for (number, first) in first_letters.into_iter().take(rng.size(2, 3)).enumerate() {
            let mut right = String::from(char::from(first));
            // The first production has letters only: it ends the expansion of deep nonterminals.
            if number == 0 {
                if rng.chance(1, 2) {
                    right.push(letter(rng));
                }
            } else {
                for _ in 0..rng.size(1, 3) {
                    let nonterminal = rng.chance(3, 5);
                    right.push(if nonterminal {
                        char::from(rng.one_of(nonterminals.as_bytes()))
                    } else {
                        letter(rng)
                    });
                }
            }

            productions.push(Production(left, right));
        }
    }

    productions
}

/// A word by leftmost expansion and the depth of its tree; `None` when it grows longer than
/// `longest`.
fn draw_word(
    productions: &[Production],
    cut: usize,
    longest: usize,
    rng: &mut TaskRng,
) -> Option<(String, usize)> {
    let mut word = String::new();
    let mut deepest = 0;
    // The symbols that are still to be expanded, the leftmost one last.
    let mut rest = vec![('S', 1)];
    while let Some((symbol, depth)) = rest.pop() {
        let own: Vec<&Production> =
            productions.iter().filter(|production| production.0 == symbol).collect();
        if own.is_empty() {
            word.push(symbol);
            continue;
        }

        deepest = deepest.max(depth);
        // From the cut on, the production without nonterminals ends the branch.
        let chosen = if depth >= cut { own[0] } else { rng.one_of(&own) };
        rest.extend(chosen.1.chars().rev().map(|symbol| (symbol, depth + 1)));
        // Every symbol yields at least one letter.
        if word.len() + rest.len() > longest {
            return None;
        }
    }

    Some((word, deepest))
}

impl Task for CfgDerivation {
    task_items!(Instance, State, Action, page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Instance {
        let longest = usize::try_from(page::size::LENGTH.range(difficulty).1)
            .expect("invariant: sizes are not negative");
        loop {
            let count = page::size::NONTERMINALS.draw(difficulty, rng);
            let cut = page::size::DEPTH.draw(difficulty, rng);
            let nonterminals = "SABCDEFG"[..count].to_owned();
            let productions = draw_productions(&nonterminals, rng);

            for _ in 0..WORDS_A_GRAMMAR {
                let Some((word, depth)) = draw_word(&productions, cut, longest, rng) else {
                    continue;
                };

                let fits = page::size::LENGTH.accepts(difficulty, word.len() as u64);
                if fits && page::size::DEPTH.accepts(difficulty, depth as u64) {
                    return Instance { nonterminals, productions, word };
                }
            }
        }
    }

    fn validate(instance: &Instance) -> Result<(), InvalidInput> {
        let names = instance.nonterminals.as_bytes();
        let distinct = names
            .iter()
            .enumerate()
            .all(|(place, c)| c.is_ascii_uppercase() && !names[..place].contains(c));
        InvalidInput::unless(distinct, "nonterminals", "must be distinct capital letters")?;
        InvalidInput::unless(names.first() == Some(&b'S'), "nonterminals", "must begin with S")?;

        let count = instance.productions.len();
        let range = format!("has {count} productions; give 1 to {PRODUCTIONS_MAX}");
        InvalidInput::unless((1..=PRODUCTIONS_MAX).contains(&count), "productions", range)?;

        let known =
            |symbol: char| symbol.is_ascii_lowercase() || instance.nonterminals.contains(symbol);
        let sides = instance.productions.iter().all(|Production(left, right)| {
            instance.nonterminals.contains(*left)
                && (1..=RIGHT_SIDE_MAX).contains(&right.len())
                && right.starts_with(|first: char| first.is_ascii_lowercase())
                && right.chars().all(known)
        });
        let rule = format!(
            "right sides are 1 to {RIGHT_SIDE_MAX} symbols: a small letter, then small letters or nonterminals"
        );
        InvalidInput::unless(sides, "productions", rule)?;

        let begins: Vec<_> =
            instance.productions.iter().map(|p| (p.0, p.1.as_bytes()[0])).collect();
        let simple =
            begins.iter().enumerate().all(|(place, begin)| !begins[..place].contains(begin));
        InvalidInput::unless(
            simple,
            "productions",
            "the right sides of a nonterminal must begin with distinct letters",
        )?;

        let letters = instance.word.bytes().all(|c| c.is_ascii_lowercase())
            && instance.word.len() <= WORD_MAX;
        InvalidInput::unless(letters, "word", format!("must be at most {WORD_MAX} small letters"))?;
        // Last, because the reference relies on the checks above.
        let derived = reference_is_clean::<Self>(instance);
        InvalidInput::unless(derived, "word", "is not a word of the grammar")
    }

    fn start(_: &Instance) -> State {
        State {
            matched: 0,
            rest: "S".to_owned(),
            depths: vec![1],
            derivation: Vec::new(),
            depth: 0,
            last: Last(None),
        }
    }

    fn check_state(instance: &Instance, state: &State) -> Result<(), InvalidInput> {
        let known =
            state.rest.chars().all(|c| c.is_ascii_lowercase() || instance.nonterminals.contains(c));
        InvalidInput::unless(known, "rest", "must consist of small letters and nonterminals")?;
        limits::length("depths", state.depths.len(), state.rest.len())
    }

    fn apply(instance: &Instance, state: &mut State, action: &Action) -> Result<(), Illegal> {
        let Production(left, right) = instance
            .productions
            .get(action.production)
            .ok_or(Illegal("there is no such production"))?;

        if !state.rest.starts_with(*left) {
            return Err(Illegal("the leftmost nonterminal is another one"));
        }

        let depth = state.depths[0];
        // Symbols are ASCII, a byte each.
        state.rest.replace_range(0..1, right);
        state.depths.splice(0..1, std::iter::repeat_n(depth + 1, right.len()));

        // The letters before the next nonterminal are done.
        let letters = instance.letters_before(&state.rest);
        state.rest.drain(..letters);
        state.depths.drain(..letters);
        state.matched += letters;

        state.derivation.push(action.production);
        state.depth = state.depth.max(depth);
        Ok(())
    }

    fn reference(instance: &Instance, state: &State) -> Option<Action> {
        let leftmost = state.rest.chars().next()?;
        let letter = *instance.word.as_bytes().get(state.matched)?;
        let begins = |p: &Production| p.0 == leftmost && p.1.as_bytes().first() == Some(&letter);
        instance.productions.iter().position(begins).map(|production| Action { production })
    }

    fn violations(
        instance: &Instance,
        before: &State,
        action: &Action,
        after: &State,
        found: &mut Violations,
    ) {
        let Production(_, right) = &instance.productions[action.production];
        let left_rest = right
            .bytes()
            .chain(before.rest.bytes().skip(1))
            .take(after.matched.saturating_sub(before.matched));
        let expected = instance.word.as_bytes().get(before.matched..after.matched);
        found.require(
            page::PREFIX,
            expected.is_some_and(|expected| left_rest.eq(expected.iter().copied())),
        );
        found.require(page::FITS, after.matched + after.rest.len() <= instance.word.len());

        let appended =
            after.derivation.split_last().is_some_and(|(_, earlier)| earlier == before.derivation);
        found.require(page::COUNT, appended);

        if Self::ended(instance, after) {
            found.require(page::WORD, instance.yields_word(after));
        }
    }

    fn ended(_: &Instance, state: &State) -> bool {
        state.rest.is_empty()
    }

    fn steps_max(instance: &Instance) -> u64 {
        // Every right side begins with a letter of the word.
        instance.word.len() as u64
    }

    fn answer(_: &Instance, state: &State) -> Value {
        json!({ "derivation": state.derivation, "depth": state.depth })
    }
}
