//! Random walks off the reference trace: the guarantees of a machine in every state that legal
//! lines can reach.

use super::suite::suite;
use super::*;

suite! { guarantees_hold_off_the_trace, arbitrary_text_never_panics }

const WALKS: u64 = 24;
const STEPS: usize = 150;

fn number(small: u64, rng: &mut TaskRng) -> String {
    // The exception is the largest number that a line can hold.
    if rng.chance(1, 50) { "9007199254740991".to_owned() } else { rng.below(small).to_string() }
}

/// A random value of a field of the form language ([`pattern`]).
fn value(field: &str, small: u64, rng: &mut TaskRng) -> String {
    let signed = |rng: &mut TaskRng| match number(small, rng).as_str() {
        text if text != "0" && rng.chance(1, 2) => format!("-{text}"),
        text => text.to_owned(),
    };
    match field {
        "nat?" | "nats?" if rng.chance(1, 4) => "-".to_owned(),
        "ratio" if rng.chance(1, 3) => format!("{}/{}", number(small, rng), 2 + rng.below(5)),
        "rat" if rng.chance(1, 3) => format!("{}/{}", signed(rng), 2 + rng.below(5)),
        "nat" | "nat?" | "big" | "ratio" => number(small, rng),
        "int" | "bigint" | "rat" => signed(rng),
        "digit" => rng.below(10).to_string(),
        "nats" | "nats?" | "ints" => {
            let values: Vec<String> = (0..=rng.below(3))
                .map(|_| if field == "ints" { signed(rng) } else { number(small, rng) })
                .collect();
            values.join(" ")
        }
        class if class.starts_with('[') => {
            let inside: Vec<char> =
                class[1..class.find(']').expect("a class ends")].chars().collect();
            (0..=rng.below(6)).map(|_| inside[rng.index(inside.len())]).collect()
        }
        words => rng.one_of(&words.split('|').collect::<Vec<_>>()).to_owned(),
    }
}

/// A random line of one of the forms.
pub(super) fn random_line(forms: &[&'static str], small: u64, rng: &mut TaskRng) -> String {
    let mut rest = rng.one_of(forms);
    let mut line = String::new();
    while let Some(open) = rest.find('<') {
        line += &rest[..open];

        let inside = &rest[open + 1..];
        let class =
            if inside.starts_with('[') { inside.find(']').expect("a class ends") } else { 0 };
        let end = class + inside[class..].find('>').expect("a field ends");

        line += &value(&inside[..end], small, rng);
        rest = &inside[end + 1..];
    }
    line + rest
}

/// The line with one of its numbers changed.
pub(super) fn changed(line: &str, small: u64, rng: &mut TaskRng) -> String {
    let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
    let place = rng.index(words.len());

    if let Ok(number) = words[place].parse::<u64>() {
        let other = [number.saturating_add(1), number.saturating_sub(1), rng.below(small)];
        words[place] = rng.one_of(&other).to_string();
    }
    words.join(" ")
}

fn guarantees_hold_off_the_trace(task: &'static dyn AnyTask) {
    let spec = task.spec();
    let transition = spec.constraints.iter().position(|c| c.kind == Kind::Transition).expect("one");

    for walk in 0..WALKS {
        let mut rng = TaskRng::new(walk);
        // Every eighth walk takes an instance of medium difficulty.
        let difficulty = Difficulty::ALL[usize::from(walk % 8 == 7)];
        let mut machine = task.generate(difficulty, walk).start();
        // Bound of most numbers, and how often in six the walk follows the reference.
        let (small, loyalty) = (rng.one_of(&[3, 9, 40]), rng.below(6));

        for step in 0..STEPS {
            let right = machine.reference();
            let line = match &right {
                Some(right) if rng.below(6) < loyalty => right.clone(),
                Some(right) if rng.chance(1, 2) => changed(right, small, &mut rng),
                _ => random_line(spec.actions, small, &mut rng),
            };
            let place = || format!("{} walk {walk} step {step}: {line:?}", spec.slug);
            let before = machine.state();

            match machine.propose(&line) {
                Ok(()) => {
                    let found = machine.violations(Kinds::ALL);
                    let prescribed = right.as_deref() == Some(line.as_str());
                    assert_eq!(!found.contains(transition), prescribed, "{}", place());
                    assert!(!found.contains(0), "{}: a legal line keeps the format", place());
                    machine.commit();
                    assert_eq!(machine.state()["last"], line, "{}", place());
                }
                Err(_) => {
                    assert!(
                        right.as_deref() != Some(line.as_str()),
                        "{}: the prescribed line is legal",
                        place()
                    );
                    assert_eq!(
                        machine.state(),
                        before,
                        "{}: a refused line changes nothing",
                        place()
                    );
                }
            }

            if machine.ended() {
                assert!(machine.answer().is_some_and(|answer| answer.is_object()), "{}", place());
                assert!(machine.propose(&line).is_err(), "{}: nothing follows the end", place());
                assert_eq!(
                    machine.reference(),
                    None,
                    "{}: nothing is prescribed at the end",
                    place()
                );
                break;
            }
        }

        // From any state the algorithm continues without a panic, though it need not terminate.
        for _ in 0..STEPS {
            if !machine.follow_reference() {
                break;
            }
        }
    }
}

fn arbitrary_text_never_panics(task: &'static dyn AnyTask) {
    let mut rng = TaskRng::new(5);
    let mut machine = task.generate(Difficulty::Easy, 5).start();

    for _ in 0..200 {
        let letters = "0123456789-/ ()<>=!+*abcdefghijklmnopqrstuvwxyzXL_\u{e9}\u{1F600}\0\n\t";
        let letters: Vec<char> = letters.chars().collect();
        let noise: String = (0..rng.below(40)).map(|_| rng.one_of(&letters)).collect();

        let right = machine.reference().unwrap_or_default();
        for text in
            [noise.clone(), format!("{right}{noise}"), format!("{noise}{right}"), right.repeat(50)]
        {
            drop(machine.propose(&text));
        }
        machine.follow_reference();
    }

    for huge in ["(".repeat(100_000), "9".repeat(100_000), "a".repeat(100_000), "1 ".repeat(50_000)]
    {
        let right = machine.reference().unwrap_or_default();
        let word = right.split(' ').next().unwrap_or_default();
        for text in [huge.clone(), format!("{word} {huge}"), format!("{word}{huge}")] {
            drop(machine.propose(&text));
        }
    }
}
