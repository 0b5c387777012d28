//! Arbitrary bytes as a file of submissions, and as a model's output.
#![no_main]

use libfuzzer_sys::fuzz_target;
use prime_bench::judge::check;
use prime_bench::tasks::Kinds;

fuzz_target!(|bytes: &[u8]| {
    check(bytes, 42, Kinds::ALL, 1, |_| Ok(())).expect("memory can be read");

    let output = String::from_utf8_lossy(bytes);
    let line = serde_json::json!({"id": "bubble-sort/easy/000", "output": output}).to_string();
    check(line.as_bytes(), 42, Kinds::ALL, 1, |_| Ok(())).expect("memory can be read");
});
