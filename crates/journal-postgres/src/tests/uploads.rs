//! Task modules in databases of earlier programs, and of several nodes.

use super::open;
use super::server::Schema;
use prime_journal::{Journal as _, Stored, TaskVersion, UploadLimits};

const LIMITS: UploadLimits = UploadLimits { tasks_max: 2, versions_max: 4, bytes_max: 10_000 };

#[test]
fn a_database_without_the_tables_gets_them_and_nodes_find_each_others_modules() {
    let schema = Schema::new();
    drop(open(&schema));
    schema.sql("DROP TABLE module; DROP TABLE task_version");

    let (one, other) = (open(&schema), open(&schema));
    let version = TaskVersion {
        owner: "ada".to_owned(),
        name: "count".to_owned(),
        digest: "c".repeat(64),
        bytes: 6,
        uploaded_ms: 7,
        released_ms: None,
    };
    assert_eq!(one.uploads().store(&version, b"module", &LIMITS).unwrap(), Stored::New);
    assert_eq!(other.uploads().store(&version, b"module", &LIMITS).unwrap(), Stored::Known);
    assert_eq!(other.uploads().versions(None).unwrap(), std::slice::from_ref(&version));
    assert_eq!(other.uploads().module(&version.digest).unwrap().as_deref(), Some(&b"module"[..]));

    assert!(other.uploads().release("ada", "count", 9).unwrap());
    assert_eq!(one.uploads().current("ada", "count").unwrap(), None);
}
