//! Blockchain Ledger: checks whether the block is full, then nonce and funds, then computes the
//! hash column by column.
// 1000003 is 10^6 + 3, so that a number with h in front of its last six digits is reduced by taking
// three times h from these. Digits have letters, so that none is found by counting: those of the
// run `a` to `f`, the lowest first, those of the addend `p` to `r`, those of 31 times the run plus
// the addend `A` to `H`, and those of the result `u` to `z`.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::system_simulation::blockchain_ledger::{
    Action, BlockchainLedger, Instance, State,
};

use crate::Lesson;
use crate::numbers::{compared, difference, low_first, sum};

pub struct BlockchainLedgerLesson;

/// Digits of balances, of a hash, of what is added to it, and of 31 times a hash.
const BALANCE: usize = 4;
const HASH: usize = 6;
const ADDEND: usize = 3;
const COLUMNS: usize = 8;

impl Lesson for BlockchainLedgerLesson {
    type Task = BlockchainLedger;

    fn view(instance: &Instance, state: &State) -> String {
        let Some(miner) = instance.miners.get(state.hashes.len()) else { return "-".to_owned() };

        let next = match instance.transactions.get(state.done) {
            Some(next) => {
                let nonce = format!("nonce {:02} {:02}", next.nonce, state.nonces[next.from]);
                let funds = format!(
                    "amount {:02} fee {} has {:0BALANCE$}",
                    next.amount, next.fee, state.balances[next.from]
                );
                format!("from {:02} to {:02} {nonce} {funds}", next.from, next.to)
            }
            None => "end".to_owned(),
        };

        let size = state.done.saturating_sub(state.hashes.len() * instance.block_size);
        format!(
            "{next} block {size:02} {:02} miner {miner:02} run {}",
            instance.block_size,
            keyed(state.run, HASH, 'a')
        )
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        let action = BlockchainLedger::reference(instance, state)?;
        let size = state.done.saturating_sub(state.hashes.len() * instance.block_size);

        let Some(next) = instance.transactions.get(state.done) else {
            return Some(format!(
                "end {}",
                hash(state.run, *instance.miners.get(state.hashes.len())?)
            ));
        };

        let mut line = compared(size, instance.block_size, 2);
        if let Action::Seal(_) = action {
            return Some(format!(
                "{line} {}",
                hash(state.run, *instance.miners.get(state.hashes.len())?)
            ));
        }

        line += &format!(" {}", compared(next.nonce, state.nonces[next.from], 2));
        if action == Action::RejectNonce {
            return Some(line);
        }

        let (amount, cost) = (next.amount as usize, usize::try_from(next.cost()).ok()?);
        let has = usize::try_from(state.balances[next.from]).unwrap_or(0);

        line += &format!(
            " {} {cost:0BALANCE$} {}",
            sum(amount, next.fee as usize, 3),
            compared(has, cost, BALANCE)
        );

        if action == Action::RejectFunds {
            return Some(line);
        }

        let (from, to) = (7 * next.from, 11 * next.to);
        let accounts =
            format!(";{from:03} {to:03} {} {}", sum(from, to, 3), sum(from + to, amount, 3));
        Some(format!("{line}{accounts} {}", hash(state.run, from + to + amount)))
    }
}

/// The digits of a number, the lowest first, each after its letter.
fn keyed(number: usize, width: usize, first: char) -> String {
    let digits = low_first(number, width);
    (first..).zip(digits.chars()).flat_map(|(letter, digit)| [letter, digit]).collect()
}

/// The lowest digit of a sum, `*` if it carries and else a dot, and the tens.
fn low_sum(x: u32, y: u32) -> String {
    let mark = if x % 10 + y % 10 > 9 { '*' } else { '.' };
    format!("{}{mark}{}", (x + y) % 10, (x + y) / 10)
}

/// 31 · run + addend modulo 1000003. In each column from the lowest on: the digits of the run and
/// of the addend and their sum, the carry and three times the digit of the run before, each with
/// the sum so far; the tens of the last one are the next carry. Then what is in front of the last
/// six digits, and three times that is taken from these.
fn hash(run: usize, addend: usize) -> String {
    let digits = |number: usize| {
        low_first(number, COLUMNS).chars().filter_map(|c| c.to_digit(10)).collect::<Vec<_>>()
    };

    let (ours, theirs) = (digits(run), digits(addend));
    let (mut before, mut carry) = (0, 0);
    let mut line = keyed(addend, ADDEND, 'p');
    let mut total = 0;
    let mut weight = 1;
    let letters = ('a'..).zip('A'..).zip('p'..).take(COLUMNS);

    for (place, ((ours, theirs), ((letter, result), of_addend))) in
        ours.into_iter().zip(theirs).zip(letters).enumerate()
    {
        // Two are added at a time, the lowest digit first, because a sum of three is seldom seen
        // with a great carry.
        let both = ours + theirs;
        line += &format!(" {letter}{ours}");
        if place < ADDEND || theirs > 0 {
            line += &format!("{of_addend}{theirs}={}{}", both % 10, both / 10);
        }

        let (carried, thrice) = (both + carry, 3 * before);
        let column = carried + thrice;

        line += &format!("+{carry}={}", low_sum(both, carry));
        line += &format!("+{}{}={result}{}", thrice % 10, thrice / 10, low_sum(carried, thrice));

        carry = column / 10;
        before = ours;
        total += (column % 10) as usize * weight;
        weight *= 10;
    }

    // Reduction modulo 1000003.
    let (high, low) = (total / 1_000_000, total % 1_000_000);
    let taken = 3 * high;
    line += &format!(";H{}G{} {taken:02}", high / 10, high % 10);

    let groups = difference(low, taken, HASH);
    for ((group, letter), result) in groups.as_bytes().chunks(4).zip('A'..).zip('u'..) {
        if let [x, y, digit, borrow] = *group {
            let [x, y, digit, borrow] = [x, y, digit, borrow].map(char::from);
            line += &format!(" {letter}{x}{y}{result}{digit}{borrow}");
        }
    }

    // Below zero the modulus is added: 10^6 by the borrow, then 3.
    let result = if low < taken {
        let rest = 1_000_000 + low - taken;
        line += &format!(" {}", sum(rest, 3, HASH));
        (rest + 3) % 1_000_003
    } else {
        low - taken
    };

    format!("{line} {result:0HASH$}")
}
