//! Worked examples: states of the example on a task's page, each with the step that the algorithm
//! takes there.

use std::collections::BTreeSet;

use minijinja::Value as Variable;
use serde::Serialize;

use super::shown::{Shown, TextOf as _};
use prime_bench::prompts::visible;
use prime_bench::tasks::{self, Machine, Spec};
use prime_settings::ViewName;

/// Number of steps of the reference trace from which examples are taken.
const STEPS_MAX: usize = 400;
/// Estimated bytes of a token: prompts are full of digits, and most models have one token for each.
const BYTES_PER_TOKEN: usize = 3;

/// A state and the step that the algorithm takes there.
#[derive(Serialize)]
struct Worked {
    state: String,
    action: String,
}

/// The variable `examples`.
#[derive(Serialize)]
struct Examples {
    /// The input that all examples share.
    input: String,
    steps: Vec<Worked>,
}

/// The value of the variable if there are no examples.
pub(super) fn none() -> Variable {
    Variable::from_serialize(Examples { input: String::new(), steps: Vec::new() })
}

/// Returns whether the instance is the one on its task's page: its prompts must not show its own
/// answer.
pub(super) fn is_own(machine: &dyn Machine) -> bool {
    let problem = machine.problem();
    let example = serde_json::from_str::<serde_json::Value>(problem.spec().page.example.input);
    example.is_ok_and(|example| example == problem.input())
}

/// The worked examples of a machine's task.
pub(super) fn of(machine: &dyn Machine, shown: Shown) -> Variable {
    worked(machine, shown).map_or_else(none, Variable::from_serialize)
}

fn worked(machine: &dyn Machine, shown: Shown) -> Option<Examples> {
    let problem = machine.problem();
    let spec = problem.spec();
    if shown.examples == 0 || !problem.has_reference() {
        return None;
    }

    let input = serde_json::from_str(spec.page.example.input).ok()?;
    let mut example = tasks::find(spec.slug).ok()?.read_input(&input).ok()?.start();
    let mut steps = Vec::new();
    while steps.len() < STEPS_MAX
        && let Some(action) = example.reference()
    {
        let state = text_of(shown.view, example.as_ref(), spec);
        steps.push(Worked { state, action });
        if !example.follow_reference() {
            break;
        }
    }

    let input = shown.view.text(&visible(spec, input));
    let room = (shown.example_tokens as usize * BYTES_PER_TOKEN).checked_sub(input.len())?;
    let chosen = chosen(&steps, shown.examples as usize, room);
    let mut places = 0..;
    steps.retain(|_| places.next().is_some_and(|place| chosen.contains(&place)));
    (!steps.is_empty()).then_some(Examples { input, steps })
}

fn text_of(view: ViewName, machine: &dyn Machine, spec: &Spec) -> String {
    view.text(&visible(spec, machine.state()))
}

/// Indexes of at most `most` steps that fit into `room` together: first one of each form of action,
/// then any; each time the step that is farthest from the chosen ones.
fn chosen(steps: &[Worked], most: usize, mut room: usize) -> BTreeSet<usize> {
    let word = |place: usize| steps[place].action.split(' ').next().unwrap_or_default();
    let mut chosen = BTreeSet::new();
    let mut words = BTreeSet::new();

    let distance = |chosen: &BTreeSet<usize>, place: usize| {
        chosen.iter().map(|other| place.abs_diff(*other)).min().unwrap_or(usize::MAX)
    };
    let cost = |place: usize| steps[place].state.len() + steps[place].action.len();
    let mut left: BTreeSet<usize> = (0..steps.len()).collect();

    while chosen.len() < most {
        left.retain(|place| cost(*place) <= room);
        let best = left.iter().copied().max_by_key(|place| {
            let is_new = !words.contains(word(*place));
            // Among equals, the first one wins.
            (is_new, distance(&chosen, *place), steps.len() - place)
        });
        let Some(best) = best else { break };
        left.remove(&best);
        words.insert(word(best));
        room -= cost(best);
        chosen.insert(best);
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;
    use prime_bench::tasks::Difficulty;

    fn step(action: &str, bytes: usize) -> Worked {
        Worked { state: "x".repeat(bytes), action: action.to_owned() }
    }

    #[test]
    fn examples_show_every_form_of_action_and_lie_apart() {
        let forms = ["place 0 1", "place 1 3", "back 1", "place 1 2", "place 2 0"];
        let steps: Vec<_> = forms.iter().map(|action| step(action, 1)).collect();
        let places = |most, room| chosen(&steps, most, room).into_iter().collect::<Vec<_>>();
        assert_eq!(places(1, 100), [0]);
        assert_eq!(places(2, 100), [0, 2]);
        // Two steps from the nearest.
        assert_eq!(places(3, 100), [0, 2, 4]);
        // 10 bytes each, `back 1` has 7.
        assert_eq!(places(5, 17), [0, 2]);
        assert_eq!(places(5, 16), [0]);
        assert_eq!(places(5, 6), [0_usize; 0]);
    }

    #[test]
    fn an_instance_is_never_its_own_example() {
        let task = tasks::find("n-queens").expect("listed");
        let shown = Shown { examples: 2, ..Shown::default() };
        let example = serde_json::json!({"n": 6, "order": [2, 0, 5, 3, 1, 4]});
        let same = task.read_input(&example).expect("an input");
        assert!(is_own(same.start().as_ref()));

        let other = task.generate(Difficulty::Easy, 0);
        assert!(!is_own(other.start().as_ref()));
        let worked = worked(other.start().as_ref(), shown).expect("examples");
        let actions: Vec<_> = worked.steps.iter().map(|step| step.action.as_str()).collect();
        // The first placement, and the last time that a queen goes: the one of row 2, which stands
        // in column 1 in the end, after column 3.
        assert_eq!(actions, ["place 0 2", "back 2"]);
        assert_eq!(worked.input, r#"{"n":6,"order":[2,0,5,3,1,4]}"#);
    }
}
