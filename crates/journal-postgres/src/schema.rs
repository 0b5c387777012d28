//! The tables. They are created in the first schema of the connection's `search_path`.

use tokio_postgres::Transaction;

use super::error_code::Failure;
use prime_journal::JournalError;

/// The version of the schema. Databases of any other version are refused.
const VERSION: i64 = 1;

/// `head` is what every commit changes, so its rows are narrow, there is room for new versions
/// beside old ones, and appends change no indexed column. Numbers of runs are never reused, because
/// events of a removed run stay for a while. Times are the programs' and order listings; leases use
/// the server's own clock only. Text is ordered by bytes, as in other stores.
///
/// `head.created_ms` is the time by which nodes take runs: that of the acceptance, or an earlier one
/// if a run has a priority ([`Needs::rank_ms`](super::Needs::rank_ms)).
///
/// `head.is_open` is false for runs that are over, and for those that are parked until a step is
/// approved (`approvals.rs`).
///
/// `run.needs` is what a run needs from its node, `node.agents` what of that a node has. A
/// cancellation stays until its run is over: its node may die first.
///
/// A commit that accepts runs calls `admit` before it changes anything. The advisory lock, which
/// the commit holds to its end, makes the limit on open runs exact: a commit that has it alone
/// counts what all others have committed. That costs waiting for others' disks, so far from the
/// limit the lock is shared. There each node may have one commit that others do not see yet, of at
/// most `share` runs; the one that counted last still leaves room for all of these.
const SCHEMA: &str = r#"
    CREATE TABLE meta (name text PRIMARY KEY, value bigint NOT NULL);

    CREATE TABLE node (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        name text NOT NULL,
        version text NOT NULL,
        started timestamptz NOT NULL DEFAULT clock_timestamp(),
        expires timestamptz NOT NULL,
        beat timestamptz NOT NULL,
        is_dead boolean NOT NULL DEFAULT false,
        commits bigint NOT NULL DEFAULT 0,
        probes bigint NOT NULL DEFAULT 0,
        capacity bigint NOT NULL,
        agents text[] COLLATE "C" NOT NULL DEFAULT '{}'
    ) WITH (fillfactor = 50);

    CREATE SEQUENCE run_no INCREMENT 256;

    CREATE TABLE run (
        no bigint PRIMARY KEY,
        id text COLLATE "C" NOT NULL UNIQUE,
        owner text COLLATE "C" NOT NULL,
        created_ms bigint NOT NULL,
        updated_ms bigint NOT NULL,
        task text COLLATE "C" NOT NULL,
        status text COLLATE "C" NOT NULL,
        is_over boolean NOT NULL,
        resumed bigint NOT NULL,
        spec text COLLATE "C" NOT NULL,
        summary text COLLATE "C" NOT NULL,
        split text COLLATE "C",
        needs text[] COLLATE "C" NOT NULL
    );
    CREATE INDEX run_by_created ON run (created_ms, id);
    CREATE INDEX run_by_owner ON run (owner, created_ms, id);
    CREATE INDEX run_by_status ON run (status, created_ms, id);
    CREATE INDEX run_by_task ON run (task, created_ms, id);
    CREATE INDEX run_open ON run (created_ms, id) WHERE NOT is_over;
    CREATE INDEX run_ended ON run (updated_ms, no) WHERE is_over;
    CREATE INDEX run_ended_of_owner ON run (owner, updated_ms, no) WHERE is_over;
    CREATE INDEX run_in_split ON run (created_ms, id) WHERE split IS NOT NULL;

    CREATE TABLE head (
        run bigint PRIMARY KEY,
        created_ms bigint NOT NULL,
        epoch bigint NOT NULL,
        holder bigint,
        is_open boolean NOT NULL,
        last_seq bigint NOT NULL,
        hash bytea NOT NULL CHECK (octet_length(hash) = 32),
        bytes bigint NOT NULL,
        snapshot_bytes bigint NOT NULL
    ) WITH (fillfactor = 50);
    CREATE INDEX head_free ON head (created_ms, run) WHERE is_open AND holder IS NULL;
    CREATE INDEX head_held ON head (holder) WHERE holder IS NOT NULL;

    CREATE TABLE segment (
        run bigint NOT NULL,
        first_seq bigint NOT NULL,
        count bigint NOT NULL,
        epoch bigint NOT NULL,
        hash bytea NOT NULL CHECK (octet_length(hash) = 32),
        packing smallint NOT NULL,
        bytes bigint NOT NULL,
        body bytea NOT NULL,
        PRIMARY KEY (run, first_seq)
    );
    ALTER TABLE segment ALTER COLUMN body SET STORAGE EXTERNAL;

    CREATE TABLE snapshot (
        run bigint PRIMARY KEY,
        seq bigint NOT NULL,
        packing smallint NOT NULL,
        bytes bigint NOT NULL,
        body bytea NOT NULL
    );
    ALTER TABLE snapshot ALTER COLUMN body SET STORAGE EXTERNAL;

    CREATE TABLE idempotency_key (
        owner text COLLATE "C" NOT NULL,
        key text COLLATE "C" NOT NULL,
        fingerprint bytea NOT NULL CHECK (octet_length(fingerprint) = 32),
        run bigint NOT NULL,
        run_id text COLLATE "C" NOT NULL,
        until_ms bigint,
        PRIMARY KEY (owner, key)
    );
    CREATE INDEX idempotency_key_of_run ON idempotency_key (run);
    CREATE INDEX idempotency_key_by_end ON idempotency_key (until_ms) WHERE until_ms IS NOT NULL;

    CREATE TABLE flag (
        run bigint NOT NULL,
        seq bigint NOT NULL,
        is_reviewed boolean NOT NULL DEFAULT false,
        is_rejected boolean NOT NULL DEFAULT false,
        PRIMARY KEY (run, seq)
    );
    CREATE INDEX flag_open ON flag (run) WHERE NOT is_reviewed;

    CREATE TABLE review (
        no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        run bigint NOT NULL,
        seq bigint NOT NULL,
        at_ms bigint NOT NULL,
        reviewer text COLLATE "C" NOT NULL,
        is_rejected boolean NOT NULL,
        note text COLLATE "C" NOT NULL
    );
    CREATE INDEX review_of_flag ON review (run, seq, no);

    CREATE TABLE removing (run bigint PRIMARY KEY);

    CREATE TABLE cancellation (run bigint PRIMARY KEY);

    CREATE FUNCTION refuse_unless(is_right boolean) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
    BEGIN
        IF is_right IS NOT TRUE THEN
            RAISE EXCEPTION 'the commit does not match the leases' USING ERRCODE = 'PR001';
        END IF;
        RETURN true;
    END $$;

    CREATE FUNCTION open_runs() RETURNS bigint LANGUAGE sql VOLATILE AS $$
        SELECT (SELECT count(*) FROM head WHERE is_open AND holder IS NULL)
            + (SELECT count(*) FROM head WHERE holder IS NOT NULL)
    $$;

    CREATE FUNCTION admit(accepted bigint, ended bigint, most bigint, is_alone boolean) RETURNS boolean
    LANGUAGE plpgsql VOLATILE AS $$
    DECLARE
        name bigint := hashtext('prime-agents open runs ' || coalesce(current_schema(), ''));
        share bigint := greatest(1, most / 16);
        found bigint;
    BEGIN
        IF is_alone THEN
            PERFORM pg_advisory_xact_lock(name);
        ELSE
            PERFORM pg_advisory_xact_lock_shared(name);
        END IF;
        -- Sees what was committed until now, later than the statement that calls.
        SELECT open_runs() INTO found;
        IF found + accepted - ended > most THEN
            RAISE EXCEPTION 'too many runs are open' USING ERRCODE = 'PR002', DETAIL = found::text;
        END IF;
        IF NOT is_alone AND (accepted > share OR found + share * (SELECT count(*) FROM node) > most) THEN
            RAISE EXCEPTION 'close to the limit, the count needs the lock alone' USING ERRCODE = 'PR003';
        END IF;
        RETURN true;
    END $$;
"#;

/// Creates the tables, unless they exist. Other nodes that start wait.
///
/// # Errors
/// `Database` if the tables are another program's, or have another version.
pub(super) async fn create(transaction: &Transaction<'_>, database: &str) -> Result<(), Failure> {
    let refused = |reason: String| {
        Failure::Final(JournalError::Database { database: database.to_owned(), reason })
    };

    // A lock of the transaction: one of the session would stay with a connection of the pool.
    let lock = "SELECT pg_advisory_xact_lock(hashtext('prime-agents journal ' || coalesce(current_schema(), '')))";
    transaction.execute(lock, &[]).await?;

    let row = transaction
        .query_one("SELECT current_schema(), to_regclass('meta') IS NOT NULL", &[])
        .await?;
    let Some(schema) = row.get::<_, Option<String>>(0) else {
        return Err(refused(
            "no schema of its search_path exists: create one, or name another in the URL"
                .to_owned(),
        ));
    };

    if !row.get::<_, bool>(1) {
        transaction.batch_execute(SCHEMA).await?;
        transaction.batch_execute(super::uploads::SCHEMA).await?;
        super::search::create_missing(transaction).await?;
        super::labels::create_missing(transaction).await?;
        super::outbox::create_missing(transaction).await?;
        super::schedule_marks::create_missing(transaction).await?;
        super::approvals::create_missing(transaction).await?;
        super::assignees::create_missing(transaction).await?;
        transaction.execute("INSERT INTO meta VALUES ('version', $1)", &[&VERSION]).await?;
        return Ok(());
    }

    // A table `meta` without these columns is another program's.
    let found = transaction.query_opt("SELECT value FROM meta WHERE name = 'version'", &[]).await;
    let found = found.map_err(|_| refused(foreign(&schema)))?;
    let version: i64 = found.ok_or_else(|| refused(foreign(&schema)))?.get(0);
    if version != VERSION {
        return Err(refused(format!(
            "its schema has version {version}, but this program reads only version {VERSION}; it \
             was left unchanged: start with a new schema or database (no other version was ever \
             released)"
        )));
    }

    // What earlier programs did not have.
    let sql = "SELECT to_regclass('task_version') IS NOT NULL";
    if !transaction.query_one(sql, &[]).await?.get::<_, bool>(0) {
        transaction.batch_execute(super::uploads::SCHEMA).await?;
    }
    super::search::create_missing(transaction).await?;
    super::labels::create_missing(transaction).await?;
    super::outbox::create_missing(transaction).await?;
    super::schedule_marks::create_missing(transaction).await?;
    super::approvals::create_missing(transaction).await?;
    super::assignees::create_missing(transaction).await
}

fn foreign(schema: &str) -> String {
    format!(
        "the tables in the schema {schema:?} are another program's, and were left unchanged: name another schema in the \
         URL with ?options=-csearch_path%3DNAME"
    )
}

/// Refuses a server that would forget what it confirmed.
pub(super) async fn check_durability(
    transaction: &Transaction<'_>,
    database: &str,
) -> Result<(), Failure> {
    let sql = "SELECT name FROM pg_settings
        WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit') AND setting = 'off' ORDER BY name";
    let off: Vec<String> =
        transaction.query(sql, &[]).await?.iter().map(|row| row.get(0)).collect();

    if off.is_empty() {
        return Ok(());
    }

    let reason = format!(
        "the server has {} off, so it may lose what it confirmed: turn it on in postgresql.conf",
        off.join(" and ")
    );
    Err(Failure::Final(JournalError::Database { database: database.to_owned(), reason }))
}
