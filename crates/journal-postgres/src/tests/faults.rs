//! What other sessions and operators do to a server under way: accepted runs wait and go on.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use super::nodes::PATIENCE;
use super::open;
use super::server::{Schema, psql};
use crate::{PostgresJournal, PostgresOptions};
use prime_journal::conformance::{accept, append, events, row};
use prime_journal::lease::Timing;
use prime_journal::{Journal, JournalError, Write, verify};

/// Repeats a look at the server until it shows what is awaited.
#[expect(clippy::disallowed_methods, reason = "a limit that only a failure reaches")]
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = std::time::Instant::now();
    while !is_so() {
        assert!(started.elapsed() < PATIENCE, "never: {what}");
    }
}

/// Another session of the administrator, which keeps what it has locked.
struct Session {
    _psql: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Session {
    fn start(schema: &Schema) -> Self {
        let mut psql = psql(true).spawn().unwrap();
        let (input, output) = (psql.stdin.take().unwrap(), psql.stdout.take().unwrap());
        let mut session = Self { _psql: psql, input, output: BufReader::new(output) };
        session.execute(&format!("SET search_path = {}", schema.name));
        session
    }

    /// Sends statements without waiting for them.
    fn send(&mut self, statements: &str) {
        writeln!(self.input, "{statements};\n\\echo done").unwrap();
        self.input.flush().unwrap();
    }

    /// Waits for what was sent. Returns what it printed.
    fn done(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            assert_ne!(self.output.read_line(&mut line).unwrap(), 0, "psql has ended: {lines:?}");
            if line == "done\n" {
                return lines;
            }
            lines.push(line.trim_end().to_owned());
        }
    }

    fn execute(&mut self, statements: &str) -> Vec<String> {
        self.send(statements);
        self.done()
    }
}

/// A journal whose connections have these settings, and no heartbeats that would count as attempts.
fn with_settings(schema: &Schema, settings: &str, patience: Duration) -> PostgresJournal {
    let timing = Timing { lease_ms: 36_000_000, heartbeat_ms: 3_600_000 };
    let options = PostgresOptions { timing, patience, ..PostgresOptions::default() };
    PostgresJournal::open(&format!("{}{settings}", schema.url()), options).unwrap()
}

/// Checks that the run has this many events, each once and in a whole chain.
fn assert_events(journal: &PostgresJournal, id: &str, count: u64) {
    let segments = journal.segments(id, 0, usize::MAX).unwrap();
    let head = verify(id, &row(id).spec, segments).unwrap();
    assert_eq!((head.seq, head), (count, journal.run(id).unwrap().unwrap().head));
}

#[test]
fn a_lock_that_lasts_delays_a_commit() {
    for (setting, code) in [("lock_timeout", "55P03"), ("statement_timeout", "57014")] {
        let schema = Schema::new();
        // Creates the tables, which takes longer.
        drop(open(&schema));
        let setting = format!("%20-c{setting}%3D300");
        let journal = with_settings(&schema, &setting, PATIENCE);
        journal.commit(&[accept("r")]).unwrap();
        let first = events(row("r").head, 2);

        let mut other = Session::start(&schema);
        other.execute("BEGIN; LOCK TABLE head IN SHARE ROW EXCLUSIVE MODE");

        // One without patience says why it waits, and that nothing is lost.
        let hasty = with_settings(&schema, &setting, Duration::ZERO);
        let error = hasty.commit(&[accept("s")]).unwrap_err();
        assert!(
            matches!(&error, JournalError::NotWritable(reason) if reason.contains(code)),
            "{error:?}"
        );

        std::thread::scope(|scope| {
            let committed = scope.spawn(|| journal.commit(&[append("r", &first)]));

            // Three attempts, each of which began to wait at another time.
            let waiting = format!(
                "SELECT query_start FROM pg_stat_activity WHERE application_name = '{}'
                    AND wait_event_type = 'Lock'",
                schema.name
            );
            let mut attempts = std::collections::BTreeSet::new();
            until("three attempts", || {
                attempts.extend(schema.sql(&waiting));
                attempts.len() >= 3
            });

            other.execute("COMMIT");
            committed.join().unwrap().unwrap();
        });

        assert_events(&journal, "r", 2);
        hasty.commit(&[accept("s")]).unwrap();
        assert_eq!(journal.run("s").unwrap(), Some(row("s")));
    }
}

#[test]
fn sessions_that_are_ended_or_cancelled_cost_no_commit() {
    for function in ["pg_terminate_backend", "pg_cancel_backend"] {
        let schema = Schema::new();
        let journal = open(&schema);
        journal.commit(&[accept("r")]).unwrap();

        let hit = format!(
            "SELECT {function}(pid) FROM pg_stat_activity WHERE application_name = '{}'
                AND state = 'active'",
            schema.name
        );
        let (done, is_over) = (AtomicU64::new(0), AtomicBool::new(false));

        let (commits, hits) = std::thread::scope(|scope| {
            let disturbed = scope.spawn(|| {
                let mut other = Session::start(&schema);
                let (mut hits, mut seen) = (0, None);
                until("the commits are done", || {
                    // Once a commit: more would never let one pass.
                    let commit = done.load(Ordering::SeqCst);
                    if seen != Some(commit) && other.execute(&hit).iter().any(|hit| hit == "t") {
                        (hits, seen) = (hits + 1, Some(commit));
                    }
                    is_over.load(Ordering::SeqCst)
                });
                hits
            });

            let mut head = row("r").head;
            for _ in 0..100 {
                let next = events(head, 1);
                journal.commit(&[append("r", &next)]).unwrap();
                head = next.head();
                done.store(head.seq, Ordering::SeqCst);
            }
            is_over.store(true, Ordering::SeqCst);
            (head.seq, disturbed.join().unwrap())
        });

        assert!(hits > 0, "{function} has hit nothing");
        assert_events(&journal, "r", commits);
    }
}

#[test]
fn a_deadlock_delays_a_commit() {
    let schema = Schema::new();
    let journal = with_settings(&schema, "", PATIENCE);
    journal.commit(&[accept("r")]).unwrap();
    let first = events(row("r").head, 1);

    // It has the run's head. It does not look for deadlocks itself, so that the commit has to give
    // way.
    let mut other = Session::start(&schema);
    other.execute("SET deadlock_timeout = '1h'; BEGIN; UPDATE head SET holder = holder");

    std::thread::scope(|scope| {
        let committed = scope.spawn(|| journal.commit(&[append("r", &first)]));

        // The commit has the node's row, and waits for the head.
        let waiting = format!(
            "SELECT pid FROM pg_stat_activity WHERE application_name = '{}'
                AND wait_event_type = 'Lock'",
            schema.name
        );
        until("the commit waits", || !schema.sql(&waiting).is_empty());

        // This can only end because the commit's attempt does: the head stays locked.
        other.execute("UPDATE node SET probes = probes");
        other.execute("COMMIT");
        committed.join().unwrap().unwrap();
    });

    assert_events(&journal, "r", 1);
}

/// Errors that pass, as a trigger raises them: no attempt is the last before they have passed.
#[test]
fn whatever_passes_delays_a_commit() {
    let schema = Schema::new();
    let journal = with_settings(&schema, "", PATIENCE);
    journal.commit(&[accept("r")]).unwrap();

    // A sequence counts attempts, since nothing takes its numbers back.
    schema.sql(
        "CREATE TABLE fault (code text); CREATE SEQUENCE attempts;
        CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF EXISTS (SELECT FROM fault) THEN
                PERFORM nextval('attempts');
                RAISE EXCEPTION 'it passes' USING ERRCODE = (SELECT code FROM fault);
            END IF;
            RETURN NEW;
        END $$; CREATE TRIGGER fail BEFORE INSERT ON segment EXECUTE FUNCTION fail()",
    );

    let mut head = row("r").head;
    for code in ["40001", "40P01", "25006", "25P03", "53200", "53300", "55006", "57P01", "XX000"] {
        schema.sql(&format!("INSERT INTO fault VALUES ('{code}'); SELECT setval('attempts', 1)"));
        let next = events(head, 1);

        std::thread::scope(|scope| {
            let committed = scope.spawn(|| journal.commit(&[append("r", &next)]));
            until(code, || schema.sql("SELECT last_value > 3 FROM attempts") == ["t"]);
            schema.sql("DELETE FROM fault");
            committed.join().unwrap().unwrap();
        });
        head = next.head();
    }

    assert_events(&journal, "r", head.seq);
}

/// What somebody has to repair is not damage, and a commit that waits for it is applied once.
#[test]
fn what_has_to_be_mended_keeps_a_commit_waiting() {
    let schema = Schema::new();
    let journal = with_settings(&schema, "", Duration::ZERO);
    journal.commit(&[accept("r")]).unwrap();
    let first = events(row("r").head, 1);
    let writes: Vec<Write> = vec![append("r", &first), accept("s")];

    for (harm, repair, part) in [
        (
            "ALTER TABLE segment RENAME TO away",
            "ALTER TABLE away RENAME TO segment",
            "check the search_path",
        ),
        (
            "CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no'; END $$;
            CREATE TRIGGER no BEFORE INSERT ON segment EXECUTE FUNCTION no()",
            "DROP TRIGGER no ON segment",
            "a trigger or rule that is not this program's",
        ),
    ] {
        schema.sql(harm);
        let error = journal.commit(&writes).unwrap_err();
        assert!(
            matches!(&error, JournalError::NotWritable(reason) if reason.contains(part)),
            "{error:?}"
        );
        schema.sql(repair);
    }

    journal.commit(&writes).unwrap();
    assert_events(&journal, "r", 1);
    assert_eq!(journal.run("s").unwrap(), Some(row("s")));
}

#[test]
fn a_probe_fails_whenever_a_commit_would() {
    let schema = Schema::new();
    let journal = open(&schema);
    let new = |id: &str| vec![accept(id), append(id, &events(row(id).head, 1))];
    journal.commit(&new("r")).unwrap();
    journal.probe().unwrap();

    for table in ["head", "run", "segment", "idempotency_key", "snapshot", "flag", "review"] {
        schema.sql(&format!("ALTER TABLE {table} RENAME TO {table}_x"));
        let error = journal.probe().unwrap_err();
        assert!(error.to_string().contains(table), "{table}: {error}");
        schema.sql(&format!("ALTER TABLE {table}_x RENAME TO {table}"));

        journal.probe().unwrap();
        journal.commit(&new(&format!("after {table}"))).unwrap();
    }

    // What a probe writes is taken back.
    assert_eq!(schema.sql("SELECT count(*) FROM run"), ["8"]);
    assert_eq!(schema.sql("SELECT count(*) FROM head"), ["8"]);
}
