//! Logic Grid (Zebra): find the house of every item by eliminating houses that the clues rule out.
//!
//! A step is one house taken from the domain of one item.

use std::fmt;
use std::sync::OnceLock;

use super::clue::{Clue, Item, Relation};
use super::domains::{Domains, HOUSES_MAX};
use crate::tasks::pages::logic_grid as page;
use crate::tasks::pattern::Fields;
use crate::tasks::prelude::*;

/// The task `logic-grid`.
pub struct LogicGrid;

/// Attributes have letters, clues are read at every step.
const ATTRIBUTES_MAX: usize = 26;
const CLUES_MAX: usize = 1_000;

/// An input of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// Number of houses, from 0 on the left, and of values of each attribute.
    pub n: usize,
    /// Number of attributes.
    pub k: usize,
    /// The clues, in the order in which propagation takes them.
    pub clues: Vec<Clue>,
    /// The arrangement that the clues lead to, computed once: the constraint `solution` compares
    /// with it at every step.
    #[serde(skip)]
    solution: OnceLock<Option<Domains>>,
}

impl Instance {
    /// The one arrangement, if propagation finds it.
    fn solution(&self) -> Option<&Domains> {
        let propagate = || {
            let mut domains = Domains::full(self.n, self.k);
            domains.propagate(&self.clues);
            domains.are_decided().then_some(domains)
        };
        self.solution.get_or_init(propagate).as_ref()
    }
}

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// The houses that each item may still be in.
    pub domains: Domains,
    last: Last<Action>,
}

/// The item is not in this house.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Action {
    /// Item whose domain loses a house.
    pub item: Item,
    /// House that it loses, from 0.
    pub house: usize,
}

impl TaskAction for Action {
    const FORMS: &'static [&'static str] = &["not <[A-Z]{1}><digit> <digit>"];

    fn read(_: usize, fields: &Fields<'_>) -> Option<Self> {
        let attribute = usize::from(fields.text(0)?.bytes().next()?.checked_sub(b'A')?);
        Some(Action { item: Item { attribute, value: fields.nat(1)? }, house: fields.nat(2)? })
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not {} {}", self.item, self.house)
    }
}

/// A house for every item, by attribute and value.
fn arrangement(n: usize, k: usize, rng: &mut TaskRng) -> Vec<Vec<usize>> {
    let mut houses = vec![(0..n).collect::<Vec<_>>(); k];
    houses.iter_mut().for_each(|values| rng.shuffle(values));
    houses
}

/// Every clue of the page's pool that holds in the arrangement, in random order.
fn pool(houses: &[Vec<usize>], rng: &mut TaskRng) -> Vec<Clue> {
    let (n, k) = (houses[0].len(), houses.len());
    let items: Vec<_> =
        (0..k).flat_map(|attribute| (0..n).map(move |value| Item { attribute, value })).collect();
    let house_of = |item: Item| houses[item.attribute][item.value];

    let mut clues = Vec::new();
    for (place, lesser) in items.iter().enumerate() {
        for greater in items[place + 1..].iter().filter(|item| item.attribute != lesser.attribute) {
            let (x, y) = (house_of(*lesser), house_of(*greater));
            if x == y {
                clues.push(Clue::Pair(Relation::Same, *lesser, *greater));
            } else if x.abs_diff(y) == 1 {
                let (left, right) = if x < y { (lesser, greater) } else { (greater, lesser) };
                clues.push(Clue::Pair(Relation::Left, *left, *right));
                clues.push(Clue::Pair(Relation::Next, *lesser, *greater));
            }
        }
    }

    let item = rng.one_of(&items);
    clues.push(Clue::At(item, house_of(item)));
    rng.shuffle(&mut clues);
    clues
}

/// Length of the shortest prefix of the clues that propagation solves.
fn solving_prefix(n: usize, k: usize, clues: &[Clue]) -> Option<usize> {
    let mut domains = Domains::full(n, k);
    // A longer prefix eliminates at least as much, so propagation continues from its current state.
    (0..=clues.len()).find(|length| {
        domains.propagate(&clues[..*length]);
        domains.are_decided()
    })
}

impl Task for LogicGrid {
    task_items!(Instance, State, Action, page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Instance {
        loop {
            let n = page::size::N.draw(difficulty, rng);
            let k = page::size::K.draw(difficulty, rng);
            let mut clues = pool(&arrangement(n, k, rng), rng);
            let Some(length) = solving_prefix(n, k, &clues) else { continue };
            clues.truncate(length);

            // Drop the clues that propagation does not need, beginning with the last.
            for place in (0..length).rev() {
                let clue = clues.remove(place);
                let mut domains = Domains::full(n, k);
                domains.propagate(&clues);
                if !domains.are_decided() {
                    clues.insert(place, clue);
                }
            }

            return Instance { n, k, clues, solution: OnceLock::new() };
        }
    }

    fn validate(instance: &Instance) -> Result<(), InvalidInput> {
        let (n, k) = (instance.n, instance.k);
        InvalidInput::unless(
            (2..=HOUSES_MAX).contains(&n),
            "n",
            format!("is {n}; give 2 to {HOUSES_MAX}"),
        )?;
        InvalidInput::unless(
            (1..=ATTRIBUTES_MAX).contains(&k),
            "k",
            format!("is {k}; give 1 to {ATTRIBUTES_MAX}"),
        )?;

        let count = instance.clues.len();
        InvalidInput::unless(
            count <= CLUES_MAX,
            "clues",
            format!("are {count}; give up to {CLUES_MAX}"),
        )?;

        for clue in &instance.clues {
            let exists = clue.items().all(|item| item.attribute < k && item.value < n);
            InvalidInput::unless(
                exists,
                "clues",
                format!("{clue:?} names an item that does not exist", clue = clue.to_string()),
            )?;
            let on_street = !matches!(clue, Clue::At(_, house) if *house >= n);
            InvalidInput::unless(
                on_street,
                "clues",
                format!("{:?} names a house that does not exist", clue.to_string()),
            )?;
        }

        InvalidInput::unless(
            instance.solution().is_some(),
            "clues",
            "do not lead to one arrangement by elimination",
        )
    }

    fn start(instance: &Instance) -> State {
        State { domains: Domains::full(instance.n, instance.k), last: Last(None) }
    }

    fn check_state(instance: &Instance, state: &State) -> Result<(), InvalidInput> {
        let fits = state.domains.fit(instance.n, instance.k);
        let reason = format!(
            "must be {} lists of {} texts, each with numbers of houses in ascending order",
            instance.k, instance.n
        );
        InvalidInput::unless(fits, "domains", reason)
    }

    fn apply(instance: &Instance, state: &mut State, action: &Action) -> Result<(), Illegal> {
        let Action { item, house } = *action;
        if item.attribute >= instance.k || item.value >= instance.n {
            return Err(Illegal("there is no such item"));
        }
        if !state.domains.holds(item, house) {
            return Err(Illegal("the house is not in the domain of the item"));
        }

        state.domains.eliminate(item, house);
        Ok(())
    }

    fn reference(instance: &Instance, state: &State) -> Option<Action> {
        if !state.domains.are_open() {
            return None;
        }
        let (item, house) = state.domains.first_elimination(&instance.clues)?;
        Some(Action { item, house })
    }

    fn violations(
        instance: &Instance,
        _: &State,
        _: &Action,
        after: &State,
        found: &mut Violations,
    ) {
        let domains = &after.domains;
        found.require(page::NOT_EMPTY, domains.are_possible());
        found.require(page::CLUES, domains.satisfy(&instance.clues));
        found.require(
            page::SOLUTION,
            instance.solution().is_none_or(|solution| domains.contain(solution)),
        );
        found.require(page::HOUSES, domains.are_on_street());
        if Self::ended(instance, after) {
            found.require(page::GOAL, domains.are_possible() && domains.satisfy(&instance.clues));
        }
    }

    fn ended(_: &Instance, state: &State) -> bool {
        state.domains.are_decided()
    }

    fn answer(_: &Instance, state: &State) -> Value {
        json!({ "houses": state.domains.by_house() })
    }

    /// Each of the k·n items keeps one of its n houses.
    fn steps_max(instance: &Instance) -> u64 {
        (instance.k * instance.n * (instance.n - 1)) as u64
    }
}
