//! Servers that cannot be used as they are.

use std::time::Duration;

use super::server::{Schema, server, sql};
use crate::{PostgresJournal, PostgresOptions};
use prime_journal::conformance::{accept, append, events, row};
use prime_journal::{Journal, JournalError};

fn error(url: &str) -> String {
    let error =
        PostgresJournal::open(url, PostgresOptions::default()).err().expect("it is refused");

    assert!(matches!(error, JournalError::Database { .. }), "{error:?}");

    let shown = error.to_string();
    assert!(
        shown.starts_with("journal.url = postgres://") && !shown.contains("topsecret"),
        "{shown}"
    );
    shown
}

/// Creates a role that may log in over TCP, with these rights on the schema.
fn role(schema: &Schema, rights: &str) -> String {
    let name = format!("role_{}", schema.name);
    sql(&format!("CREATE ROLE {name} LOGIN PASSWORD 'topsecret'"));
    if !rights.is_empty() {
        sql(&format!("GRANT {rights} ON SCHEMA {} TO {name}", schema.name));
    }
    name
}

fn tcp(schema: &Schema, role: &str, password: &str, host: &str, rest: &str) -> String {
    let (port, name) = (server().port, &schema.name);
    format!(
        "postgres://{role}:{password}@{host}:{port}/postgres?options=-csearch_path%3D{name}&{rest}"
    )
}

#[test]
fn unusable_servers_are_explained() {
    let schema = Schema::new();
    let poor = role(&schema, "USAGE");

    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let cases = [
        (format!("postgres://ada:topsecret@127.0.0.1:{port}/prime"), "refused"),
        (tcp(&schema, &poor, "topsecret-not", "localhost", ""), "password authentication failed"),
        (tcp(&schema, &poor, "topsecret", "localhost", ""), "permission denied for schema"),
        (schema.url().replace("/postgres?", "/nowhere?"), "\"nowhere\" does not exist"),
        (schema.url().replace("%3Dt", "%3Dnowhere"), "no schema of its search_path exists"),
    ];

    for (url, part) in cases {
        let shown = error(&url);
        assert!(shown.contains(part), "{part:?} is missing in {shown:?}");
    }
}

#[test]
fn other_schemas_are_left_alone() {
    for version in [0, 2, 99] {
        let other = Schema::new();
        other.sql(&format!(
            "CREATE TABLE meta (name text, value bigint); INSERT INTO meta VALUES ('version', {version})"
        ));

        let shown = error(&other.url());
        for part in [
            &format!("its schema has version {version}, but this program reads only version 1")[..],
            "left unchanged: start with a new schema or database",
        ] {
            assert!(shown.contains(part), "{part:?} is missing in {shown:?}");
        }
        let tables = format!("SELECT count(*) FROM pg_tables WHERE schemaname = '{}'", other.name);
        assert_eq!(other.sql(&tables), ["1"]);
    }

    let foreign = Schema::new();
    foreign.sql("CREATE TABLE meta (colour text)");
    assert!(error(&foreign.url()).contains("another program's, and were left unchanged"));

    assert_eq!(
        foreign
            .sql(&format!("SELECT count(*) FROM pg_tables WHERE schemaname = '{}'", foreign.name)),
        ["1"]
    );
}

#[test]
fn certificates_are_checked_as_far_as_asked() {
    let schema = Schema::new();
    let role = role(&schema, "USAGE, CREATE");
    let ca = server().folder.join("ca.crt").display().to_string();

    let open = |host: &str, rest: &str| {
        let url = tcp(&schema, &role, "topsecret", host, rest);
        PostgresJournal::open(&url, PostgresOptions::default())
            .map(drop)
            .map_err(|error| error.to_string())
    };

    let with_ca = |mode: &str| format!("sslmode={mode}&sslrootcert={ca}");
    for (host, rest) in [
        ("localhost", "sslmode=require".to_owned()),
        ("localhost", "sslmode=disable".to_owned()),
        ("localhost", with_ca("verify-full")),
        ("127.0.0.1", with_ca("verify-ca")),
    ] {
        assert_eq!(open(host, &rest), Ok(()), "{host} {rest}");
    }

    let error = open("127.0.0.1", &with_ca("verify-full")).unwrap_err();
    assert!(error.contains("not valid for name"), "{error}");

    let unrelated = tempfile::NamedTempFile::new().unwrap();
    let made = std::process::Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-keyout",
            "/dev/null",
        ])
        .args(["-subj", "/CN=other", "-days", "2", "-out"])
        .arg(unrelated.path())
        .output()
        .unwrap();
    assert!(made.status.success());

    let other = format!("sslrootcert={}", unrelated.path().display());
    for mode in ["verify-ca", "verify-full"] {
        let error = open("localhost", &format!("sslmode={mode}&{other}")).unwrap_err();
        assert!(error.contains("UnknownIssuer"), "{error}");
    }
}

#[test]
fn a_read_only_database_takes_nothing_and_recovers() {
    let schema = Schema::new();
    let role = role(&schema, "USAGE, CREATE");
    let url = tcp(&schema, &role, "topsecret", "localhost", "sslmode=disable");
    let options =
        PostgresOptions { patience: Duration::from_millis(200), ..PostgresOptions::default() };

    let journal = PostgresJournal::open(&url, options).unwrap();
    journal.commit(&[accept("r")]).unwrap();

    // The setting applies to new connections, so the existing ones are ended.
    let end =
        format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{role}'");
    sql(&format!("ALTER ROLE {role} SET default_transaction_read_only = on; {end}"));

    for error in [journal.commit(&[accept("s")]).unwrap_err(), journal.probe().unwrap_err()] {
        assert!(matches!(error, JournalError::NotWritable(_)), "{error:?}");
    }

    sql(&format!("ALTER ROLE {role} SET default_transaction_read_only = off; {end}"));
    while let Err(error) = journal.commit(&[accept("s")]) {
        assert!(matches!(error, JournalError::NotWritable(_)), "{error:?}");
    }

    assert_eq!((journal.run("s").unwrap(), journal.size().unwrap().runs), (Some(row("s")), 2));
}

#[test]
fn a_full_database_takes_nothing_and_recovers() {
    let schema = Schema::new();

    let journal = PostgresJournal::open(&schema.url(), PostgresOptions::default()).unwrap();
    journal.commit(&[accept("r")]).unwrap();

    // The error as PostgreSQL words it.
    schema.sql(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            RAISE EXCEPTION 'could not extend file \"base/5/16396\": No space left on device' USING ERRCODE = '53100';
        END $$; CREATE TRIGGER refuse BEFORE INSERT ON segment EXECUTE FUNCTION refuse()",
    );

    let first = events(row("r").head, 1);
    let both = [append("r", &first), accept("s")];

    let error = journal.commit(&both).unwrap_err();
    assert!(
        matches!(&error, JournalError::NotWritable(reason) if reason.contains("No space left")),
        "{error:?}"
    );

    assert_eq!((journal.run("r").unwrap(), journal.run("s").unwrap()), (Some(row("r")), None));

    schema.sql("DROP TRIGGER refuse ON segment");
    journal.commit(&both).unwrap();
    assert_eq!(
        (journal.run("r").unwrap().unwrap().head, journal.run("s").unwrap()),
        (first.head(), Some(row("s")))
    );
}
