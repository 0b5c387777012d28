//! Checks the processor for the extensions that llama.cpp's code needs. Without them a worker would
//! die of an illegal instruction, which explains nothing.

/// The extensions of x86-64 that llama.cpp is built for when its build is told nothing. They came
/// together, with Intel's Haswell (2013) and AMD's Excavator (2015).
#[cfg(target_arch = "x86_64")]
const NEEDED: [&str; 6] = ["sse4.2", "avx", "avx2", "fma", "f16c", "bmi2"];

/// The extensions that llama.cpp was built for and this processor lacks; none if it can run.
///
/// A build for a named processor (`-Ctarget-cpu`) is for what its builder chose: it is not checked.
pub fn missing_extensions() -> Vec<&'static str> {
    #[cfg(target_arch = "x86_64")]
    {
        if cfg!(target_feature = "sse3") {
            return Vec::new();
        }
        missing(|name| match name {
            "sse4.2" => std::is_x86_feature_detected!("sse4.2"),
            "avx" => std::is_x86_feature_detected!("avx"),
            "avx2" => std::is_x86_feature_detected!("avx2"),
            "fma" => std::is_x86_feature_detected!("fma"),
            "f16c" => std::is_x86_feature_detected!("f16c"),
            _ => std::is_x86_feature_detected!("bmi2"),
        })
    }
    #[cfg(not(target_arch = "x86_64"))]
    Vec::new()
}

#[cfg(target_arch = "x86_64")]
fn missing(has: impl Fn(&str) -> bool) -> Vec<&'static str> {
    NEEDED.into_iter().filter(|name| !has(name)).collect()
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use crate::EngineError;

    use super::missing;

    #[test]
    fn a_processor_before_avx2_is_refused_by_name() {
        // Intel's Ivy Bridge has AVX and F16C, but neither AVX2 nor FMA nor BMI2.
        let found = missing(|name| ["sse4.2", "avx", "f16c"].contains(&name));
        assert_eq!(found, ["avx2", "fma", "bmi2"]);
        assert!(missing(|_| true).is_empty());

        let error = EngineError::Processor { missing: found.join(", ") };
        assert_eq!(
            error.to_string(),
            "this processor lacks avx2, fma, bmi2, which llama.cpp is built for here: use a model \
             server (`openai`), or build with RUSTFLAGS=-Ctarget-cpu=native on this machine"
        );
    }
}
