//! The options of `prime-agents loadtest`, and which of them go together.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::bail;
use clap::builder::RangedU64ValueParser;
use clap::{Args, ValueEnum};

use super::output::OutputArguments;
use super::values::{delay, rate, share, time, time_or_none};
use crate::cli::own_model::OwnModel;
use crate::loads::plan::{Faults, PAYLOAD_BYTES_MAX, Plan, SWEEP, TRAJECTORIES_MAX};
use prime_bench::tasks::{self, AnyTask, Difficulty};
use prime_loadtest::report::{Length, Mode};
use prime_protocol::Role;

/// Default length of the measurement.
const DURATION: Duration = Duration::from_secs(5);
/// Default count of trajectories, with null agents and otherwise.
const TRAJECTORIES: u32 = 1_000;
const TRAJECTORIES_OF_TASK: u32 = 16;
/// Default task.
const TASK: &str = "tower-of-hanoi";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ModeName {
    /// Null agents in this process: coordination alone.
    Ring,
    /// Null agents that each query an engine process, which answers at once: adds the round trip.
    Engine,
    /// A running daemon, as a client sees it.
    Http,
    /// The configured agents with their models.
    Model,
}

impl ModeName {
    pub fn mode(self) -> Mode {
        match self {
            Self::Ring => Mode::Ring,
            Self::Engine => Mode::Engine,
            Self::Http => Mode::Http,
            Self::Model => Mode::Model,
        }
    }

    fn is_null(self) -> bool {
        matches!(self, Self::Ring | Self::Engine)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum RoleName {
    Executor,
    Verifier,
    Coordinator,
}

impl RoleName {
    fn role(self) -> Role {
        match self {
            Self::Executor => Role::Executor,
            Self::Verifier => Role::Verifier,
            Self::Coordinator => Role::Coordinator,
        }
    }
}

#[derive(Args)]
pub struct LoadtestArguments {
    /// What the load goes through.
    #[arg(long, value_enum, default_value_t = ModeName::Ring)]
    pub mode: ModeName,
    /// Concurrent trajectories, 1 to 100000. Several counts are measured one after another.
    /// Defaults to 1000, or to 16 with `--mode http` and `model`.
    #[arg(
        long,
        value_name = "N[,N...]",
        value_delimiter = ',',
        value_parser = RangedU64ValueParser::<u32>::new().range(1..=u64::from(TRAJECTORIES_MAX))
    )]
    trajectories: Vec<u32>,
    /// Measure 1, 10, 100, 1000 and 10000 trajectories, one after another.
    #[arg(long, conflicts_with = "trajectories")]
    sweep: bool,
    /// Measure this many steps per trajectory instead of a time (with `--mode http`, committed
    /// steps per client).
    #[arg(
        long,
        value_name = "N",
        conflicts_with = "duration",
        value_parser = RangedU64ValueParser::<u64>::new().range(1..=100_000_000)
    )]
    steps: Option<u64>,
    /// Length of the measurement, such as 10s. Defaults to 5s.
    #[arg(long, value_name = "TIME", value_parser = time)]
    duration: Option<Duration>,
    /// Warm-up before the measurement; 0 for none.
    #[arg(long, value_name = "TIME", value_parser = time_or_none, default_value = "1s")]
    warmup: Duration,
    /// Open loop: steps due per second over all trajectories (runs, with `--mode http`). Latency
    /// then starts when a step is due. Without it, a trajectory's next step is due when its last is
    /// decided.
    #[arg(long, value_name = "R", value_parser = rate, allow_negative_numbers = true)]
    rate: Option<f64>,
    /// Bytes added to each proposal's line; to the prompt, with `--mode engine`.
    #[arg(
        long,
        value_name = "BYTES",
        default_value_t = 0,
        value_parser = RangedU64ValueParser::<usize>::new().range(0..=PAYLOAD_BYTES_MAX)
    )]
    payload: usize,
    /// Delay of each turn of a faulty agent, such as 200us, at most 10s; up to 0.1 ms longer in
    /// practice.
    #[arg(long, value_name = "TIME", value_parser = delay)]
    delay: Option<Duration>,
    /// Share of a faulty agent's turns that fail and are then retried.
    #[arg(long, value_name = "SHARE", value_parser = share, allow_negative_numbers = true)]
    failures: Option<f64>,
    /// Agents affected by `--delay` and `--failures`. Defaults to the executor.
    #[arg(long, value_enum, value_name = "ROLE[,ROLE...]", value_delimiter = ',')]
    faulty: Vec<RoleName>,
    /// Commit every step to a journal, as the daemon does. Requires `--mode ring`.
    #[arg(long)]
    pub durable: bool,
    /// New file for the journal of `--durable`. Defaults to a temporary file.
    #[arg(long, value_name = "FILE", requires = "durable")]
    pub journal: Option<PathBuf>,
    /// Time the stages of each step, which takes about nine clock readings per step.
    #[arg(long)]
    stages: bool,
    /// The former name of `--stages`.
    #[arg(long, hide = true)]
    legs: bool,
    /// The daemon of `--mode http`, as http://HOST:PORT. Its key is read from PRIME_API_KEY.
    #[arg(long)]
    pub url: Option<String>,
    /// Task of `--mode http` and `model`. Defaults to tower-of-hanoi.
    #[arg(long)]
    task: Option<String>,
    /// Difficulty of its instances: easy, medium or hard. Defaults to easy.
    #[arg(long)]
    difficulty: Option<Difficulty>,
    #[command(flatten)]
    pub configuration: OwnModel,
    #[command(flatten)]
    pub outputs: OutputArguments,
}

impl LoadtestArguments {
    /// The counts of trajectories, in order.
    pub fn counts(&self) -> Vec<u32> {
        match (self.sweep, self.trajectories.is_empty()) {
            (true, _) => SWEEP.to_vec(),
            (false, false) => self.trajectories.clone(),
            (false, true) if self.mode.is_null() => vec![TRAJECTORIES],
            (false, true) => vec![TRAJECTORIES_OF_TASK],
        }
    }

    /// The task of modes `http` and `model`.
    pub fn task(&self) -> anyhow::Result<(&'static dyn AnyTask, Difficulty)> {
        let task = tasks::find(self.task.as_deref().unwrap_or(TASK))?;
        Ok((task, self.difficulty.unwrap_or(Difficulty::Easy)))
    }

    /// The requested load.
    ///
    /// # Errors
    /// If options contradict each other.
    pub fn plan(&self) -> anyhow::Result<Plan> {
        self.check()?;
        let seconds = self.duration.unwrap_or(DURATION).as_secs_f64();
        let faulty = if self.faulty.is_empty() { &[RoleName::Executor][..] } else { &self.faulty };

        Ok(Plan {
            length: self.steps.map_or(Length::Seconds(seconds), Length::Steps),
            warmup: self.warmup,
            rate: self.rate,
            has_stages: self.stages || self.mode == ModeName::Model,
            payload_bytes: self.payload,
            faults: Faults {
                delay: self.delay.unwrap_or_default(),
                failures: self.failures.unwrap_or(0.0),
                faulty: faulty.iter().map(|name| name.role()).collect(),
            },
        })
    }

    fn check(&self) -> anyhow::Result<()> {
        if self.legs {
            bail!("--legs was renamed: give --stages");
        }

        let Some(mode) = self.mode.to_possible_value() else { return Ok(()) };
        let mode = mode.get_name();

        let null_only = [
            ("--payload", self.payload > 0),
            ("--delay", self.delay.is_some()),
            ("--failures", self.failures.is_some()),
            ("--faulty", !self.faulty.is_empty()),
        ];
        if let Some((option, _)) =
            null_only.iter().find(|(_, is_given)| *is_given && !self.mode.is_null())
        {
            bail!("{option} applies to null agents: it requires --mode ring or engine, not {mode}");
        }

        if !self.faulty.is_empty() && self.delay.is_none() && self.failures.is_none() {
            bail!("--faulty has no effect alone: add --delay or --failures");
        }

        if self.durable && self.mode != ModeName::Ring {
            bail!("--durable requires --mode ring, not {mode}");
        }

        match (self.mode, &self.url) {
            (ModeName::Http, None) => {
                bail!("--mode http requires --url, for example http://127.0.0.1:7433")
            }
            (ModeName::Http, Some(_)) | (_, None) => {}
            (_, Some(_)) => bail!("--url requires --mode http, not {mode}"),
        }

        let of_task =
            [("--task", self.task.is_some()), ("--difficulty", self.difficulty.is_some())];
        if let Some((option, _)) =
            of_task.iter().find(|(_, is_given)| *is_given && self.mode.is_null())
        {
            bail!("{option} requires --mode http or model, not {mode}");
        }

        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        arguments: LoadtestArguments,
    }

    fn parsed(arguments: &[&str]) -> LoadtestArguments {
        Line::try_parse_from([&["loadtest"], arguments].concat())
            .unwrap_or_else(|error| panic!("{error}"))
            .arguments
    }

    #[test]
    fn the_default_is_a_closed_loop_of_five_seconds() {
        let arguments = parsed(&[]);
        assert_eq!(arguments.counts(), [1_000]);
        assert_eq!(
            arguments.plan().unwrap(),
            Plan {
                length: Length::Seconds(5.0),
                warmup: Duration::from_secs(1),
                rate: None,
                has_stages: false,
                payload_bytes: 0,
                faults: Faults { faulty: vec![Role::Executor], ..Faults::NONE },
            }
        );

        assert_eq!(parsed(&["--mode", "model"]).counts(), [16]);
        assert!(parsed(&["--mode", "model"]).plan().unwrap().has_stages);
    }

    #[test]
    fn every_option_is_part_of_the_plan() {
        let line = "--trajectories 3,1,2 --steps 7 --warmup 0 --rate 2.5 --payload 64 --delay \
             200us --failures 0.25 --faulty verifier,coordinator --stages";
        let arguments = parsed(&line.split_whitespace().collect::<Vec<_>>());

        assert_eq!(arguments.counts(), [3, 1, 2]);
        let faults = Faults {
            delay: Duration::from_micros(200),
            failures: 0.25,
            faulty: vec![Role::Verifier, Role::Coordinator],
        };

        let plan = Plan {
            length: Length::Steps(7),
            warmup: Duration::ZERO,
            rate: Some(2.5),
            has_stages: true,
            payload_bytes: 64,
            faults,
        };

        assert_eq!(arguments.plan().unwrap(), plan);
        assert_eq!(parsed(&["--sweep"]).counts(), [1, 10, 100, 1_000, 10_000]);
        assert_eq!(parsed(&["--duration", "1500ms"]).plan().unwrap().length, Length::Seconds(1.5));
    }

    #[test]
    fn contradictory_options_are_refused() {
        for (line, parts) in [
            ("--mode http", &["--url", "http://"][..]),
            ("--url http://a", &["--url", "--mode http", "not ring"]),
            ("--mode model --durable", &["--durable", "--mode ring", "not model"]),
            ("--mode model --delay 5ms", &["--delay", "ring or engine"]),
            ("--mode http --url http://a --payload 3", &["--payload", "not http"]),
            ("--faulty verifier", &["--faulty", "--delay or --failures"]),
            ("--legs", &["--legs", "give --stages"]),
            ("--task n-queens", &["--task", "http or model"]),
        ] {
            let error =
                parsed(&line.split(' ').collect::<Vec<_>>()).plan().unwrap_err().to_string();
            assert!(parts.iter().all(|part| error.contains(part)), "{line}: {error}");
        }

        for line in [
            "--sweep --trajectories 5",
            "--steps 5 --duration 5s",
            "--journal file",
            "--trajectories 100001",
            "--trajectories 1,0",
            "--payload 1048577",
            "--mode bare",
        ] {
            let line = [&["loadtest"], line.split(' ').collect::<Vec<_>>().as_slice()].concat();
            assert!(Line::try_parse_from(line.clone()).is_err(), "{line:?}");
        }
    }
}
