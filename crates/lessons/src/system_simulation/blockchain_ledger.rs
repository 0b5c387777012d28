//! Blockchain Ledger: whether the block is full, nonce and funds, then the hash column by column.
// 1000003 is 10^6 + 3: of a number with h in front of its last six digits, three times h is taken from these.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::system_simulation::blockchain_ledger::{Action, BlockchainLedger, Instance, State};

use crate::Lesson;
use crate::numbers::{compared, difference, low_first, sum};

pub struct Of;

/// Digits of balances, of a hash, and of 31 times a hash.
const BALANCE: usize = 4;
const HASH: usize = 6;
const COLUMNS: usize = 8;

impl Lesson for Of {
    type Task = BlockchainLedger;

    fn view(instance: &Instance, state: &State) -> String {
        let Some(miner) = instance.miners.get(state.hashes.len()) else { return "-".to_owned() };
        let next = match instance.transactions.get(state.done) {
            Some(next) => {
                let nonce = format!("nonce {:02} {:02}", next.nonce, state.nonces[next.from]);
                let funds =
                    format!("amount {:02} fee {} has {:0BALANCE$}", next.amount, next.fee, state.balances[next.from]);
                format!("from {:02} to {:02} {nonce} {funds}", next.from, next.to)
            }
            None => "end".to_owned(),
        };
        let size = state.done.saturating_sub(state.hashes.len() * instance.block_size);
        format!("{next} block {size:02} {:02} miner {miner:02} run {:0HASH$}", instance.block_size, state.run)
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        let action = BlockchainLedger::reference(instance, state)?;
        let size = state.done.saturating_sub(state.hashes.len() * instance.block_size);
        let Some(next) = instance.transactions.get(state.done) else {
            return Some(format!("end {}", hash(state.run, *instance.miners.get(state.hashes.len())?)));
        };
        let mut line = compared(size, instance.block_size, 2);
        if let Action::Seal(_) = action {
            return Some(format!("{line} {}", hash(state.run, *instance.miners.get(state.hashes.len())?)));
        }
        line += &format!(" {}", compared(next.nonce, state.nonces[next.from], 2));
        if action == Action::RejectNonce {
            return Some(line);
        }
        let (amount, cost) = (next.amount as usize, usize::try_from(next.cost()).ok()?);
        let has = usize::try_from(state.balances[next.from]).unwrap_or(0);
        line += &format!(" {} {cost:0BALANCE$} {}", sum(amount, next.fee as usize, 3), compared(has, cost, BALANCE));
        if action == Action::RejectFunds {
            return Some(line);
        }
        let (from, to) = (7 * next.from, 11 * next.to);
        let accounts = format!(";{from:03} {to:03} {} {}", sum(from, to, 3), sum(from + to, amount, 3));
        Some(format!("{line}{accounts} {}", hash(state.run, from + to + amount)))
    }
}

/// 31 · run + addend modulo 1000003. In each column from the lowest on: the digits of the run and of the addend and their sum, the carry
/// and three times the digit of the run before, each with the sum so far. The first digit of the last one is the next carry.
fn hash(run: usize, addend: usize) -> String {
    let digits = |number: usize| low_first(number, COLUMNS).chars().filter_map(|c| c.to_digit(10)).collect::<Vec<_>>();
    let (ours, theirs) = (digits(run), digits(addend));
    let (mut before, mut carry) = (0, 0);
    let mut line = low_first(addend, 3);
    let mut total = 0;
    let mut weight = 1;
    for (digit, addend) in ours.into_iter().zip(theirs).take(COLUMNS) {
        // Of two at a time, because a sum of three is seldom seen with a great carry.
        let (both, thrice) = (digit + addend, 3 * before);
        let carried = both + carry;
        let column = carried + thrice;
        line += &format!(" {digit}{addend}={both:02}+{carry}={carried:02}+{thrice:02}={column:02}");
        carry = column / 10;
        before = digit;
        total += (column % 10) as usize * weight;
        weight *= 10;
    }
    let (high, low) = (total / 1_000_000, total % 1_000_000);
    let taken = 3 * high;
    line += &format!(";{high:02} {taken:02} {}", difference(low, taken, HASH));
    let result = if low < taken {
        let rest = 1_000_000 + low - taken;
        line += &format!(" {}", sum(rest, 3, HASH));
        (rest + 3) % 1_000_003
    } else {
        low - taken
    };
    format!("{line} {result:0HASH$}")
}
