//! The keys of clients: `server.keys`.

use super::{with_file, with_sets};

const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

#[test]
fn keys_are_a_list_of_tables() {
    let zeros = "0".repeat(64);
    let file = format!(
        "[[server.keys]]\nname = \"ci\"\nsha256 = \"{ABC}\"\nconcurrent_max = 4\n[[server.keys]]\n\
         name = \"b-2\"\nsha256 = \"{zeros}\""
    );

    let settings = with_file(&file).unwrap();
    let keys = &settings.server.keys;
    let of =
        |at: usize| (keys[at].name.as_str(), keys[at].sha256.to_string(), keys[at].concurrent_max);
    assert_eq!(
        (keys.len(), of(0), of(1)),
        (2, ("ci", ABC.to_owned(), Some(4)), ("b-2", zeros, None))
    );

    settings.validate().unwrap();
    assert_eq!(with_file(&settings.to_toml()).unwrap().server, settings.server);

    let set = format!("server.keys=[{{name=\"a\",sha256=\"{ABC}\"}}]");
    assert_eq!(with_sets(&[&set]).unwrap().server.keys[0].name, "a");
}

#[test]
fn mistakes_in_keys_are_named() {
    let upper = ABC.to_uppercase();
    for (text, parts) in [
        (
            format!("name = \"a\"\nsha256 = \"{ABC}\"\nsha = 1"),
            &["FILE:4: unknown key `server.keys.sha`"][..],
        ),
        (
            format!("nmae = \"a\"\nsha256 = \"{ABC}\""),
            &["FILE:2", "did you mean `server.keys.name`?"],
        ),
        (
            format!("name = \"a b\"\nsha256 = \"{ABC}\""),
            &["FILE:2: `server.keys.name` is the text \"a b\"", "lower-case letters"],
        ),
        (format!("name = \"\"\nsha256 = \"{ABC}\""), &["FILE:2: `server.keys.name`"]),
        (format!("name = 5\nsha256 = \"{ABC}\""), &["FILE:2: `server.keys.name` is 5", "a text"]),
        (
            "name = \"a\"\nsha256 = \"abc\"".to_owned(),
            &["FILE:3: `server.keys.sha256`", "64 hexadecimal digits", "key new"],
        ),
        ("name = \"a\"".to_owned(), &["`server.keys.sha256` is missing", "[[server.keys]]"]),
        (format!("sha256 = \"{ABC}\""), &["`server.keys.name` is missing"]),
        (
            format!("name = \"a\"\nsha256 = \"{ABC}\"\nconcurrent_max = -1"),
            &["FILE:4: `server.keys.concurrent_max` is -1, but must be an integer from 0 to \
                 1000000"],
        ),
        (
            format!(
                "name = \"a\"\nsha256 = \"{ABC}\"\n[[server.keys]]\nname = \"b\"\n\
                 sha256 = \"{upper}\""
            ),
            &["`server.keys` has \"a\" and \"b\"", "of its own"],
        ),
    ] {
        let message = with_file(&format!("[[server.keys]]\n{text}")).unwrap_err();
        for part in parts {
            assert!(message.contains(part), "{part:?} is missing in {message:?}");
        }
    }

    let message = with_file("[server]\nkeys = [5]").unwrap_err();
    assert!(message.contains("`server.keys` is 5, but must be a table"), "{message}");
    let message = with_sets(&["server.keys=abc"]).unwrap_err();
    assert!(message.contains("but must be a list of tables (`[[section]]`)"), "{message}");
}
