//! Strips the program of its symbols. The profile cannot: tests and benches share its build, and
//! they need theirs.

use std::env;

#[expect(
    clippy::disallowed_methods,
    reason = "cargo passes the build's settings to a build script in the environment"
)]
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|found| found == value);
    // `--profile profiling` has debug information, and keeps its symbols.
    // zig's linker, which wheels are made with, takes none of these; the profile `dist` strips.
    // Packed relocations need glibc 2.36 at run time, and wheels run on older ones.
    let zig = env::var("RUSTC_LINKER").is_ok_and(|linker| linker.contains("zigcc"));
    let release = is("CARGO_CFG_TARGET_OS", "linux") && is("PROFILE", "release");
    if release && is("DEBUG", "false") && !zig {
        for argument in ["--strip-all", "--icf=safe", "-zpack-relative-relocs"] {
            println!("cargo::rustc-link-arg-bin=prime-agents=-Wl,{argument}");
        }
    }
}
