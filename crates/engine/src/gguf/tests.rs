//! Whole, truncated, foreign and made-up files.

use prime_engine_testing::TinyModel;

use super::*;

#[test]
fn every_truncation_of_a_model_is_refused_and_the_whole_passes() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let path = dir.path().join("tiny.gguf");
    TinyModel::default().write(&path).expect("model written");
    assert_eq!(read(&path).expect("a whole file").vocabulary, 259);

    let bytes = std::fs::read(&path).expect("model read");
    // Every length inside the header's beginning, then coarser.
    let lengths = (0..600).chain((600..bytes.len()).step_by(997)).chain([bytes.len() - 1]);
    for length in lengths {
        assert!(parse(&bytes[..length]).is_err(), "{length} of {} bytes", bytes.len());
    }
}

#[test]
fn missing_and_foreign_files_are_told_apart() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    assert!(matches!(read(&dir.path().join("none")), Err(EngineError::ModelMissing { .. })));
    assert!(matches!(read(dir.path()), Err(EngineError::ModelMissing { .. })));

    let path = dir.path().join("text");
    for text in [&b""[..], b"PK", b"PK\x03\x04 something else", b"GGUF\x01\0\0\0\0\0\0\0"] {
        std::fs::write(&path, text).expect("file written");
        assert!(matches!(read(&path), Err(EngineError::ModelForeign { .. })), "{text:?}");
    }
}

/// A header with these entries (key, kind, value) and tensors (name, kind, offset), of 64 elements
/// each, and data.
fn file(entries: &[(&str, u32, &[u8])], tensors: &[(&str, u32, u64)], data: usize) -> Vec<u8> {
    let text = |out: &mut Vec<u8>, text: &str| {
        out.extend((text.len() as u64).to_le_bytes());
        out.extend(text.as_bytes());
    };

    let mut bytes = b"GGUF\x03\0\0\0".to_vec();
    bytes.extend((tensors.len() as u64).to_le_bytes());
    bytes.extend((entries.len() as u64).to_le_bytes());

    for (key, kind, value) in entries {
        text(&mut bytes, key);
        bytes.extend(kind.to_le_bytes());
        bytes.extend(*value);
    }

    for (name, kind, offset) in tensors {
        text(&mut bytes, name);
        bytes.extend(1_u32.to_le_bytes());
        bytes.extend(64_u64.to_le_bytes());
        bytes.extend(kind.to_le_bytes());
        bytes.extend(offset.to_le_bytes());
    }

    bytes.resize(bytes.len().next_multiple_of(32) + data, 0);
    bytes
}

fn parsed(bytes: &[u8]) -> Header {
    parse(bytes).expect("a whole file")
}

#[test]
fn integers_and_short_lists_are_kept_and_the_rest_is_skipped() {
    let list = |kind: u32, length: u64, elements: &[u8]| {
        [&kind.to_le_bytes()[..], &length.to_le_bytes(), elements].concat()
    };

    let text = [&3_u64.to_le_bytes()[..], b"gpt"].concat();
    let strings = [&1_u64.to_le_bytes()[..], b"x", &2_u64.to_le_bytes(), b"yz"].concat();

    let entries: [(&str, u32, &[u8]); 9] = [
        ("a.byte", 0, &[200]),
        ("a.negative", 5, &[255; 4]),
        ("a.long", 10, &[0, 0, 0, 0, 1, 0, 0, 0]),
        ("a.real", 6, &[0; 4]),
        ("a.text", 8, &text),
        ("a.list", 9, &list(5, 2, &[3, 0, 0, 0, 4, 0, 0, 0])),
        ("tokenizer.ggml.tokens", 9, &list(8, 2, &[0; 16])),
        ("a.last", 7, &[1]),
        ("b.strings", 9, &list(8, 2, &strings)),
    ];

    let bytes = file(&entries, &[], 0);
    let header = parsed(&bytes);

    let numbers: Vec<_> =
        header.numbers.iter().map(|(key, all)| (key.as_str(), all.as_slice())).collect();
    assert_eq!(numbers, [("a.byte", &[200][..]), ("a.list", &[3, 4]), ("a.long", &[1 << 32])]);

    assert_eq!(header.vocabulary, 2);
    let strings: Vec<_> =
        header.strings.iter().map(|(key, all)| (key.as_str(), all.as_slice())).collect();
    assert_eq!(strings, [("b.strings", &["x".to_owned(), "yz".to_owned()][..])]);

    let values: Vec<(&str, u64)> =
        header.values.iter().map(|(key, place)| (key.as_str(), place.end - place.start)).collect();
    let expected = [
        ("a.byte", 5),
        ("a.last", 5),
        ("a.list", 24),
        ("a.long", 12),
        ("a.negative", 8),
        ("a.real", 8),
    ];
    assert_eq!(values[..6], expected, "a type of four bytes, and the value");

    let place = &header.values["a.byte"];
    assert_eq!(bytes[usize::try_from(place.end).unwrap() - 1], 200);
}

#[test]
fn tensors_have_the_size_of_their_type_and_unknown_types_extend_to_the_next() {
    let tensors = [("last", 999, 512), ("q8_0", 8, 0), ("f16", 1, 384), ("new", 998, 96)];

    let bytes = file(&[], &tensors, 640);
    let header = parsed(&bytes);
    let sizes: Vec<_> =
        header.tensors.iter().map(|tensor| (tensor.name.as_str(), tensor.bytes)).collect();
    // 64 elements of q8_0 are two blocks of 34 bytes.
    assert_eq!(sizes, [("q8_0", 68), ("new", 288), ("f16", 128), ("last", 128)]);

    let first = &header.tensors[0];
    assert_eq!((&first.dimensions[..], first.kind), (&[64][..], 8));

    let data = bytes.len() as u64 - 640;
    assert_eq!(
        header.tensors.iter().map(|tensor| tensor.offset - data).collect::<Vec<_>>(),
        [0, 96, 384, 512]
    );
}

#[test]
fn absurd_claims_cost_no_memory() {
    let mut bytes = b"GGUF\x03\0\0\0".to_vec();
    bytes.extend(u64::MAX.to_le_bytes());
    bytes.extend(1_u64.to_le_bytes());
    assert!(parse(&bytes).is_err());

    bytes[8..16].copy_from_slice(&0_u64.to_le_bytes());
    bytes.extend(3_u64.to_le_bytes());
    bytes.extend(b"key");
    bytes.extend(9_u32.to_le_bytes());
    bytes.extend(8_u32.to_le_bytes());
    bytes.extend(u64::MAX.to_le_bytes());
    assert!(parse(&bytes).is_err());
}

/// A text as a metadata value has it.
fn text_value(text: &str) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat()
}

#[test]
fn the_parts_of_a_tokenizer_that_a_chat_needs_are_read() {
    const TEXT: u32 = 8;
    const NUMBER: u32 = 4;
    const LIST: u32 = 9;
    let list = |kind: u32, items: &[Vec<u8>]| {
        let head = [&kind.to_le_bytes()[..], &(items.len() as u64).to_le_bytes()].concat();
        [head, items.concat()].concat()
    };
    let texts = ["<unk>", "<s>", "</s>", "move", "<tool>"].map(text_value);
    // Unknown, control, control, normal, defined by the user.
    let kinds = [2_i32, 3, 3, 1, 4].map(|kind| kind.to_le_bytes().to_vec());
    let template = "{{ bos_token }}{{ messages[0].content }}";
    let bytes = file(
        &[
            ("general.architecture", TEXT, &text_value("llama")),
            ("tokenizer.ggml.tokens", LIST, &list(TEXT, &texts)),
            ("tokenizer.ggml.token_type", LIST, &list(5, &kinds)),
            ("tokenizer.ggml.bos_token_id", NUMBER, &1_u32.to_le_bytes()),
            ("tokenizer.ggml.eos_token_id", NUMBER, &2_u32.to_le_bytes()),
            ("tokenizer.chat_template", TEXT, &text_value(template)),
        ],
        &[],
        0,
    );
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("chat.gguf");
    std::fs::write(&path, bytes).expect("file written");

    assert_eq!(
        read_chat_tokenizer(&path),
        Ok(ChatTokenizer {
            template: Some(template.to_owned()),
            bos: "<s>".to_owned(),
            eos: "</s>".to_owned(),
            control: ["<unk>", "<s>", "</s>"].map(str::to_owned).to_vec(),
        })
    );

    // A base model has no template, which is said before anything is rendered.
    TinyModel::default().write(&path).expect("model written");
    let refused = crate::Chat::of_file(&path, &crate::TemplateVariables::new());
    let said = refused.expect_err("no template").to_string();
    assert!(said.contains("its file has none"), "{said}");
}

#[test]
fn what_is_no_regular_file_is_refused_before_it_is_read() {
    let folder = tempfile::tempdir().unwrap();
    for path in [Path::new("/dev/zero"), folder.path()] {
        let error = open_regular(path).unwrap_err();
        assert_eq!(error.to_string(), "it is not a regular file", "{}", path.display());
    }
}
