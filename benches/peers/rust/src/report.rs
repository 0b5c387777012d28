//! What a program measured, and the line of JSON that says it.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::Spec;

/// What one phase measured.
#[derive(Clone, Debug)]
pub struct Measured {
    pub name: String,
    /// Steps of all trajectories together.
    pub steps: u64,
    pub seconds: f64,
    pub cpu_us_per_step: f64,
    /// Nanoseconds; sorted when reported.
    pub samples: Vec<u64>,
    /// Number of steps that each sample is the time of.
    pub steps_per_sample: u32,
}

/// CPU time of all threads of this process, user and system.
#[must_use]
pub fn process_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// The results of the timed lap that began at `start`, when [`process_time`] was `cpu`.
#[must_use]
pub fn measured(spec: &Spec, start: Instant, cpu: Duration, samples: Vec<u64>) -> Measured {
    let seconds = start.elapsed().as_secs_f64();
    let steps = spec.steps * u64::from(spec.trajectories);
    let cpu_us_per_step = (process_time() - cpu).as_secs_f64() * 1e6 / steps as f64;
    Measured { name: spec.name(), steps, seconds, cpu_us_per_step, samples, steps_per_sample: 1 }
}

fn entry(measured: &mut Measured) -> String {
    let Measured { name, steps, seconds, cpu_us_per_step, samples, steps_per_sample } = measured;
    let rate = *steps as f64 / *seconds;
    let mut text = format!(
        r#""{name}":{{"steps":{steps},"seconds":{seconds:.6},"steps_per_s":{rate:.1},"cpu_us_per_step":{cpu_us_per_step:.4}"#
    );

    if !samples.is_empty() {
        samples.sort_unstable();
        let at = |share: f64| {
            let place = ((samples.len() - 1) as f64 * share).round() as usize;
            samples[place] as f64 / 1e3 / f64::from(*steps_per_sample)
        };

        text += &format!(
            r#","p50_us":{:.4},"p99_us":{:.4},"max_us":{:.3}"#,
            at(0.5),
            at(0.99),
            at(1.0)
        );
    }

    text + "}"
}

/// Runs every phase of the command line and prints what was measured. A phase for which `run`
/// returns `None` is left out. The process ends here: actors that hold each other's addresses do
/// not stop by themselves.
pub fn report(run: impl Fn(&str, Spec) -> Result<Option<Measured>, String>) -> ! {
    match phases(run) {
        Ok(entries) => {
            println!(r#"{{"phases":{{{}}}}}"#, entries.join(","));
            std::process::exit(0)
        }
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(2)
        }
    }
}

fn phases(
    run: impl Fn(&str, Spec) -> Result<Option<Measured>, String>,
) -> Result<Vec<String>, String> {
    let mut words = std::env::args().skip(1);
    let variant = words.next().ok_or("usage: PROGRAM VARIANT PHASE...")?;
    let mut entries = Vec::new();

    for word in words {
        if let Some(mut measured) = run(&variant, Spec::parse(&word)?)? {
            entries.push(entry(&mut measured));
        }
    }

    Ok(entries)
}
