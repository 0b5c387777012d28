//! Chemical Reaction: the propensities and their running sum, the product of the draw and the
//! total, and the first sum above its thousandth part.
// Reactions have letters. `b321,54` has rate 3 and the counts 12 and 45 of two species, `c221` of
// one; `d431=` takes two molecules of one species; a rate of several digits ends in `*`. Numbers
// have their lowest digit first but for those that are compared.
//
// All that is multiplied is a digit by a digit, with the carry before added: digit and carry of
// each stand in the line. In `b321,54:6030x038110x428110` the first part is 3 times 21, its digits
// 6, 3 and a last carry of 0, and the others are these digits times 5 and 4. A digit of a sum that
// carries is a sign: one of a keyboard's upper row, or a letter where the carry is 2. The running
// sum then stands once more, after the capital of its reaction and with its highest digit first,
// which is how it is added to and compared.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::system_simulation::chemical_reaction::{
    ChemicalReaction, Instance, Reaction, State,
};

use crate::Lesson;
use crate::numbers::{pairwise, shifted};

pub struct ChemicalReactionLesson;

/// Digits of a count; few have more.
const COUNT: usize = 2;

/// Digits of a running sum; few have more.
const SUM: usize = 5;

const DRAW: usize = 3;

/// Signs for digits that carry 2: capitals that are not reactions of the benchmark.
const CARRYING_TWO: &str = "QRSTUVWXYZ";

fn key(reaction: usize) -> String {
    let letter = ('a'..='z').nth(reaction % 26).unwrap_or('~');
    "+".repeat(reaction / 26) + &letter.to_string()
}

fn low_first(number: i64, width: usize) -> String {
    format!("{number:0width$}").chars().rev().collect()
}

/// The counts of a reaction's species, and true if it takes two molecules of its one species.
fn reactants(reaction: &Reaction, counts: &[i64]) -> (Vec<i64>, bool) {
    let twice = matches!(*reaction.reactants, [(_, 2)]);
    (reaction.reactants.iter().map(|(species, _)| counts[*species]).collect(), twice)
}

/// A reaction's letter, rate and counts, without its end.
fn head(place: usize, rate: i64, counts: &[i64]) -> String {
    let counts: Vec<_> = counts.iter().map(|count| low_first(*count, COUNT)).collect();
    // A rate of the benchmark is one digit.
    let several = if rate < 10 { "" } else { "*" };
    format!("{}{rate}{several}{}", key(place), counts.join(","))
}

impl Lesson for ChemicalReactionLesson {
    type Task = ChemicalReaction;

    fn view(instance: &Instance, state: &State) -> String {
        let mut view = instance
            .draws
            .get(state.t)
            .map_or_else(|| "-".to_owned(), |draw| low_first(*draw, DRAW));
        view.push(' ');

        for (place, reaction) in instance.reactions.iter().enumerate() {
            let (counts, twice) = reactants(reaction, &state.counts);
            view += &head(place, reaction.rate, &counts);
            view += if twice { "=" } else { "" };
        }

        view
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        ChemicalReaction::reference(instance, state)?;
        // The first propensity is added to zero.
        let mut line = "0".repeat(SUM);
        let mut total = 0;
        let mut sums = Vec::new();

        for (place, reaction) in instance.reactions.iter().enumerate() {
            let (mut counts, twice) = reactants(reaction, &state.counts);
            if twice {
                // There are n(n - 1)/2 pairs: the even one of the two factors is halved.
                let n = *counts.first()?;
                counts = if n % 2 == 0 { vec![n / 2, (n - 1).max(0)] } else { vec![n, n / 2] };
            }

            line += &format!("{}:", head(place, reaction.rate, &counts));
            // Without a molecule the propensity is 0, and nothing is multiplied.
            if counts.contains(&0) {
                line.push('-');
            } else {
                let (scaled, digits) =
                    multiplied(&low_first(*counts.first()?, COUNT), reaction.rate);
                line += &digits;

                let mut addends = vec![total];
                match counts.get(1) {
                    None => addends.push(scaled),
                    Some(count) => {
                        let width = COUNT.max(counts.first()?.to_string().len()) + 1;
                        let mut power = 1;
                        for digit in low_first(*count, COUNT).chars() {
                            let (product, digits) =
                                multiplied(&low_first(scaled, width), digit.to_digit(10)?.into());
                            line += &format!("x{digits}");
                            addends.push(product * power);
                            power *= 10;
                        }
                    }
                }
                line += &format!("+{}", sum(&addends, SUM));
                total = addends.iter().sum();
            }

            line += &format!("{}{total:0SUM$}", key(place).to_uppercase());
            sums.push(total);
        }

        // The draw times the total, then the thousandth part of it.
        let draw = *instance.draws.get(state.t)?;
        let total_digits = low_first(total, SUM);
        line += &format!(" {total_digits}");

        let mut addends = Vec::new();
        let mut power = 1;
        for digit in low_first(draw, DRAW).chars() {
            let (product, digits) = multiplied(&total_digits, digit.to_digit(10)?.into());
            line += &format!("x{digit}:{digits}");
            addends.push(product * power);
            power *= 10;
        }

        let width = total_digits.len();
        let part = total * draw / 1000;
        line += &format!("={};{part:0width$} ", sum(&addends, DRAW + width));

        for (place, sum) in sums.iter().enumerate() {
            let compared = pairwise(&format!("{sum:0width$}"), &format!("{part:0width$}"));
            line += &format!("{}{compared}", key(place).to_uppercase());
            if *sum > part {
                break;
            }
        }

        Some(line)
    }
}

/// A number, lowest digit first, times a factor: for each of its digits a digit and a carry of the
/// product. The last carry is the highest digit.
fn multiplied(number: &str, factor: i64) -> (i64, String) {
    let mut line = String::new();
    let (mut carry, mut product, mut power) = (0, 0, 1);

    for digit in number.chars() {
        let added = digit.to_digit(10).map_or(0, i64::from) * factor + carry;
        carry = added / 10;
        line += &format!("{}{carry}", added % 10);
        product += added % 10 * power;
        power *= 10;
    }

    (product + carry * power, line)
}

/// A sum with the lowest digit first, and its carries.
fn sum(addends: &[i64], width: usize) -> String {
    let total: i64 = addends.iter().sum();

    let mut base = 1;
    let digit = |digit: char| {
        base *= 10;
        // What the lower digits of the addends make beyond those of the sum is carried.
        let carry = (addends.iter().map(|addend| addend % base).sum::<i64>() - total % base) / base;
        match carry {
            0 => digit,
            1 => shifted(digit),
            2 => digit
                .to_digit(10)
                .and_then(|digit| CARRYING_TWO.chars().nth(digit as usize))
                .unwrap_or('~'),
            _ => '~',
        }
    };

    low_first(total, width).chars().map(digit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_and_sums_show_their_carries() {
        assert_eq!(multiplied("210", 9), (108, "810110".to_owned()));
        assert_eq!(multiplied("21", 3), (36, "6030".to_owned()));
        assert_eq!(sum(&[38, 49, 15], 3), "S)1");
        assert_eq!(sum(&[40, 7], 3), "740");
    }
}
