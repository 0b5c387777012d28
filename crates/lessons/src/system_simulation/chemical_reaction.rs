//! Chemical Reaction: the propensities and their running sum, the product of the draw and the total, and the first sum
//! above its thousandth part.
// Reactions have letters. `b312,45` has rate 3 and the counts of two species, `c212` of one; `d413=` takes two molecules of one
// species; a rate of several digits ends in `*`. Numbers of the derivation have their lowest digit first. A digit of a sum that
// carries 1 or 2 is a letter, `A` to `J` or `K` to `T`, which takes no more room than the digit.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::system_simulation::chemical_reaction::{ChemicalReaction, Instance, Reaction, State};

use crate::Lesson;

pub struct Of;

/// Digits of a running sum; some have one more.
const SUM: usize = 5;

/// Digits of a product that needs no carries written.
const SHORT: usize = 4;

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
            // A rate of the benchmark is one digit.
            let rate = if reaction.rate < 10 { reaction.rate.to_string() } else { format!("{}*", reaction.rate) };
            view += &format!("{}{rate}{}{end}", key(place), counts.join(","));
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
                    (x, Some(y))
                }
                [n] => (n, None),
                [n, m] => (n, Some(m)),
                _ => return None,
            };
            let before = total;
            let scaled = reaction.rate * first;
            total += scaled * second.unwrap_or(1);
            if total == before {
                line.push('-');
                sums.push(None);
                continue;
            }
            line += &low_first(scaled, 3);
            // The other count's digits, lowest first, each with its product.
            let mut addends = match second {
                Some(second) => {
                    let (partial, addends) = partial_products(scaled, 3, second, 2);
                    line += &partial;
                    addends
                }
                None => vec![scaled],
            };
            addends.push(before);
            line += &format!("+{}", sum(&addends, SUM));
            sums.push(Some(total));
        }
        let draw = *instance.draws.get(state.t)?;
        let (partial, addends) = partial_products(total, SUM, draw, 3);
        let product = sum(&addends, SUM + 3);
        let (below, part) = product.split_at(3);
        line += &format!(" {partial}={below},{part} ");
        // Written again as it is compared, from the highest digit on.
        let part = total * draw / 1000;
        line += &format!("{part:0SUM$} ");
        for (place, sum) in sums.iter().enumerate() {
            line += &key(place);
            let Some(sum) = *sum else {
                line.push('-');
                continue;
            };
            let (x, y) = (format!("{sum:0SUM$}"), format!("{part:0SUM$}"));
            let same = x.bytes().zip(y.bytes()).take_while(|(x, y)| x == y).count();
            line += &x[..x.len().min(same + 1)];
            if sum > part {
                line.push('>');
                break;
            }
        }
        Some(line)
    }

    const UNTAUGHT: [u32; 3] = [0, 0, 6];
}

/// A number times each digit of another, the lowest first, and these products. Those with 0 are left out; the long ones have a
/// carry behind every two digits.
fn partial_products(number: i64, width: usize, factor: i64, factor_width: usize) -> (String, Vec<i64>) {
    let mut line = String::new();
    let mut products = Vec::new();
    let mut power = 1;
    for digit in low_first(factor, factor_width).chars() {
        line.push('*');
        let digit = i64::from(digit.to_digit(10).unwrap_or(0));
        if digit > 0 {
            let width = number.to_string().len().max(width) + 1;
            let mut base = 1;
            for (place, product) in low_first(number * digit, width).chars().enumerate() {
                if place > 0 && place % 2 == 0 && width > SHORT {
                    base *= 100;
                    line += &(number % base * digit / base).to_string();
                }
                line.push(product);
            }
        }
        products.push(number * digit * power);
        power *= 10;
    }
    (line, products)
}

/// A sum with the lowest digit first, and its carries.
fn sum(addends: &[i64], width: usize) -> String {
    let total: i64 = addends.iter().sum();
    let mut base = 1;
    let digit = |digit: char| {
        base *= 10;
        let carry = (addends.iter().map(|addend| addend % base).sum::<i64>() - total % base) / base;
        let Some(letters) = usize::try_from(carry).ok().and_then(|carry| carry.checked_sub(1)) else { return digit };
        let place = letters * 10 + digit.to_digit(10).map_or(0, |digit| digit as usize);
        ('A'..='T').nth(place).unwrap_or('~')
    };
    low_first(total, width).chars().map(digit).collect()
}
