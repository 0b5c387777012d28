//! Chemical Reaction: the propensities and their running sum, the product of the draw and the total, and the first sum
//! above its thousandth part.
// Reactions have letters. `b3*12,45` has rate 3 and the counts of two species, `c2*12` of one; `d4*13=` takes two molecules
// of one species. Numbers of the derivation have their lowest digit first.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::system_simulation::chemical_reaction::{ChemicalReaction, Instance, Reaction, State};

use crate::Lesson;

pub struct Of;

/// Digits of a running sum; some have one more.
const SUM: usize = 5;

fn key(reaction: usize) -> String {
    let letter = ('a'..='z').nth(reaction % 26).unwrap_or('~');
    "+".repeat(reaction / 26) + &letter.to_string()
}

fn low_first(number: i64, width: usize) -> String {
    format!("{number:0width$}").chars().rev().collect()
}

/// The counts of a reaction's species, and whether it takes two molecules of its one species.
fn reactants(reaction: &Reaction, counts: &[i64]) -> (Vec<i64>, bool) {
    let twice = matches!(*reaction.reactants, [(_, 2)]);
    (reaction.reactants.iter().map(|(species, _)| counts[*species]).collect(), twice)
}

impl Lesson for Of {
    type Task = ChemicalReaction;

    fn view(instance: &Instance, state: &State) -> String {
        let mut view = instance.draws.get(state.t).map_or_else(|| "-".to_owned(), |draw| format!("{draw:03}"));
        view.push(' ');
        for (place, reaction) in instance.reactions.iter().enumerate() {
            let (counts, twice) = reactants(reaction, &state.counts);
            let counts: Vec<_> = counts.iter().map(|count| format!("{count:02}")).collect();
            let end = if twice { "=" } else { "" };
            view += &format!("{}{}*{}{end}", key(place), reaction.rate, counts.join(","));
        }
        view
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        ChemicalReaction::reference(instance, state)?;
        let mut line = String::new();
        let mut total = 0;
        let mut sums = Vec::new();
        for (place, reaction) in instance.reactions.iter().enumerate() {
            let (counts, twice) = reactants(reaction, &state.counts);
            line += &key(place);
            let (first, second) = match *counts {
                // Of a number and the one before, the even one is halved.
                [n] if twice => {
                    let (x, y) = if n % 2 == 0 { (n / 2, (n - 1).max(0)) } else { (n, n / 2) };
                    line += &format!("{x:02},{y:02}:");
                    (x, y)
                }
                [n] => (n, 1),
                [n, m] => (n, m),
                _ => return None,
            };
            if first * second == 0 {
                line.push('-');
            } else {
                let scaled = reaction.rate * first;
                line += &low_first(scaled, 3);
                let is_product = twice || counts.len() == 2;
                if is_product {
                    // The other count's digits, lowest first, each with its product.
                    for digit in low_first(second, 2).chars() {
                        line += &low_first(scaled * i64::from(digit.to_digit(10)?), 4);
                    }
                }
                total += scaled * second;
                line += &format!("+{}", low_first(total, SUM));
            }
            sums.push(total);
        }
        let draw = *instance.draws.get(state.t)?;
        line.push(' ');
        for digit in low_first(draw, 3).chars() {
            line += &format!("*{}", low_first(total * i64::from(digit.to_digit(10)?), SUM + 1));
        }
        let product = low_first(total * draw, SUM + 3);
        let (below, part) = product.split_at(3);
        line += &format!("={below},{part} ");
        // Compared from the highest digit on.
        let part = total * draw / 1000;
        let mut previous = None;
        for (place, sum) in sums.iter().enumerate() {
            // What cannot fire has the sum of the one before.
            if previous.replace(*sum).unwrap_or(0) == *sum {
                continue;
            }
            line += &key(place);
            let (x, y) = (format!("{sum:0SUM$}"), format!("{part:0SUM$}"));
            let same = x.bytes().zip(y.bytes()).take_while(|(x, y)| x == y).count();
            line += &x[..x.len().min(same + 1)];
            if *sum > part {
                line.push('>');
                break;
            }
            line.push('.');
        }
        Some(line)
    }

    const UNTAUGHT: [u32; 3] = [0, 0, 10];
}
