//! What a model's file says of the tasks that it was trained on.

use prime_engine::gguf::TASKS_KEY;
use prime_settings::Settings;

/// The header of a GGUF file without tensors, with one list of strings.
fn gguf_with(key: &str, strings: &[&str]) -> Vec<u8> {
    let text = |text: &str| [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat();
    let mut bytes = b"GGUF\x03\0\0\0".to_vec();

    bytes.extend(0_u64.to_le_bytes());
    bytes.extend(1_u64.to_le_bytes());
    bytes.extend(text(key));

    // An array, of strings.
    bytes.extend(9_u32.to_le_bytes());
    bytes.extend(8_u32.to_le_bytes());
    bytes.extend((strings.len() as u64).to_le_bytes());
    strings.iter().for_each(|string| bytes.extend(text(string)));
    bytes.resize(bytes.len().next_multiple_of(32), 0);
    bytes
}

#[test]
fn a_model_file_may_say_what_it_has_learnt() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.gguf");
    let model = format!("engines.queens.model={}", path.display());
    let learnt = |more: &[&str]| {
        let sets: Vec<String> =
            [&[model.as_str()], more].concat().into_iter().map(str::to_owned).collect();
        let settings = Settings::load(&[], std::iter::empty(), &sets).unwrap();
        ["n-queens", "a-star"].map(|task| settings.engines["queens"].has_learnt(task))
    };

    std::fs::write(&path, gguf_with(TASKS_KEY, &["n-queens", "a-task-of-a-later-version"]))
        .unwrap();
    assert_eq!(learnt(&[]), [Some(true), Some(false)]);

    assert_eq!(
        learnt(&[r#"engines.queens.tasks=["a-star"]"#]),
        [Some(false), Some(true)],
        "what is stated counts"
    );

    std::fs::write(&path, gguf_with("other.tasks", &["n-queens"])).unwrap();
    assert_eq!(learnt(&[]), [None, None]);

    std::fs::write(&path, "no model").unwrap();
    assert_eq!(learnt(&[]), [None, None], "the engine reports it when it starts");
}
