//! The parts of the store beside the runs, each by the statements of its own module.

use std::collections::BTreeMap;

use deadpool_postgres::Object;

use super::{
    PostgresJournal, approvals, labels, outbox, overview, schedule_marks, search, uploads,
};
use prime_journal::compression::Packer;
use prime_journal::{
    ApprovalQuery, ApprovalRow, Approvals, AttemptFailure, Claimed, Claims, Decided, JournalError,
    ListedMessage, Message, NewApproval, Outbox, OutboxCount, OutboxQuery, RunLabels,
    ScheduleMarks, SearchEntry, SearchIndex, SearchPage, SearchQuery, Settlement, Stored,
    TaskVersion, Totals, Unnoted, UploadLimits, Uploads,
};

impl Outbox for PostgresJournal {
    fn claim(
        &self,
        endpoint: &str,
        limit: u32,
        lease_ms: u64,
        _now_ms: u64,
    ) -> Result<Claims, JournalError> {
        self.session
            .run(async |client: &mut Object| outbox::claim(client, endpoint, limit, lease_ms).await)
    }

    fn settle(
        &self,
        settled: &[(Claimed, Settlement)],
        _now_ms: u64,
    ) -> Result<usize, JournalError> {
        self.session.run(async |client: &mut Object| outbox::settle(client, settled).await)
    }

    fn waiting(&self, run: &str) -> Result<Vec<Message>, JournalError> {
        self.session.run(async |client: &mut Object| outbox::waiting(client, run).await)
    }

    fn listed(&self, query: &OutboxQuery) -> Result<Vec<ListedMessage>, JournalError> {
        self.session.run(async |client: &mut Object| outbox::listed(client, query).await)
    }

    fn last_failure(&self, endpoint: &str) -> Result<Option<AttemptFailure>, JournalError> {
        self.session.run(async |client: &mut Object| outbox::last_failure(client, endpoint).await)
    }

    fn resend(&self, endpoint: &str, ids: Option<&[String]>) -> Result<u64, JournalError> {
        self.session.run(async |client: &mut Object| outbox::resend(client, endpoint, ids).await)
    }

    fn counts(&self) -> Result<Vec<OutboxCount>, JournalError> {
        self.session.run(async |client: &mut Object| outbox::counts(client).await)
    }
}

impl ScheduleMarks for PostgresJournal {
    fn mark(&self, schedule: &str) -> Result<Option<u64>, JournalError> {
        self.session.run(async |client: &mut Object| schedule_marks::mark(client, schedule).await)
    }

    fn set_mark(&self, schedule: &str, done_ms: u64) -> Result<(), JournalError> {
        self.session.run(async |client: &mut Object| {
            schedule_marks::set_mark(client, schedule, done_ms).await
        })
    }
}

impl Approvals for PostgresJournal {
    fn hold(&self, run: &str, waiting: &[NewApproval], _now_ms: u64) -> Result<(), JournalError> {
        let node = self.node();
        self.session
            .run(async |client: &mut Object| approvals::hold(client, node, run, waiting).await)
    }

    fn park(&self, run: &str, numbers: &[u32]) -> Result<bool, JournalError> {
        let Some(node) = self.node() else { return Ok(true) };
        // Before the database says so: a lease that this node is granted afterwards is a new one.
        self.leases.node().finished(&run.to_owned());
        let is_free = self
            .session
            .run(async |client: &mut Object| approvals::park(client, node, run, numbers).await)?;
        if is_free {
            self.tell_of_free_run();
        }
        Ok(true)
    }

    fn decide(&self, run: &str, number: u32, decision: &str) -> Result<Decided, JournalError> {
        let (decided, is_free) = self.session.run(async |client: &mut Object| {
            approvals::decide(client, run, number, decision).await
        })?;
        if is_free {
            self.tell_of_free_run();
        }
        Ok(decided)
    }

    fn of_run(&self, run: &str) -> Result<Vec<ApprovalRow>, JournalError> {
        self.session.run(async |client: &mut Object| approvals::of_run(client, run).await)
    }

    fn waiting(&self, query: &ApprovalQuery) -> Result<Vec<ApprovalRow>, JournalError> {
        self.session.run(async |client: &mut Object| approvals::waiting(client, query).await)
    }

    fn parked_runs(&self, owner: &str, most: u32) -> Result<u32, JournalError> {
        self.session
            .run(async |client: &mut Object| approvals::parked_runs(client, owner, most).await)
    }

    fn due(
        &self,
        _now_ms: u64,
        limit: u32,
    ) -> Result<(Vec<ApprovalRow>, Option<u64>), JournalError> {
        self.session.run(async |client: &mut Object| approvals::due(client, limit).await)
    }
}

impl RunLabels for PostgresJournal {
    fn relabel(&self, run: &str, labels: &str) -> Result<(), JournalError> {
        self.session.run(async |client: &mut Object| labels::relabel(client, run, labels).await)
    }

    fn relabel_if(
        &self,
        run: &str,
        before: Option<&str>,
        labels: &str,
    ) -> Result<bool, JournalError> {
        self.session
            .run(async |client: &mut Object| labels::relabel_if(client, run, before, labels).await)
    }

    fn relabelled(&self, runs: &[String]) -> Result<BTreeMap<String, String>, JournalError> {
        self.session.run(async |client: &mut Object| labels::relabelled(client, runs).await)
    }
}

impl SearchIndex for PostgresJournal {
    fn note(&self, entries: &[SearchEntry]) -> Result<(), JournalError> {
        self.session.run(async |client: &mut Object| search::note(client, entries).await)
    }

    fn unnoted(&self, after: Option<i64>, limit: u32) -> Result<Unnoted, JournalError> {
        self.session.run(async |client: &mut Object| search::unnoted(client, after, limit).await)
    }

    fn find(&self, query: &SearchQuery) -> Result<SearchPage, JournalError> {
        self.session.run(async |client: &mut Object| search::find(client, query).await)
    }

    fn totals(&self, query: &SearchQuery) -> Result<Totals, JournalError> {
        self.session.run(async |client: &mut Object| overview::totals(client, query).await)
    }
}

impl Uploads for PostgresJournal {
    fn store(
        &self,
        version: &TaskVersion,
        module: &[u8],
        limits: &UploadLimits,
    ) -> Result<Stored, JournalError> {
        let mut packer =
            Packer::new().map_err(|error| JournalError::NotWritable(format!("zstd: {error}")))?;
        let packed = packer.pack(module)?;
        self.session.run(async |client: &mut Object| {
            uploads::store(client, version, &packed, module.len() as u64, limits).await
        })
    }

    fn release(&self, owner: &str, name: &str, now_ms: u64) -> Result<bool, JournalError> {
        self.session
            .run(async |client: &mut Object| uploads::release(client, owner, name, now_ms).await)
    }

    fn versions(&self, owner: Option<&str>) -> Result<Vec<TaskVersion>, JournalError> {
        self.session.run(async |client: &mut Object| uploads::versions(client, owner).await)
    }

    fn current(&self, owner: &str, name: &str) -> Result<Option<String>, JournalError> {
        self.session.run(async |client: &mut Object| uploads::current(client, owner, name).await)
    }

    fn module(&self, digest: &str) -> Result<Option<Vec<u8>>, JournalError> {
        self.session.run(async |client: &mut Object| uploads::module(client, digest).await)
    }

    fn collect_versions(&self, released_before_ms: u64) -> Result<u64, JournalError> {
        self.session
            .run(async |client: &mut Object| uploads::collect(client, released_before_ms).await)
    }
}
