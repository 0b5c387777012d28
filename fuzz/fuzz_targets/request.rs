//! Arbitrary bytes as a request, to every route that reads one.
#![no_main]

use libfuzzer_sys::fuzz_target;
use prime_daemon::read_as_each_route;
use prime_settings::Settings;
use std::sync::LazyLock;

static SETTINGS: LazyLock<Settings> = LazyLock::new(Settings::default);

fuzz_target!(|bytes: &[u8]| {
    for error in read_as_each_route(&SETTINGS, bytes).into_iter().filter_map(Result::err) {
        assert!(!error.body().error.message.is_empty());
    }
});
