//! Blockchain Ledger: transactions are checked, carried out and sealed in blocks that are chained
//! by a hash.
//!
//! A step is the verdict on one transaction, or one block sealed.

use crate::tasks::operation::{OPERATIONS_MAX, VALUE_MAX, validate_count};
use crate::tasks::pages::blockchain_ledger as page;
use crate::tasks::prelude::*;

/// The task `blockchain-ledger`.
pub struct BlockchainLedger;

/// M of the hash.
pub const MODULUS: usize = 1_000_003;
/// With amounts up to [`VALUE_MAX`], all money together stays far below 2^53.
const ACCOUNTS_MAX: usize = 1_000;

/// Exceeds every balance that transactions can make.
const BALANCE_MAX: i64 = 1 << 48;

/// An input of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// Balance of each account at the start.
    pub balances: Vec<u32>,
    /// Sum that a block's miner gets in addition to its fees.
    pub reward: u32,
    /// Transactions in each block but the last, which may have fewer.
    pub block_size: usize,
    /// Account of each block's miner.
    pub miners: Vec<usize>,
    /// The transactions, in order.
    pub transactions: Vec<Transaction>,
}

/// A transfer between accounts; written as `[from, to, amount, fee, nonce]`.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(from = "(usize, usize, u32, u32, usize)", into = "(usize, usize, u32, u32, usize)")]
pub struct Transaction {
    /// Account of the sender.
    pub from: usize,
    /// Account of the receiver.
    pub to: usize,
    /// Sum that the receiver gets.
    pub amount: u32,
    /// Sum that the miner gets.
    pub fee: u32,
    /// Must be the number of transactions accepted from the sender before.
    pub nonce: usize,
}

impl From<(usize, usize, u32, u32, usize)> for Transaction {
    fn from((from, to, amount, fee, nonce): (usize, usize, u32, u32, usize)) -> Self {
        Self { from, to, amount, fee, nonce }
    }
}

impl From<Transaction> for (usize, usize, u32, u32, usize) {
    fn from(transaction: Transaction) -> Self {
        let Transaction { from, to, amount, fee, nonce } = transaction;
        (from, to, amount, fee, nonce)
    }
}

impl Transaction {
    /// The amount with the fee.
    pub fn cost(&self) -> i64 {
        i64::from(self.amount) + i64::from(self.fee)
    }

    fn hash(&self, run: usize) -> usize {
        (31 * run + 7 * self.from + 11 * self.to + self.amount as usize) % MODULUS
    }
}

/// The running hash at the start of the block of this height.
fn opening(previous: usize, height: usize) -> usize {
    (31 * previous + height) % MODULUS
}

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Number of transactions accepted or rejected.
    pub done: usize,
    /// Negative after a wrong accept.
    pub balances: Vec<i64>,
    /// Number of accepted transactions of each account.
    pub nonces: Vec<usize>,
    /// Running hash of the open block.
    pub run: usize,
    /// Fees of the open block.
    pub fees: i64,
    /// Hash of each sealed block.
    pub hashes: Vec<usize>,
    /// Transactions rejected for their nonce so far.
    pub rejected_nonce: usize,
    /// Transactions rejected for want of funds so far.
    pub rejected_funds: usize,
    /// The last action; none at the start.
    pub last: Last<Action>,
}

impl Instance {
    /// The next transaction of the open block; `None` when the block is complete.
    pub fn open(&self, state: &State) -> Option<&Transaction> {
        // The end of the open block: all before it are sealed.
        let end = (state.hashes.len() + 1) * self.block_size;
        self.transactions.get(state.done).filter(|_| state.done < end)
    }
}

word_actions!(Action {
    /// `accept h`: carries out the transaction; h is the new running hash.
    Accept(run) = "accept",
    /// The transaction's nonce is not the sender's.
    RejectNonce = "reject nonce",
    /// The sender's balance is below amount and fee.
    RejectFunds = "reject funds",
    /// `seal h`: pays the miner and ends the block with hash h.
    Seal(hash) = "seal",
});

impl Task for BlockchainLedger {
    task_items!(Instance, State, Action, page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Instance {
        let small = |min: i64, max: i64, rng: &mut TaskRng| {
            u32::try_from(rng.between(min, max)).expect("invariant: drawn from a small range")
        };
        loop {
            let accounts = page::size::ACCOUNTS.draw(difficulty, rng);
            let count = page::size::TRANSACTIONS.draw(difficulty, rng);
            let block_size = page::size::BLOCK_SIZE.draw(difficulty, rng);
            let balances = (0..accounts).map(|_| small(20, 200, rng)).collect();
            let reward = small(1, 10, rng);
            let miners = (0..count.div_ceil(block_size)).map(|_| rng.index(accounts)).collect();

            let blank = Transaction { from: 0, to: 1, amount: 1, fee: 0, nonce: 0 };
            let mut instance =
                Instance { balances, reward, block_size, miners, transactions: vec![blank; count] };
            // A nonce depends on the run so far: every transaction is written just before its turn.
            let mut state = Self::start(&instance);
            while !Self::ended(&instance, &state) {
                if instance.open(&state).is_some() {
                    let (from, to) = rng.pair(accounts);
                    let (amount, fee) = (small(1, 80, rng), small(0, 3, rng));
                    let expected = state.nonces[from];
                    let nonce = match rng.below(20) {
                        0 if expected > 0 => expected - 1,
                        0 | 1 => expected + 1,
                        _ => expected,
                    };
                    instance.transactions[state.done] =
                        Transaction { from, to, amount, fee, nonce };
                }
                let Some(action) = Self::reference(&instance, &state) else { break };
                Self::step(&instance, &mut state, action)
                    .expect("invariant: reference actions are legal");
            }

            let rejected = state.rejected_nonce + state.rejected_funds;
            if state.rejected_nonce > 0 && state.rejected_funds > 0 && 2 * rejected < count {
                return instance;
            }
        }
    }

    fn validate(instance: &Instance) -> Result<(), InvalidInput> {
        let accounts = instance.balances.len();
        let range = format!("has {accounts} entries; give 2 to {ACCOUNTS_MAX}");
        InvalidInput::unless((2..=ACCOUNTS_MAX).contains(&accounts), "balances", range)?;

        let small = |amount: u32| amount as usize <= VALUE_MAX;
        let limit = format!("amounts must not exceed {VALUE_MAX}");
        InvalidInput::unless(
            instance.balances.iter().all(|balance| small(*balance)),
            "balances",
            limit.clone(),
        )?;
        InvalidInput::unless(small(instance.reward), "reward", limit.clone())?;

        let count = instance.transactions.len();
        validate_count("transactions", count)?;
        let sizes = (1..=OPERATIONS_MAX).contains(&instance.block_size);
        InvalidInput::unless(sizes, "block_size", format!("must be 1 to {OPERATIONS_MAX}"))?;

        let blocks = count.div_ceil(instance.block_size);
        let miners = instance.miners.len() == blocks
            && instance.miners.iter().all(|miner| *miner < accounts);
        InvalidInput::unless(
            miners,
            "miners",
            format!("must be {blocks} accounts below {accounts}, one a block"),
        )?;

        let known = |transaction: &Transaction| {
            let Transaction { from, to, .. } = *transaction;
            from != to && from < accounts && to < accounts
        };
        let reason = format!("each must be between two different accounts below {accounts}");
        InvalidInput::unless(instance.transactions.iter().all(known), "transactions", reason)?;

        let amounts = instance.transactions.iter().all(|transaction| {
            small(transaction.amount) && small(transaction.fee) && transaction.nonce <= VALUE_MAX
        });
        InvalidInput::unless(amounts, "transactions", limit)
    }

    fn start(instance: &Instance) -> State {
        State {
            done: 0,
            balances: instance.balances.iter().map(|balance| i64::from(*balance)).collect(),
            nonces: vec![0; instance.balances.len()],
            run: opening(0, 1),
            fees: 0,
            hashes: Vec::new(),
            rejected_nonce: 0,
            rejected_funds: 0,
            last: Last(None),
        }
    }

    fn check_state(instance: &Instance, state: &State) -> Result<(), InvalidInput> {
        let accounts = instance.balances.len();
        limits::length("balances", state.balances.len(), accounts)?;
        limits::within("balances", state.balances.iter().copied(), -BALANCE_MAX..=BALANCE_MAX)?;
        limits::length("nonces", state.nonces.len(), accounts)?;
        limits::counts("nonces", state.nonces.iter().copied())?;
        limits::below("run", [state.run], MODULUS)?;
        limits::within("fees", [state.fees], 0..=BALANCE_MAX)?;
        limits::at_most("hashes", state.hashes.len(), instance.miners.len())
    }

    fn apply(instance: &Instance, state: &mut State, action: &Action) -> Result<(), Illegal> {
        if Self::ended(instance, state) {
            return Err(Illegal("every block is sealed"));
        }
        if matches!(*action, Action::Accept(hash) | Action::Seal(hash) if hash >= MODULUS) {
            return Err(Illegal("hashes are below 1000003"));
        }

        match (*action, instance.open(state)) {
            (Action::Accept(run), Some(transaction)) => {
                // A wrong accept can make the balance negative, which `solvent` finds.
                state.balances[transaction.from] -= transaction.cost();
                state.balances[transaction.to] += i64::from(transaction.amount);
                state.nonces[transaction.from] += 1;
                state.fees += i64::from(transaction.fee);
                state.run = run;
                state.done += 1;
            }
            (Action::RejectNonce, Some(_)) => {
                state.rejected_nonce += 1;
                state.done += 1;
            }
            (Action::RejectFunds, Some(_)) => {
                state.rejected_funds += 1;
                state.done += 1;
            }
            (Action::Seal(hash), None) => {
                state.balances[instance.miners[state.hashes.len()]] +=
                    i64::from(instance.reward) + state.fees;
                state.fees = 0;
                state.hashes.push(hash);
                // The next block's hash continues this one's: this chains the blocks.
                state.run = opening(hash, state.hashes.len() + 1);
            }
            (Action::Seal(_), Some(_)) => return Err(Illegal("the block is not complete yet")),
            (_, None) => return Err(Illegal("the block is complete and must be sealed")),
        }

        Ok(())
    }

    fn reference(instance: &Instance, state: &State) -> Option<Action> {
        let Some(transaction) = instance.open(state) else {
            let miner = instance.miners.get(state.hashes.len())?;
            return Some(Action::Seal((31 * state.run + miner) % MODULUS));
        };

        Some(if transaction.nonce != state.nonces[transaction.from] {
            Action::RejectNonce
        } else if state.balances[transaction.from] < transaction.cost() {
            Action::RejectFunds
        } else {
            Action::Accept(transaction.hash(state.run))
        })
    }

    fn violations(
        instance: &Instance,
        before: &State,
        action: &Action,
        after: &State,
        found: &mut Violations,
    ) {
        let initial: i64 = instance.balances.iter().map(|balance| i64::from(*balance)).sum();
        let sealed = i64::try_from(after.hashes.len()).unwrap_or(i64::MAX);
        let minted = i64::from(instance.reward).saturating_mul(sealed);

        found.require(
            page::MONEY,
            after.balances.iter().sum::<i64>() + after.fees == initial + minted,
        );
        found.require(page::SOLVENT, after.balances.iter().all(|balance| *balance >= 0));

        // A nonce counts the accepted transactions of its account.
        let judged =
            after.nonces.iter().sum::<usize>() + after.rejected_nonce + after.rejected_funds;
        found.require(page::NONCES, judged == after.done);

        if let Some(transaction) = instance.transactions.get(before.done) {
            let fits = before.nonces.get(transaction.from) == Some(&transaction.nonce);
            let costs = i64::from(transaction.amount) + i64::from(transaction.fee);
            let affordable =
                before.balances.get(transaction.from).is_some_and(|balance| *balance >= costs);

            let (nonce, funds) = match action {
                Action::Accept(_) => (fits, affordable),
                Action::RejectNonce => (!fits, true),
                Action::RejectFunds => (fits, !affordable),
                Action::Seal(_) => (true, true),
            };

            found.require(page::NONCE_MATCH, nonce);
            found.require(page::COSTS, funds);
        }

        // `nonce-match` and `costs` leave one verdict in each state, and this one its number; when
        // a block is complete is a matter of `format`. So a clean trace that ends is the
        // algorithm's.
        let hash = match *action {
            Action::Accept(run) => instance
                .transactions
                .get(before.done)
                .is_none_or(|transaction| run == transaction.hash(before.run)),
            Action::Seal(hash) => instance
                .miners
                .get(before.hashes.len())
                .is_none_or(|miner| hash == (31 * before.run + miner) % MODULUS),
            Action::RejectNonce | Action::RejectFunds => true,
        };
        found.require(page::HASH, hash);

        let touched =
            before.balances.iter().zip(&after.balances).filter(|(old, new)| old != new).count();
        let allowed = match action {
            Action::Accept(_) => 2,
            Action::Seal(_) => 1,
            Action::RejectNonce | Action::RejectFunds => 0,
        };
        found.require(page::TOUCHED, touched <= allowed);

        if Self::ended(instance, after) {
            let sealed = after.hashes.len() == instance.miners.len();
            found.require(page::CHAIN, after.done == instance.transactions.len() && sealed);
        }
    }

    fn ended(instance: &Instance, state: &State) -> bool {
        state.hashes.len() >= instance.miners.len()
    }

    fn steps_max(instance: &Instance) -> u64 {
        // One verdict a transaction, one seal a block.
        (instance.transactions.len() + instance.miners.len()) as u64
    }

    fn answer(_: &Instance, state: &State) -> Value {
        json!({
            "balances": state.balances,
            "nonces": state.nonces,
            "hashes": state.hashes,
            "rejected_nonce": state.rejected_nonce,
            "rejected_funds": state.rejected_funds,
        })
    }
}
