//! Regex NFA: build Thompson's automaton of a regular expression, then run it on a text.
//!
//! A step is one node of the expression, or one set of active states; its line names the states.

use std::fmt;

use super::regex::{self, Node, Quantifier, Tree};
use super::thompson::{Edge, Fragment, epsilon_edges, growth};
use crate::tasks::pages::regex_nfa as page;
use crate::tasks::pattern::Fields;
use crate::tasks::prelude::*;
use crate::tasks::state_set::StateSet;

/// The task `regex-nfa`.
pub struct RegexNfa;

const REGEX_MAX: usize = 1_000;
const TEXT_MAX: usize = 100_000;
/// The most states of an automaton: a step adds two.
const STATES_MAX: u16 = u16::MAX - 4;

/// An input of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// The regular expression.
    pub regex: String,
    /// The letters to read.
    pub text: String,
}

impl Instance {
    /// The nodes of the expression in post-order.
    pub fn nodes(&self) -> Vec<Node> {
        regex::post_order(&self.regex).unwrap_or_default()
    }

    /// Returns whether the expression matches the text, by an engine that shares nothing with this
    /// task; `None` if the expression is too large for it.
    fn is_match(&self) -> Option<bool> {
        let regex = single_quantifiers(&self.regex);
        let whole = ::regex::Regex::new(&format!("^(?:{regex})$")).ok()?;
        Some(whole.is_match(&self.text))
    }
}

/// The expression with one quantifier in place of several in a row: to other engines `a+?` is a
/// lazy `a+`, here it is `(a+)?`. Equal ones are idempotent, and any two that differ mean `*`.
fn single_quantifiers(regex: &str) -> String {
    let is_quantifier = |symbol: char| matches!(symbol, '*' | '+' | '?');
    let mut written = String::with_capacity(regex.len());
    for symbol in regex.chars() {
        match written.pop() {
            Some(last) if is_quantifier(last) && is_quantifier(symbol) => {
                written.push(if last == symbol { last } else { '*' });
            }
            last => written.extend(last.into_iter().chain([symbol])),
        }
    }
    written
}

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Number of states made; they are 0..states.
    pub states: u16,
    /// The edges, in the order of construction.
    pub edges: Vec<Edge>,
    /// Stack of fragments as start and end, the top last.
    pub fragments: Vec<Fragment>,
    /// -1 until the first set.
    pub pos: i64,
    /// States that the automaton may be in.
    pub active: StateSet,
    /// The last action; none at the start.
    pub last: Last<Action>,
}

impl State {
    /// The operands of a node: A and B, or A alone, or none.
    fn operands(&self, node: Node) -> Option<[Fragment; 2]> {
        match (node, self.fragments.as_slice()) {
            (Node::Letter(_), _) => Some([(0, 0); 2]),
            (Node::Concatenation | Node::Alternation, [.., a, b]) => Some([*a, *b]),
            (Node::Quantified(_), [.., a]) => Some([*a; 2]),
            _ => None,
        }
    }

    /// Start and end of the whole automaton.
    pub fn automaton(&self) -> Fragment {
        self.fragments.last().copied().unwrap_or_default()
    }

    fn matched(&self) -> bool {
        self.active.contains(self.automaton().1)
    }

    /// Number of letters read; `None` while the automaton is built.
    pub fn letters_read(&self) -> Option<usize> {
        usize::try_from(self.pos).ok()
    }
}

/// An action line; the page explains its forms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// A fragment from start to end for this node.
    Build(Node, u16, u16),
    /// The active states after the next letter, or at first before any.
    Set(StateSet),
}

impl TaskAction for Action {
    const FORMS: &'static [&'static str] = &[
        "lit <[a-d]{1}> <nat> <nat>",
        "cat <nat> <nat>",
        "<alt|star|plus|opt> <nat> <nat>",
        "set <nats?>",
    ];

    fn read(form: usize, fields: &Fields<'_>) -> Option<Self> {
        let node = match form {
            0 => {
                return Some(Action::Build(
                    Node::Letter(*fields.text(0)?.as_bytes().first()?),
                    fields.nat(1)?,
                    fields.nat(2)?,
                ));
            }
            1 => return Some(Action::Build(Node::Concatenation, fields.nat(0)?, fields.nat(1)?)),
            2 => match fields.text(0)? {
                "alt" => Node::Alternation,
                "star" => Node::Quantified(Quantifier::Star),
                "plus" => Node::Quantified(Quantifier::Plus),
                _ => Node::Quantified(Quantifier::Optional),
            },
            _ => return LineField::read(fields, 0).map(Action::Set),
        };
        Some(Action::Build(node, fields.nat(1)?, fields.nat(2)?))
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (node, s, t) = match self {
            Self::Set(set) => return write!(f, "set {set}"),
            Self::Build(node, s, t) => (node, s, t),
        };
        match node {
            Node::Letter(letter) => write!(f, "lit {} {s} {t}", char::from(*letter)),
            Node::Concatenation => write!(f, "cat {s} {t}"),
            Node::Alternation => write!(f, "alt {s} {t}"),
            Node::Quantified(Quantifier::Star) => write!(f, "star {s} {t}"),
            Node::Quantified(Quantifier::Plus) => write!(f, "plus {s} {t}"),
            Node::Quantified(Quantifier::Optional) => write!(f, "opt {s} {t}"),
        }
    }
}

/// The nodes that are left to be built; `None` where the numbers of states, edges and fragments are
/// not those that the first nodes lead to. A wrong letter leaves these numbers right, and the
/// construction continues after it.
pub fn nodes_left<'n>(nodes: &'n [Node], state: &State) -> Option<&'n [Node]> {
    // Every node adds edges, so that their number tells how many nodes are done.
    let (mut states, mut edges, mut fragments, mut done) = (0, 0, 0, 0);

    while edges < state.edges.len() {
        let node = *nodes.get(done)?;
        let more = growth(node);
        states += more.0;
        edges += more.1;
        match node {
            Node::Letter(_) => fragments += 1,
            Node::Concatenation | Node::Alternation => fragments -= 1,
            Node::Quantified(_) => {}
        }
        done += 1;
    }

    let fits = (states, edges, fragments)
        == (usize::from(state.states), state.edges.len(), state.fragments.len());
    fits.then(|| &nodes[done..])
}

/// The closure of the start state, or of the states that the next letter leads to.
fn next_set(instance: &Instance, state: &State) -> Option<StateSet> {
    let [(start, _)] = state.fragments[..] else { return None };
    let states = usize::from(state.states);
    let seeds: Vec<u16> = match state.letters_read() {
        None => vec![start],
        Some(read) => {
            let letter = *instance.text.as_bytes().get(read)?;
            let leads =
                |edge: &&Edge| edge.letter == Some(letter) && state.active.contains(edge.from);
            state.edges.iter().filter(leads).map(|edge| edge.to).collect()
        }
    };

    // A state has at most two edges.
    let mut targets = vec![[None; 2]; states];
    for edge in state.edges.iter().filter(|edge| edge.letter.is_none()) {
        let [first, second] = &mut targets[usize::from(edge.from)];
        *(if first.is_none() { first } else { second }) = Some(edge.to);
    }
    Some(StateSet::closure(states, seeds, |q| targets[usize::from(q)].into_iter().flatten()))
}

impl Task for RegexNfa {
    task_items!(Instance, State, Action, page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Instance {
        let longest = usize::try_from(page::size::TEXT.range(difficulty).1)
            .expect("invariant: sizes are not negative");
        loop {
            let literals = page::size::LITERALS.draw(difficulty, rng);
            let length = page::size::TEXT.draw(difficulty, rng);
            let tree = Tree::drawn(literals, rng);

            let mut text = String::new();
            while text.len() < length {
                tree.sample(&mut text, longest, rng);
            }

            if text.len() > longest {
                continue;
            }

            if rng.chance(1, 2) {
                let place = rng.index(text.len());
                let letter = char::from(rng.one_of(regex::ALPHABET));
                text.replace_range(place..=place, letter.encode_utf8(&mut [0; 4]));
            }

            return Instance { regex: format!("({tree})*"), text };
        }
    }

    fn validate(instance: &Instance) -> Result<(), InvalidInput> {
        let short = instance.regex.len() <= REGEX_MAX;
        InvalidInput::unless(short, "regex", format!("must have at most {REGEX_MAX} characters"))?;

        let syntax = "must be an expression of letters a to d, |, *, +, ? and parentheses";
        InvalidInput::unless(regex::post_order(&instance.regex).is_some(), "regex", syntax)?;

        let letters = instance.text.bytes().all(|c| regex::ALPHABET.contains(&c))
            && instance.text.len() <= TEXT_MAX;
        InvalidInput::unless(letters, "text", format!("must be at most {TEXT_MAX} letters a to d"))
    }

    fn start(_: &Instance) -> State {
        let active = StateSet::default();
        State {
            states: 0,
            edges: Vec::new(),
            fragments: Vec::new(),
            pos: -1,
            active,
            last: Last(None),
        }
    }

    fn check_state(_: &Instance, state: &State) -> Result<(), InvalidInput> {
        let states = usize::from(state.states);

        InvalidInput::unless(
            state.states <= STATES_MAX,
            "states",
            format!("must be at most {STATES_MAX}"),
        )?;

        let ends = state.edges.iter().flat_map(|edge| [edge.from, edge.to]);
        limits::below("edges", ends.map(usize::from), states)?;

        let mut letters = vec![false; states];
        let read_with = |edge: &Edge| {
            edge.letter.is_some() && std::mem::replace(&mut letters[usize::from(edge.from)], true)
        };
        InvalidInput::unless(
            !state.edges.iter().any(read_with),
            "edges",
            "must have one letter from a state at most",
        )?;

        limits::below(
            "fragments",
            state.fragments.iter().flat_map(|(s, t)| [*s, *t]).map(usize::from),
            states,
        )?;

        limits::within("pos", [state.pos], -1..=i64::MAX)?;

        let exist = state.active.is_ascending_below(states);
        InvalidInput::unless(
            exist,
            "active",
            format!("must be states below {states}, ascending, each once"),
        )
    }

    fn apply(instance: &Instance, state: &mut State, action: &Action) -> Result<(), Illegal> {
        match action {
            Action::Build(node, s, t) => {
                if state.pos >= 0 {
                    return Err(Illegal("the automaton is built before the first set"));
                }
                let operands = state.operands(*node).ok_or(Illegal("the operands are missing"))?;
                let concatenation = *node == Node::Concatenation;
                let due = if concatenation {
                    (operands[0].0, operands[1].1)
                } else {
                    (state.states, state.states + 1)
                };

                if (*s, *t) != due {
                    return Err(Illegal(
                        "a cat goes from A's start to B's end, every other fragment between the next two numbers",
                    ));
                }

                if state.states > STATES_MAX {
                    return Err(Illegal("there are too many states"));
                }

                let taken = match node {
                    Node::Letter(_) => 0,
                    Node::Quantified(_) => 1,
                    Node::Concatenation | Node::Alternation => 2,
                };
                state.fragments.truncate(state.fragments.len() - taken);
                state.fragments.push((*s, *t));
                if !concatenation {
                    state.states += 2;
                }
                if let Node::Letter(letter) = node {
                    state.edges.push(Edge { from: *s, letter: Some(*letter), to: *t });
                }

                let epsilon = epsilon_edges(*node, operands, *s, *t).into_iter();
                state.edges.extend(epsilon.map(|(from, to)| Edge { from, letter: None, to }));
            }
            Action::Set(set) => {
                if state.fragments.len() != 1 {
                    return Err(Illegal("a set needs exactly one fragment"));
                }
                if state.letters_read().is_some_and(|read| read >= instance.text.len()) {
                    return Err(Illegal("the text has been read"));
                }
                if !set.is_ascending_below(usize::from(state.states)) {
                    return Err(Illegal(
                        "the states must exist and be in ascending order, each once",
                    ));
                }
                state.active.clone_from(set);
                state.pos += 1;
            }
        }
        Ok(())
    }

    fn reference(instance: &Instance, state: &State) -> Option<Action> {
        let nodes = if state.pos < 0 { instance.nodes() } else { Vec::new() };
        if state.pos < 0
            && let Some(node) = nodes_left(&nodes, state)?.first().copied()
        {
            let operands = state.operands(node)?;
            let concatenation = node == Node::Concatenation;
            let (s, t) = if concatenation {
                (operands[0].0, operands[1].1)
            } else {
                (state.states, state.states + 1)
            };
            return Some(Action::Build(node, s, t));
        }

        next_set(instance, state).map(Action::Set)
    }

    fn violations(
        instance: &Instance,
        before: &State,
        action: &Action,
        after: &State,
        found: &mut Violations,
    ) {
        let mut letters_and_all = vec![(0, 0); usize::from(after.states)];
        for edge in &after.edges {
            let (letters, all) = &mut letters_and_all[usize::from(edge.from)];
            *letters += u8::from(edge.letter.is_some());
            *all += 1;
        }

        let few =
            letters_and_all.iter().all(|(letters, all)| *all <= 2 && (*letters == 0 || *all == 1));
        found.require(page::OUT_DEGREE, few);

        let more = match action {
            Action::Build(Node::Concatenation, ..) | Action::Set(_) => 0,
            Action::Build(..) => 2,
        };
        found.require(page::STATE_COUNT, after.states == before.states + more);

        let leaves = |edge: &Edge| {
            edge.letter.is_none()
                && after.active.contains(edge.from)
                && !after.active.contains(edge.to)
        };
        found.require(page::CLOSED, after.active.is_empty() || !after.edges.iter().any(leaves));

        if matches!(action, Action::Set(_)) && before.pos < 0 {
            found.require(page::FRAGMENTS, before.fragments.len() == 1);
        }

        // What makes a trace sound: all nodes come, in the expression's order, `apply` makes their
        // states and edges, and automaton and text fix every set.
        if before.pos < 0 {
            let nodes = instance.nodes();
            let due = nodes_left(&nodes, before).map(<[Node]>::first);
            let built = match action {
                Action::Build(node, ..) => Some(node),
                Action::Set(_) => None,
            };
            found.require(page::NEXT_NODE, due == Some(built));
        }
        if let Action::Set(set) = action {
            found.require(page::ACTIVE_SET, next_set(instance, before).as_ref() == Some(set));
        }

        if Self::ended(instance, after) {
            let whole = after.letters_read() == Some(instance.text.len());
            found.require(
                page::WHOLE_TEXT,
                whole && instance.is_match().is_none_or(|is_match| is_match == after.matched()),
            );
        }
    }

    fn ended(instance: &Instance, state: &State) -> bool {
        state.letters_read().is_some_and(|read| read >= instance.text.len())
    }

    fn steps_max(instance: &Instance) -> u64 {
        // A node for each character but parentheses, at most one concatenation for each; then the
        // sets.
        2 * instance.regex.len() as u64 + 1 + instance.text.len() as u64
    }

    fn answer(_: &Instance, state: &State) -> Value {
        let (start, accept) = state.automaton();
        json!({
            "states": state.states,
            "start": start,
            "accept": accept,
            "edges": state.edges,
            "final": state.active,
            "matched": state.matched(),
        })
    }
}
