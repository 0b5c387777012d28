//! Giving change: at each step the largest coin that fits, until the amount is paid.

use std::fmt;

use prime_bench::tasks::machine::Erased;
use prime_bench::tasks::page::{ActionPage, Example, Page};
use prime_bench::tasks::pattern::Fields;
use prime_bench::tasks::spec::PaperFigures;
use prime_bench::tasks::{
    AnyTask, Category, Constraint, Difficulty, Illegal, InvalidInput, Kind, Kinds, Last, Severity,
    Spec, Task, TaskAction, TaskRng, Violations,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The task as the rest of the crates take it.
pub static CHANGE: &dyn AnyTask = &Erased::<Change>::new();

pub struct Change;

/// The input. Its fields stand in the order of the page.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// Values of coins, of which there are as many as are needed: descending, the last one 1.
    coins: Vec<u64>,
    amount: u64,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    paid: Vec<u64>,
    rest: u64,
    last: Last<Pay>,
}

/// The one action: `pay 20`.
#[derive(Clone, Debug, PartialEq)]
pub struct Pay(u64);

impl TaskAction for Pay {
    const FORMS: &'static [&'static str] = &["pay <nat>"];

    fn read(_form: usize, fields: &Fields<'_>) -> Option<Self> {
        fields.nat(0).map(Self)
    }
}

impl fmt::Display for Pay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pay {}", self.0)
    }
}

/// The places of the constraints below.
const ORDER: usize = 1;
const PAID: usize = 3;

const CONSTRAINTS: &[Constraint] = &[
    Constraint {
        name: "format",
        kind: Kind::Format,
        severity: Severity::Critical,
        meaning: "the line is `pay` and one of the coins, which is not more than the rest",
    },
    Constraint {
        name: "order",
        kind: Kind::Invariant,
        severity: Severity::Major,
        meaning: "no coin is larger than the one before it",
    },
    // The machine checks it: the step is the one of `reference`.
    Constraint {
        name: "largest",
        kind: Kind::Transition,
        severity: Severity::Critical,
        meaning: "the coin is the largest that fits",
    },
    Constraint {
        name: "paid",
        kind: Kind::Terminal,
        severity: Severity::Critical,
        meaning: "the coins add up to the amount",
    },
];

const PAGE: Page = Page {
    generate: "three to five coins, the smallest of which is 1, and an amount",
    problem: "Pay the amount in coins, at each step with the largest one that fits.",
    algorithm: "While there is a rest, pay the largest coin that is not more than the rest.",
    step: "one coin",
    note: "",
    actions: &[ActionPage {
        line: "pay <coin>",
        effect: "the rest becomes smaller by the coin",
        example: "pay 20",
        regex: None,
    }],
    input: &[("coins", "values of the coins, descending"), ("amount", "what is to be paid")],
    answer: &[("coins", "the coins that were paid, in order")],
    state: &[
        ("paid", "the coins that were paid"),
        ("rest", "what is left to pay"),
        ("last", "the last action"),
    ],
    example: Example {
        input: r#"{"coins":[5,2,1],"amount":9}"#,
        answer: r#"{"coins":[5,2,2]}"#,
        steps: 3,
        first: &["pay 5", "pay 2", "pay 2"],
        last: &["pay 2"],
    },
};

impl Task for Change {
    type Instance = Instance;
    type State = State;
    type Action = Pay;

    const PAGE: Spec = Spec {
        id: 1_000,
        slug: "change",
        title: "Giving change",
        category: Category::Own,
        sizes: ["amounts up to 50", "amounts up to 500", "amounts up to 5000"],
        // Taken from the action.
        actions: &[],
        constraints: CONSTRAINTS,
        // Without the transition, other coins that add up are let through.
        sound: Kinds::ALL,
        decisive: &[],
        hidden: &[],
        paper: PaperFigures { steps: 0, baseline: 0.0, prime: 0.0 },
        page: &PAGE,
    };

    fn last(state: &State) -> Option<&Pay> {
        state.last.0.as_ref()
    }

    fn set_last(state: &mut State, action: Pay) {
        state.last = Last(Some(action));
    }

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Instance {
        let mut coins = vec![1];
        for _ in 0..2 + rng.below(3) {
            let next = coins[0] * (2 + rng.below(2)) + rng.below(2);
            coins.insert(0, next);
        }
        let most = [50, 500, 5_000][difficulty.rank()];
        Instance { coins, amount: 1 + rng.below(most) }
    }

    fn validate(instance: &Instance) -> Result<(), InvalidInput> {
        let Instance { coins, amount } = instance;
        let descends = coins.is_sorted_by(|a, b| a > b);
        let are_coins = descends && coins.len() <= 100 && coins.last() == Some(&1);
        InvalidInput::unless(are_coins, "coins", "must descend to 1, at most 100 of them")?;
        InvalidInput::unless((1..=100_000).contains(amount), "amount", "give 1 to 100000")
    }

    fn start(instance: &Instance) -> State {
        State { paid: Vec::new(), rest: instance.amount, last: Last(None) }
    }

    fn check_state(instance: &Instance, state: &State) -> Result<(), InvalidInput> {
        let is_known = state.paid.iter().all(|coin| instance.coins.contains(coin));
        let few = state.paid.len() as u64 <= instance.amount;
        InvalidInput::unless(is_known && few, "paid", "must be coins, at most one for each unit")?;
        InvalidInput::unless(state.rest <= instance.amount, "rest", "is more than the amount")
    }

    fn apply(instance: &Instance, state: &mut State, Pay(coin): &Pay) -> Result<(), Illegal> {
        if !instance.coins.contains(coin) {
            return Err(Illegal("there is no such coin"));
        }
        state.rest =
            state.rest.checked_sub(*coin).ok_or(Illegal("the coin is more than the rest"))?;
        state.paid.push(*coin);
        Ok(())
    }

    fn reference(instance: &Instance, state: &State) -> Option<Pay> {
        let fits = |coin: &&u64| **coin <= state.rest;
        instance.coins.iter().find(fits).filter(|_| state.rest > 0).map(|coin| Pay(*coin))
    }

    fn violations(
        instance: &Instance,
        before: &State,
        action: &Pay,
        after: &State,
        found: &mut Violations,
    ) {
        found.require(ORDER, before.paid.last().is_none_or(|last| action.0 <= *last));
        if Self::ended(instance, after) {
            found.require(PAID, after.paid.iter().sum::<u64>() == instance.amount);
        }
    }

    fn ended(_: &Instance, state: &State) -> bool {
        state.rest == 0
    }

    fn answer(_: &Instance, state: &State) -> Value {
        json!({ "coins": state.paid })
    }

    fn steps_max(instance: &Instance) -> u64 {
        instance.amount
    }

    /// Makes grammars exact, and search complete.
    fn choices(instance: &Instance, state: &State) -> Option<Vec<Pay>> {
        let fit = instance.coins.iter().filter(|coin| **coin <= state.rest);
        Some(fit.map(|coin| Pay(*coin)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prime_bench::tasks::conformance;

    #[test]
    fn it_keeps_the_contract() {
        conformance::check(CHANGE);
    }

    #[test]
    fn an_order_that_ascends_is_found_without_running_the_algorithm() {
        let problem = CHANGE.read_input(&json!({"coins": [5, 2, 1], "amount": 9})).unwrap();
        let mut machine = problem.start();
        machine.replay("pay 2").unwrap();
        machine.propose("pay 5").unwrap();

        let broken = machine.broken(machine.violations(Kinds::WITHOUT_TRANSITION));
        assert_eq!(broken.iter().map(|broken| &*broken.name).collect::<Vec<_>>(), ["order"]);
        assert!(machine.propose("pay 8").is_err(), "there is no such coin");
    }
}
