//! Writes a load test's report, and compares it with a baseline.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::Args;

use super::target::Target;
use crate::cli::output::{Output, OutputError, note, print};
use prime_loadtest::comparison::{Comparison, check, compare};
use prime_loadtest::hdr_log::hdr_log;
use prime_loadtest::page::page;
use prime_loadtest::report::{Mode, Report};
use prime_loadtest::{baseline, text};

/// Exit code if a metric became worse.
const REGRESSION: u8 = 3;

#[derive(Args)]
pub struct OutputArguments {
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
    /// Write the report with charts to this file, as a self-contained HTML page.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write the latency histograms to this file as an HdrHistogram interval log, in nanoseconds.
    #[arg(long, value_name = "FILE")]
    raw: Option<PathBuf>,
    /// Write the report to this file as JSON, for --baseline.
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Compare with a report written by --save. Exits 3 if a metric became worse.
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// By how much a metric may be worse than the baseline's.
    #[arg(long, value_name = "PERCENT", default_value_t = 10.0, value_parser = tolerance)]
    tolerance: f64,
}

fn tolerance(text: &str) -> Result<f64, String> {
    let percent = text.parse().ok().filter(|percent: &f64| percent.is_finite() && *percent > 0.0);
    percent.ok_or_else(|| "give a percentage above 0, for example 10".to_owned())
}

/// Checked targets of the report, and the baseline as it was before the test.
pub struct Outputs {
    output: Output,
    html: Option<Target>,
    raw: Option<Target>,
    save: Option<Target>,
    baseline: Option<Report>,
    tolerance: f64,
}

impl OutputArguments {
    /// Checks all files before the test. `trajectories` are its counts.
    ///
    /// # Errors
    /// If a file cannot be written, or the baseline cannot be read or compared with this load.
    pub fn check(&self, mode: Mode, trajectories: &[u32]) -> anyhow::Result<Outputs> {
        let target = |option, path: &Option<PathBuf>| {
            path.as_deref().map(|path| Target::check(option, path)).transpose()
        };

        let html = target("--html", &self.html)?;
        let raw = target("--raw", &self.raw)?;
        let save = target("--save", &self.save)?;
        let targets: Vec<_> = [&html, &raw, &save].into_iter().flatten().collect();

        for (index, one) in targets.iter().enumerate() {
            if let Some(other) = targets[index + 1..].iter().find(|other| one.is_same(other)) {
                bail!(
                    "{} and {} name the same file: give different files",
                    one.option(),
                    other.option()
                );
            }
        }

        let baseline = self.baseline.as_deref().map(|path| {
            let place = || format!("--baseline {}", path.display());
            let report = baseline::read(path).with_context(place)?;
            check(&report, mode, trajectories).with_context(place)?;
            anyhow::Ok(report)
        });
        let baseline = baseline.transpose()?;

        Ok(Outputs { output: self.output, html, raw, save, baseline, tolerance: self.tolerance })
    }
}

impl Outputs {
    /// Prints the report and writes the files. Returns 3 if a metric became worse than the
    /// baseline's. With `--output json`, stdout has the report alone, and the comparison goes to
    /// stderr.
    ///
    /// # Errors
    /// If a file cannot be written. The others are still written, and the report is printed.
    pub fn write(&self, report: &Report) -> anyhow::Result<ExitCode> {
        let json = serde_json::to_string_pretty(report)? + "\n";
        let baseline = self.baseline.as_ref();
        let comparison =
            baseline.map(|baseline| compare(report, baseline, self.tolerance)).transpose();
        let compared = comparison.as_ref().ok().and_then(Option::as_ref);
        let printed = self.print(report, &json, compared);

        let html = self.html.as_ref().map(|target| {
            let page = page(report, baseline.zip(compared))
                .context("--html: the page cannot be rendered")?;
            target.write(&page)
        });
        let raw = self.raw.as_ref().map(|target| {
            target.write(&hdr_log(report).context("--raw: the log cannot be written")?)
        });
        let save = self.save.as_ref().map(|target| target.write(&json));

        // Checked only now: one file that fails must not cost the others.
        [html, raw, save].into_iter().flatten().collect::<anyhow::Result<()>>()?;
        printed?;

        let is_worse = comparison?.is_some_and(|comparison| !comparison.regressions.is_empty());
        Ok(if is_worse { ExitCode::from(REGRESSION) } else { ExitCode::SUCCESS })
    }

    fn print(
        &self,
        report: &Report,
        json: &str,
        comparison: Option<&Comparison>,
    ) -> Result<(), OutputError> {
        let compared = comparison.map(text::comparison).unwrap_or_default();
        let shown = match self.output {
            Output::Text if compared.is_empty() => text::text(report),
            Output::Text => format!("{}\n{compared}", text::text(report)),
            Output::Json if compared.is_empty() => json.to_owned(),
            Output::Json => {
                note!("{}", compared.trim_end());
                json.to_owned()
            }
        };
        print(shown)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use clap::Parser;

    use super::*;
    use prime_loadtest::histogram;
    use prime_loadtest::report::{FORMAT, HostInfo, Latency, Length, Load, Point};

    fn point(trajectories: u32) -> Point {
        let mut latencies = histogram::empty();
        latencies.saturating_record_n(2_000, 100);
        Point {
            trajectories,
            steps: 100,
            seconds: 1.0,
            steps_per_second: 100.0,
            latency: Latency { p50_us: 2.0, ..histogram::latency(&latencies) },
            stages: Vec::new(),
            coordination_share: None,
            cpu_us_per_step: None,
            allocations_per_step: Some(4.0),
            allocated_bytes_per_step: None,
            bytes_per_trajectory: None,
            rate: None,
            failures: 0,
            histogram: histogram::encode(&latencies),
        }
    }

    fn report() -> Report {
        Report {
            format: FORMAT,
            version: "0.1.0".to_owned(),
            started: "2026-11-21T10:00:00Z".to_owned(),
            machine: HostInfo::default(),
            mode: Mode::Ring,
            load: Load {
                rate: None,
                warmup_seconds: 1.0,
                length: Length::Seconds(1.0),
                payload_bytes: 0,
                delay_us: 0,
                failures: 0.0,
                faulty: Vec::new(),
                durable: false,
            },
            runtime: None,
            points: vec![point(1), point(1_000)],
            remarks: Vec::new(),
        }
    }

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        output: OutputArguments,
    }

    fn arguments(list: &[&str]) -> Result<OutputArguments, clap::Error> {
        Command::try_parse_from([&["loadtest"], list].concat()).map(|command| command.output)
    }

    fn checked(list: &[&str]) -> anyhow::Result<Outputs> {
        arguments(list).unwrap().check(Mode::Ring, &[1, 1_000])
    }

    fn saved(folder: &Path, report: &Report) -> String {
        let path = folder.join("baseline.json");
        std::fs::write(&path, serde_json::to_string(report).unwrap()).unwrap();
        path.to_str().unwrap().to_owned()
    }

    #[test]
    fn tolerances_are_above_zero() {
        assert_eq!(arguments(&[]).unwrap().tolerance, 10.0);
        assert_eq!(arguments(&["--tolerance", "2.5"]).unwrap().tolerance, 2.5);
        for text in ["0", "-1", "NaN", "inf", "ten"] {
            let error = arguments(&[&format!("--tolerance={text}")]).err().unwrap().to_string();
            assert!(error.contains("above 0"), "{error}");
        }
    }

    #[test]
    fn all_files_are_written_and_regressions_exit_with_3() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let (html, raw, save) = (file("a.html"), file("a.hlog"), file("a.json"));

        let mut better = report();
        better
            .points
            .iter_mut()
            .for_each(|Point { allocations_per_step, .. }| *allocations_per_step = Some(3.0));
        let baseline = saved(folder.path(), &better);

        let list = ["--html", &html, "--raw", &raw, "--save", &save, "--baseline", &baseline];
        let code =
            |more: &[&str]| checked(&[&list[..], more].concat()).unwrap().write(&report()).unwrap();

        assert_eq!(code(&["--output", "json"]), ExitCode::from(3));
        assert_eq!(code(&["--tolerance", "50"]), ExitCode::SUCCESS);
        assert_eq!(baseline::read(Path::new(&save)).unwrap(), report());
        assert!(std::fs::read_to_string(&html).unwrap().contains("Comparison with the baseline"));
        assert_eq!(std::fs::read_to_string(&raw).unwrap().lines().count(), 8);
        assert_eq!(folder.path().read_dir().unwrap().count(), 4, "no partial files remain");

        // The baseline may be where the new report goes.
        let over = checked(&["--save", &baseline, "--baseline", &baseline]).unwrap();
        assert_eq!(over.write(&report()).unwrap(), ExitCode::from(3));
        assert_eq!(baseline::read(Path::new(&baseline)).unwrap(), report());
    }

    #[test]
    fn mistakes_are_found_before_the_test() {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path().to_str().unwrap();
        let http = saved(folder.path(), &Report { mode: Mode::Http, ..report() });
        let rows: [(&[&str], &str); 6] = [
            (&["--html", here], "--html"),
            (&["--save", "/no/such/folder/x.json"], "does its folder exist?"),
            (&["--baseline", "/no/such/file"], "--baseline /no/such/file: cannot be read"),
            (&["--baseline", &http], "has mode `http`, this test has mode `ring`"),
            (&["--baseline", here], "cannot be read"),
            (
                &["--html", &format!("{here}/x"), "--raw", &format!("{here}/x")],
                "name the same file",
            ),
        ];
        for (list, part) in rows {
            let error = format!("{:#}", checked(list).err().unwrap());
            assert!(error.contains(part), "{part:?} is missing in {error:?}");
            assert!(error.matches("os error").count() <= 1, "said twice: {error:?}");
        }
    }
}
