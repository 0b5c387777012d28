//! The node's commits, one at a time. Each is applied once, however often its answer is lost.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use deadpool_postgres::Object;
use sha2::{Digest as _, Sha256};

use super::batch::{Batch, Known, needed};
use super::bulletin::News;
use super::error_code::Failure;
use super::leases::Leases;
use super::needs::Needs;
use super::session::Session;
use super::statements::{self, Mark};
use prime_journal::compression::Packer;
use prime_journal::lease::{Claim, Epoch, NodeId, Verdict, judge};
use prime_journal::{JournalError, Write};

/// Run numbers in a block; the increment of the sequence `run_no` in `schema.rs`.
const NUMBERS: i64 = 256;

/// A commit whose caller got an error before it was known whether it was applied.
struct InDoubt {
    node: NodeId,
    number: i64,
    /// Digests of its writes.
    writes: HashSet<[u8; 32]>,
    batch: Batch,
}

pub(super) struct Writer {
    packer: Packer,
    /// The node to which `number` and `known` belong.
    node: Option<NodeId>,
    number: i64,
    /// Runs that the node holds, as its last commit left them.
    known: HashMap<String, Known>,
    /// The rest of a block of run numbers.
    numbers: std::ops::Range<i64>,
    in_doubt: Option<InDoubt>,
    /// Digests of the writes of the last commit that was applied although its caller got an error:
    /// the caller repeats them, alone or with others.
    applied: HashSet<[u8; 32]>,
    /// See [`super::PostgresOptions::commits_take`].
    commits_take: bool,
    needs: Option<Arc<dyn Needs>>,
}

fn digest(write: &Write) -> [u8; 32] {
    Sha256::digest(format!("{write:?}")).into()
}

/// The outcome of an attempt.
enum Attempt {
    Applied,
    /// Nothing was applied, for this reason.
    Refused(JournalError),
    /// Nothing was applied: the attempt must be repeated while no other commit accepts runs.
    Crowded,
}

impl Writer {
    pub(super) fn new(
        commits_take: bool,
        needs: Option<Arc<dyn Needs>>,
    ) -> Result<Self, JournalError> {
        let packer =
            Packer::new().map_err(|error| JournalError::NotWritable(format!("zstd: {error}")))?;

        Ok(Self {
            packer,
            node: None,
            number: 0,
            known: HashMap::new(),
            numbers: 0..0,
            in_doubt: None,
            applied: HashSet::new(),
            commits_take,
            needs,
        })
    }

    pub(super) async fn commit(
        &mut self,
        session: &Session,
        leases: &Leases,
        writes: &[Write],
    ) -> Result<(), JournalError> {
        self.settle(session, leases, writes).await?;
        // What was applied before, without the caller's knowledge, must not be applied twice.
        let rest: Vec<Write>;
        let writes = if self.applied.is_empty() {
            writes
        } else {
            rest = writes
                .iter()
                .filter(|write| !self.applied.contains(&digest(write)))
                .cloned()
                .collect();
            &rest
        };

        if writes.is_empty() {
            return Ok(());
        }

        let Some(node) = leases.node().id() else {
            return Err(
                session.unreachable("the node was taken for dead, and has to register again")
            );
        };
        // Another node's numbers and leases mean nothing for this one.
        if self.node != Some(node) {
            (self.node, self.number) = (Some(node), 0);
            self.known.clear();
        }

        let known = self.look_up(session, leases, node, writes).await?;

        let accepts = writes.iter().filter(|write| matches!(write, Write::Accept { .. })).count();
        let mut numbers = self.reserve(session, accepts).await?.into_iter();

        let next_no =
            || numbers.next().expect("invariant: one number is reserved for each new run");
        let terms_of = |spec: &str| match &self.needs {
            Some(needs) => (needs.of(spec), needs.rank_ms(spec)),
            None => (Vec::new(), None),
        };

        let batch = Batch::fold(writes, &known, next_no, &mut self.packer, terms_of)?;

        self.number += 1;
        self.send(session, leases, node, batch, writes).await
    }

    /// Finds out whether the last commit was applied, if that is unknown. A run that it accepted,
    /// and that these writes do not accept again, exists although its client got an error: it is
    /// released, and the node that takes it executes it.
    async fn settle(
        &mut self,
        session: &Session,
        leases: &Leases,
        writes: &[Write],
    ) -> Result<(), JournalError> {
        let Some(InDoubt { node, number, .. }) = self.in_doubt else { return Ok(()) };
        let is_unused = session
            .repeat(async |client: &mut Object| statements::use_up(client, node, number).await)
            .await?;

        let Some(doubtful) = self.in_doubt.take() else { return Ok(()) };
        self.finish(leases, node, &doubtful.batch, !is_unused);

        if is_unused {
            return Ok(());
        }

        self.applied = doubtful.writes;

        let is_accepted_again = |run: &String| {
            writes.iter().any(|write| matches!(write, Write::Accept { row, .. } if row.id == *run))
        };
        for run in accepted(&doubtful.batch).into_iter().filter(|run| !is_accepted_again(run)) {
            leases.node().release(&run);
        }

        leases.this.wake.notify_one();
        Ok(())
    }

    /// Returns what is known of the runs to be written. Takes those that no node holds.
    async fn look_up(
        &mut self,
        session: &Session,
        leases: &Leases,
        node: NodeId,
        writes: &[Write],
    ) -> Result<HashMap<String, Known>, JournalError> {
        let mut found = HashMap::new();
        let mut missing = Vec::new();

        for id in needed(writes) {
            let epoch = leases.node().epoch(&id.to_owned());
            match self.known.get(id) {
                Some(known) if epoch == Some(Epoch(known.epoch)) => {
                    found.insert(id.to_owned(), *known);
                }
                _ => missing.push(id),
            }
        }
        // Runs that the node has already, so that accepting them again is refused.
        for write in writes {
            if let Write::Accept { row, .. } = write
                && let Some(known) = self.known.get(&row.id)
            {
                found.insert(row.id.clone(), *known);
            }
        }

        if missing.is_empty() {
            return Ok(found);
        }

        // Named to the node, so that a heartbeat's answer meanwhile does not release what is taken
        // here.
        leases.node().accepting(missing.iter().map(|id| (*id).to_owned()));
        let looked_up = self.look_up_missing(session, leases, node, &missing).await;
        leases.node().accepted(node, missing.iter().map(|id| (*id).to_owned()), false);

        found.extend(looked_up?);
        Ok(found)
    }

    async fn look_up_missing(
        &mut self,
        session: &Session,
        leases: &Leases,
        node: NodeId,
        missing: &[&str],
    ) -> Result<Vec<(String, Known)>, JournalError> {
        let mut rows = session
            .repeat(async |client: &mut Object| statements::known(client, missing).await)
            .await?;

        let free: Vec<i64> = rows
            .iter()
            .filter(|row| !row.1.is_over && row.2.is_none())
            .map(|row| row.1.no)
            .collect();
        if self.commits_take && !free.is_empty() {
            session
                .repeat(async |client: &mut Object| statements::take(client, node, &free).await)
                .await?;
            // Read again: only now that they are taken can no other node change them.
            rows = session
                .repeat(async |client: &mut Object| statements::known(client, missing).await)
                .await?;
        }

        let mut lost = Vec::new();
        for (id, known, holder) in &rows {
            let mut held = leases.node();
            let is_ours =
                *holder == Some(node) && held.id() == Some(node) && !held.is_releasing(id);

            if known.is_over {
                continue;
            }
            if is_ours {
                held.granted(id.clone(), Epoch(known.epoch));
                self.known.insert(id.clone(), *known);
            } else {
                lost.push(id.clone());
            }
        }

        if lost.is_empty() {
            Ok(rows.into_iter().map(|(id, known, _)| (id, known)).collect())
        } else {
            Err(JournalError::LeaseLost { runs: lost })
        }
    }

    async fn reserve(&mut self, session: &Session, count: usize) -> Result<Vec<i64>, JournalError> {
        let mut numbers: Vec<i64> = self.numbers.by_ref().take(count).collect();

        while numbers.len() < count {
            let first = session
                .repeat(async |client: &mut Object| statements::next_numbers(client).await)
                .await?;

            self.numbers = first..first + NUMBERS;
            let rest = count - numbers.len();
            numbers.extend(self.numbers.by_ref().take(rest));
        }
        Ok(numbers)
    }

    /// Sends the same commit until its fate is known, for the session's patience.
    async fn send(
        &mut self,
        session: &Session,
        leases: &Leases,
        node: NodeId,
        batch: Batch,
        writes: &[Write],
    ) -> Result<(), JournalError> {
        let accepted = accepted(&batch);

        leases.node().accepting(accepted.iter().cloned());

        let (mut attempts, number) = (session.attempts(), self.number);

        // Whether an earlier attempt may have been applied, or may still be.
        let mut is_doubtful = false;
        loop {
            let (most, is_alone) = (leases.room.most(), leases.room.is_crowded());
            let mark = Mark {
                node,
                number,
                most: most.map(|most| i64::try_from(most).unwrap_or(i64::MAX)),
                is_alone,
            };

            let sent = session
                .once(async |client: &mut Object| {
                    let sent = if batch.reviews.is_empty() {
                        statements::commit(client, mark, &batch).await
                    } else {
                        statements::commit_with_reviews(client, mark, &batch).await
                    };
                    match sent {
                        Ok(()) => Ok(Attempt::Applied),
                        Err(Failure::Conflict(reason)) => {
                            explain(client, node, number, &batch, reason).await
                        }
                        Err(Failure::Crowded) => Ok(Attempt::Crowded),
                        // The runs counted may be those of an earlier attempt of this very commit.
                        Err(Failure::Full { .. })
                            if is_doubtful && !statements::use_up(client, node, number).await? =>
                        {
                            Ok(Attempt::Applied)
                        }
                        Err(Failure::Full { open }) => Ok(Attempt::Refused(JournalError::Full {
                            open,
                            most: most.unwrap_or_default(),
                        })),
                        Err(Failure::Final(error @ JournalError::Refused(_))) => {
                            Ok(Attempt::Refused(error))
                        }
                        Err(failure) => Err(failure),
                    }
                })
                .await;

            match sent {
                // At once, and alone: no time is lost, since nothing has failed.
                Ok(Attempt::Crowded) => leases.room.set_crowded(true),
                Ok(Attempt::Applied) => {
                    self.finish(leases, node, &batch, true);
                    return Ok(());
                }
                Ok(Attempt::Refused(error)) => {
                    self.finish(leases, node, &batch, false);
                    match &error {
                        JournalError::LeaseLost { runs } => self.forget(leases, &batch, runs),
                        JournalError::Full { open, .. } => leases.count_open(*open),
                        _ => {}
                    }
                    return Err(error);
                }
                Err(failure) if failure.is_passing() && attempts.pause().await => {
                    is_doubtful = true;
                }
                Err(failure) => {
                    let error = failure.into_error(&session.database);
                    self.in_doubt = Some(InDoubt {
                        node,
                        number,
                        writes: writes.iter().map(digest).collect(),
                        batch,
                    });
                    return Err(error);
                }
            }
        }
    }

    /// Updates what is known of runs after a commit was applied, or was certainly not.
    fn finish(&mut self, leases: &Leases, node: NodeId, batch: &Batch, is_applied: bool) {
        let mut held = leases.node();

        held.accepted(node, accepted(batch), is_applied);
        if !is_applied {
            return;
        }

        for (id, draft) in &batch.drafts {
            if draft.after.is_over {
                held.finished(id);
                self.known.remove(id);
            } else {
                self.known.insert(id.clone(), draft.after);
            }
        }
        drop(held);

        leases.tell(batch.drafts.keys().map(|run| News::Changed(run.clone())));
    }

    /// Forgets runs that other nodes hold now.
    fn forget(&mut self, leases: &Leases, batch: &Batch, runs: &[String]) {
        for run in runs {
            self.known.remove(run);
            let epoch = batch
                .drafts
                .get(run)
                .and_then(|draft| draft.before)
                .map(|before| Epoch(before.epoch));

            if let Some(epoch) = epoch {
                let effects = leases.node().lost(run, epoch);
                leases.this.announce(effects);
            }
        }
    }
}

fn accepted(batch: &Batch) -> Vec<String> {
    let accepted = batch.drafts.iter().filter(|(_, draft)| draft.before.is_none());
    accepted.map(|(id, _)| id.clone()).collect()
}

/// Finds out why the store refused an attempt: an earlier one may have been applied.
async fn explain(
    client: &Object,
    node: NodeId,
    number: i64,
    batch: &Batch,
    reason: String,
) -> Result<Attempt, Failure> {
    let stored = statements::last_commit(client, node).await?;

    let claims = batch.claims();
    let ids: Vec<&str> = claims.iter().map(|claim| claim.run.as_str()).collect();
    let known = statements::known(client, &ids).await?;

    // No node holds a run that is over, so there is no lease to judge.
    let is_over = |claim: &Claim<String>| {
        batch.drafts[&claim.run].before.is_some_and(|before| before.is_over)
    };
    let (over, held): (Vec<_>, Vec<_>) = claims.into_iter().partition(is_over);

    let ids: Vec<String> = held.iter().map(|claim| claim.run.clone()).collect();
    let found = statements::found(&ids, &known);
    let number = u64::try_from(number).unwrap_or_default();

    let refused = |reason| Ok(Attempt::Refused(JournalError::Refused(reason)));
    match judge(node, number, stored, &held, &found) {
        Verdict::Committed => Ok(Attempt::Applied),
        Verdict::Forgotten => Ok(Attempt::Refused(JournalError::NotWritable(
            "the node was taken for dead, and has to register again".to_owned(),
        ))),
        Verdict::StoreLostEvents(run) => {
            let reason = format!(
                "run {run:?} has lost events that were confirmed: was the database restored from a backup?"
            );
            Err(Failure::Final(JournalError::Damaged(reason)))
        }
        Verdict::Refused { lost, .. } if !lost.is_empty() => {
            Ok(Attempt::Refused(JournalError::LeaseLost { runs: lost }))
        }
        Verdict::Refused { .. } => match statements::obstacle(client, batch).await? {
            Some(obstacle) => refused(obstacle),
            None if !over.is_empty() => {
                refused(format!("run {:?} is over, and has changed since", over[0].run))
            }
            None => refused(reason),
        },
    }
}
