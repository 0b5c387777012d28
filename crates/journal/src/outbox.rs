//! The messages about runs that wait for their delivery to other servers. They are written in the
//! commit of what they tell ([`Write::Enqueue`](crate::Write::Enqueue)), so none is lost or made up;
//! each is delivered at least once, under the same id.

use crate::error::JournalError;

/// A message about a run to one receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its id, the same at each attempt. A receiver's queue takes an id once.
    pub id: String,
    /// The name of its receiver.
    pub endpoint: String,
    /// What is sent.
    pub body: String,
}

/// A message that the caller has to send, and then to [settle](Outbox::settle).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimed {
    /// The message.
    pub message: Message,
    /// The run that it is about.
    pub run: String,
    /// Number of attempts that failed before.
    pub failed: u32,
    /// Its number in the store.
    pub(crate) no: i64,
    /// Which of its claims this is.
    pub(crate) claim: i64,
}

impl Claimed {
    /// For stores in other crates: a message with its number in the store and that of its claim.
    #[must_use]
    pub fn new(message: Message, run: String, failed: u32, no: i64, claim: i64) -> Self {
        Self { message, run, failed, no, claim }
    }

    /// Its number in the store, and that of its claim.
    #[must_use]
    pub fn numbers(&self) -> (i64, i64) {
        (self.no, self.claim)
    }
}

/// The messages that a caller has claimed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claims {
    /// What to send, in the order in which it became due.
    pub claimed: Vec<Claimed>,
    /// Milliseconds until more is due, unless it becomes due by an attempt that ends or by a new
    /// message; `None` if nothing else waits.
    pub next_ms: Option<u64>,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settlement {
    /// The receiver has the message: it is removed.
    Delivered,
    /// It failed: the message, and those after it to the same receiver about the same run, wait
    /// this many milliseconds.
    Retry {
        /// The wait, from now on.
        after_ms: u64,
        /// Why it failed.
        reason: String,
    },
    /// It failed for the last time: the message is kept, but not sent again until somebody asks
    /// for it ([`Outbox::resend`]).
    GivenUp {
        /// Why it failed.
        reason: String,
    },
}

/// Why an attempt failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptFailure {
    /// When, in milliseconds since 1970.
    pub failed_ms: u64,
    /// Why.
    pub reason: String,
}

/// Which messages of a receiver to list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboxQuery {
    /// The receiver's name.
    pub endpoint: String,
    /// Those that were given up, or those that wait.
    pub is_given_up: bool,
    /// Only those after this number; 0 for the first page.
    pub after: u64,
    /// Most messages of a page.
    pub limit: u32,
}

/// A message in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedMessage {
    /// Its number in the store: where the next page begins.
    pub number: u64,
    /// Its id.
    pub id: String,
    /// The run that it is about.
    pub run: String,
    /// The first [`LISTED_BODY_CHARS`] characters of its body.
    pub body: String,
    /// Number of attempts that failed, since it was last sent again.
    pub failed: u32,
    /// The last of them.
    pub failure: Option<AttemptFailure>,
}

/// Characters of a listed message's body.
pub const LISTED_BODY_CHARS: u32 = 256;

/// The messages to one receiver.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutboxCount {
    /// The receiver's name.
    pub endpoint: String,
    /// Messages that wait, those under way included.
    pub waiting: u64,
    /// Messages that were given up.
    pub given_up: u64,
}

/// The part of a store that holds messages until they are delivered. Messages go with their run
/// when it is removed.
///
/// `now_ms` is the caller's clock, in milliseconds since 1970. A store that several nodes share goes
/// by its server's clock instead.
pub trait Outbox {
    /// Claims messages that are due, at most `limit`, for `lease_ms` milliseconds; until then no
    /// other caller gets them. A message waits until those before it to the same receiver about the
    /// same run are delivered or given up.
    ///
    /// # Errors
    /// Those of the store; messages that were claimed nevertheless are due again after the lease.
    fn claim(
        &self,
        endpoint: &str,
        limit: u32,
        lease_ms: u64,
        now_ms: u64,
    ) -> Result<Claims, JournalError>;

    /// Records how attempts ended, all of them or none. A message that was claimed again since, or
    /// went with its run, stays as it is. Returns the number of the others.
    ///
    /// # Errors
    /// Those of the store; messages that are not settled are due again after their lease.
    fn settle(&self, settled: &[(Claimed, Settlement)], now_ms: u64)
    -> Result<usize, JournalError>;

    /// The messages of a run that wait, oldest first.
    ///
    /// # Errors
    /// Those of the store.
    fn waiting(&self, run: &str) -> Result<Vec<Message>, JournalError>;

    /// A page of messages in the order in which they were written.
    ///
    /// # Errors
    /// Those of the store.
    fn listed(&self, query: &OutboxQuery) -> Result<Vec<ListedMessage>, JournalError>;

    /// The last attempt that failed, over the receiver's messages that are still here.
    ///
    /// # Errors
    /// Those of the store.
    fn last_failure(&self, endpoint: &str) -> Result<Option<AttemptFailure>, JournalError>;

    /// Makes messages to a receiver that were given up due again, as if none of their attempts had
    /// been: all, or those with these ids. Returns their number.
    ///
    /// # Errors
    /// Those of the store.
    fn resend(&self, endpoint: &str, ids: Option<&[String]>) -> Result<u64, JournalError>;

    /// The number of messages to each receiver that has some, by name.
    ///
    /// # Errors
    /// Those of the store.
    fn counts(&self) -> Result<Vec<OutboxCount>, JournalError>;
}
