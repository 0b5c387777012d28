//! `key new`.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

use crate::binary::{done, file, shown};

#[test]
fn a_new_key_comes_with_the_entry_that_lets_it_in() {
    let made = done(&["key", "new", "ci-1"]);

    assert_eq!((made.code, made.stderr.as_str()), (0, ""));
    let (for_client, entry) = made.stdout.split_once("[[server.keys]]").expect("an entry");
    let key = for_client.lines().find(|line| line.starts_with("prime_")).expect("a key");
    assert_eq!(key.len(), "prime_".len() + 64);

    let mut sha256 = String::new();
    Sha256::digest(key).iter().for_each(|byte| write!(sha256, "{byte:02x}").unwrap());
    assert!(entry.contains(&format!("sha256 = \"{sha256}\"")), "{entry}");
    assert!(!entry.contains("prime_"), "the key is not for the configuration");

    let (_folder, path) = file("keys.toml", &format!("[[server.keys]]{entry}"));
    let shown_again = done(&["config", "show", "--config", shown(&path)]);
    assert!(
        shown_again.stdout.contains("name = \"ci-1\""),
        "{}{}",
        shown_again.stdout,
        shown_again.stderr
    );
    assert!(!shown_again.stdout.contains("admin"), "{}", shown_again.stdout);

    let admin = done(&["key", "new", "ops", "--admin"]).stdout;
    assert!(admin.ends_with("\nadmin = true\n"), "{admin}");
    assert_ne!(done(&["key", "new", "ci-1"]).stdout, made.stdout, "each is new");
}

#[test]
fn names_that_the_configuration_would_refuse_get_no_key() {
    for name in ["", "A", "a b", "a\"", "é", &"x".repeat(65)] {
        done(&["key", "new", name]).refused(&["lower-case letters"]);
    }
}
