//! Steps of runs that wait for approval, and what was decided about them. What a step is, and what a
//! decision says, is the caller's: here both are JSON. All of it but the decisions follows from the
//! events of the runs.

use crate::error::JournalError;

/// A step that waits for approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewApproval {
    /// Its number in its run, from 1.
    pub number: u32,
    /// Milliseconds within which it must be decided.
    pub within_ms: u64,
    /// What is shown of it, as JSON.
    pub body: String,
}

/// An approval as the store has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalRow {
    /// Orders the approvals of a store.
    pub no: u64,
    /// The run.
    pub run: String,
    /// The owner of the run.
    pub owner: String,
    /// Its number in the run, from 1.
    pub number: u32,
    /// When it must be decided, in milliseconds since 1970, by the clock of a store that several
    /// nodes share, or else the program's.
    pub due_ms: u64,
    /// What is shown of it, as JSON.
    pub body: String,
    /// What was decided, as JSON; `None` if nothing was.
    pub decision: Option<String>,
    /// True if there is nothing to decide any more: its round or its run is over.
    pub is_void: bool,
}

impl ApprovalRow {
    /// True if it can be decided.
    pub fn waits(&self) -> bool {
        self.decision.is_none() && !self.is_void
    }
}

/// What became of a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decided {
    /// It stands. If `must_resume`, the run was parked and is the caller's to execute; otherwise it
    /// is executed already, or a node that follows the leases gets it.
    Now {
        /// True if the caller has to execute the run.
        must_resume: bool,
    },
    /// It was decided before, or there is nothing to decide any more.
    Earlier(Box<ApprovalRow>),
    /// There is no such approval.
    Unknown,
}

/// Which approvals to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApprovalQuery {
    /// Only those of this owner's runs.
    pub owner: Option<String>,
    /// Only those after this [`ApprovalRow::no`].
    pub after: u64,
    /// Most rows.
    pub limit: u32,
}

/// The part of a store that holds approvals.
pub trait Approvals {
    /// Sets which steps of a run wait, at `now_ms` since 1970; a store that several nodes share has a
    /// clock of its own. Those that are known keep their times and decisions; others of the run that
    /// nobody has decided become void. Does nothing if another node executes the run.
    ///
    /// # Errors
    /// [`JournalError::Refused`] if there is no such run, and those of the store; then nothing has
    /// changed.
    fn hold(&self, run: &str, waiting: &[NewApproval], now_ms: u64) -> Result<(), JournalError>;

    /// Gives up an open run all of whose trajectories wait for these approvals, until one of them
    /// is decided: it is not among the [open runs](crate::Journal::open_runs), and no node holds it.
    /// Returns false if one was decided meanwhile and the run is still the caller's to execute.
    ///
    /// # Errors
    /// Those of the store; then nothing has changed.
    fn park(&self, run: &str, numbers: &[u32]) -> Result<bool, JournalError>;

    /// Decides about a step, unless somebody has; durable when this returns. A parked run becomes an
    /// open one with the status `queued`.
    ///
    /// # Errors
    /// Those of the store; then nothing has changed.
    fn decide(&self, run: &str, number: u32, decision: &str) -> Result<Decided, JournalError>;

    /// The approvals of a run, by number.
    ///
    /// # Errors
    /// The store cannot be read.
    fn of_run(&self, run: &str) -> Result<Vec<ApprovalRow>, JournalError>;

    /// The steps that wait, in the order in which they began to.
    ///
    /// # Errors
    /// The store cannot be read.
    fn waiting(&self, query: &ApprovalQuery) -> Result<Vec<ApprovalRow>, JournalError>;

    /// The number of an owner's runs that are parked, counted up to `most`.
    ///
    /// # Errors
    /// The store cannot be read.
    fn parked_runs(&self, owner: &str, most: u32) -> Result<u32, JournalError>;

    /// The steps that wait and had to be decided by now, earliest first, at most `limit`; and in how
    /// many milliseconds the next one is due.
    ///
    /// # Errors
    /// The store cannot be read.
    fn due(&self, now_ms: u64, limit: u32)
    -> Result<(Vec<ApprovalRow>, Option<u64>), JournalError>;
}
