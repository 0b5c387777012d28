//! Whole runs whose three agents are programs.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use prime_agent_set::process::{ProcessCoordinator, ProcessExecutor, ProcessVerifier};
use prime_agent_set::{AgentSet, Names};
use prime_bench::tasks::{self, Difficulty, Kind, Kinds};
use prime_protocol::{
    Assurance, Budget, Cost, Ending, Limits, Outcome, RewardWeights, RunPlan, Score, Strategy,
    Thresholds, VoteRule,
};
use prime_runtime::{
    Diversity, Placement, RestartLimit, RunSampling, Runtime, RuntimePlan, Silent, Submission,
};
use prime_settings::Program;
use rustix::process::Signal;

use crate::binary::shown;
use crate::daemon::{Daemon, Home, PATIENCE};

fn command(parts: &[&str]) -> Program {
    let command = ["python3", "-B"].iter().chain(parts).map(|part| (*part).to_owned()).collect();
    Program { command, processes: 2, restarts_max: 1_000, ..Program::default() }
}

fn example(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("agents/examples").join(name);
    path.to_str().expect("plain").to_owned()
}

/// The example verifier and coordinator, with the test's own executor.
fn agents(executor: &Program) -> AgentSet {
    let kinds: Kinds = [Kind::Format, Kind::Invariant, Kind::Terminal].into_iter().collect();
    let thresholds = Thresholds { soft: Score::ZERO, hard: Score::ZERO, retries_max: 0 };
    let executor = ProcessExecutor::start("test", executor).expect("a program");
    let verifier =
        ProcessVerifier::start("test", &command(&[&example("verifier.py")]), kinds.into())
            .expect("a program");
    let coordinator =
        ProcessCoordinator::start("test", &command(&[&example("coordinator.py")]), thresholds)
            .expect("a program");

    let names = Names {
        executor: "test".into(),
        verifier: "test".into(),
        coordinator: "test".into(),
        locator: None,
    };
    AgentSet::of(
        names,
        move || Arc::new(executor.clone()),
        move || Arc::new(verifier.clone()),
        move || Arc::new(coordinator.clone()),
    )
}

/// Outcomes of tower-of-hanoi runs, distributed over two cells.
fn outcomes(executor: &Program, runs: u64) -> Vec<(Outcome, u64)> {
    let agents = agents(executor);
    let plan = RuntimePlan {
        cells: 2,
        placement: Placement::Shared,
        restart_limit: RestartLimit { restarts_max: 10, window: Duration::from_mins(1) },
        hang_after: None,
        in_flight_max: 64,
    };
    let work = async move {
        let runtime = Runtime::start(&plan, Arc::new(agents));
        let task = tasks::find("tower-of-hanoi").expect("listed");
        let mut handles = Vec::new();
        for seed in 0..runs {
            let problem = task.generate(Difficulty::Easy, seed);
            let steps = problem.reference().steps;
            let submission = Submission {
                problem,
                plan: RunPlan {
                    strategy: Strategy::Iterative,
                    vote: VoteRule::Majority,
                    early_stop: true,
                    adaptive_rounds: true,
                    fanout: 2,
                    max_rounds: 2,
                    confidence: 0.5,
                    limits: Limits {
                        attempts_max: 8,
                        pops_max: 1_000,
                        snapshot_every_frames: 16,
                        ..Limits::DEFAULT
                    },
                    budget: Budget {
                        steps: 10_000,
                        tokens: 0,
                        completion_tokens: 0,
                        cost: Cost::ZERO,
                        wall_ms: u64::MAX,
                    },
                    weights: RewardWeights {
                        task: 10.0,
                        verify: 1.0,
                        efficiency: 0.5,
                        format: 0.1,
                    },
                    basis: prime_protocol::Basis::program(Kinds::WITHOUT_TRANSITION),
                    locates: false,
                    learnt: Vec::new(),
                    speculate: false,
                },
                sampling: RunSampling {
                    temperature: 0.7,
                    top_p: 0.95,
                    seed,
                    diversity: Diversity::default(),
                },
                observer: Arc::new(Silent),
                suspended: None,
            };
            handles.push((runtime.submit(submission), steps));
        }

        let mut outcomes = Vec::new();
        for (mut handle, steps) in handles {
            outcomes.push((handle.outcome().await.expect("the cell lives"), steps));
        }
        outcomes
    };

    let patience = Duration::from_mins(2);
    actix::System::new()
        .block_on(async { tokio::time::timeout(patience, work).await.expect("it hangs") })
}

#[test]
fn programs_solve_and_verify_in_a_ring() {
    for (outcome, steps) in outcomes(&command(&[&example("executor.py")]), 3) {
        assert_eq!(
            (&outcome.ending, outcome.assurance),
            (&Ending::Agreed, Some(Assurance::Unrefuted)),
            "{outcome:?}"
        );
        assert_eq!(outcome.steps, steps, "no detours");
    }
}

/// True if a process runs; a zombie, which its new parent has not waited for yet, does not.
fn runs(pid: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

#[test]
#[expect(clippy::disallowed_methods, reason = "it waits for other processes, in real time")]
fn programs_end_with_the_daemon_and_so_does_all_that_they_started() {
    let home = Home::new();
    let (program, pids) =
        (home.journal().with_file_name("deaf.py"), home.journal().with_file_name("pids"));

    // It ignores the end of input, and so do a child and a grandchild in a session of its own,
    // whose parent has gone.
    let code = format!(
        r#"
import os, signal, subprocess, sys, time
forever = "import time\nwhile True: time.sleep(60)"
child = subprocess.Popen([sys.executable, "-c", forever])
between = "import subprocess, sys; print(subprocess.Popen([sys.executable, '-c', sys.argv[1]], start_new_session=True).pid)"
subprocess.run([sys.executable, "-c", between, forever], stdout=open({far:?}, "w"))
sys.stdin.readline()
print('{{"prime":1}}', flush=True)
with open({temporary:?}, "w") as file:
    file.write(f"{{os.getpid()}} {{child.pid}} " + open({far:?}).read())
os.rename({temporary:?}, {pids:?})
while True:
    sys.stdin.readline() or time.sleep(60)
"#,
        far = shown(&home.journal().with_file_name("far")),
        temporary = shown(&home.journal().with_file_name("temporary")),
        pids = shown(&pids),
    );

    std::fs::write(&program, code).expect("written");
    let command =
        format!("agents.executor.program.command=[\"python3\", \"-B\", {:?}]", shown(&program));
    let mut daemon = Daemon::command(
        &home,
        &[
            "agents.executor.implementation=process",
            &command,
            "agents.executor.program.processes=1",
        ],
    );
    daemon.env("PATH", std::env::var("PATH").expect("a path"));
    let daemon = Daemon::spawn(daemon, &home).expect("started");

    let began = Instant::now();
    let text = loop {
        if let Ok(text) = std::fs::read_to_string(&pids) {
            break text;
        }
        assert!(began.elapsed() < PATIENCE, "the program does not start");
        std::thread::yield_now();
    };

    let pids: Vec<&str> = text.split_whitespace().collect();
    assert!(pids.len() == 3 && pids.iter().all(|pid| runs(pid)), "{text}");

    let (code, log) = daemon.end_by(Signal::TERM);
    assert_eq!(code, Some(0), "{log}");

    // A signal that was sent may still be on its way.
    for pid in pids {
        while runs(pid) {
            assert!(began.elapsed() < PATIENCE, "{pid} of {text} outlived the daemon");
            std::thread::yield_now();
        }
    }
}

#[test]
fn an_executor_that_dies_and_errs_loses_no_run() {
    // It exits in every ninth turn, and some moves are wrong.
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("dying.py");
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("agents/examples");
    let code = format!(
        r#"
import os, sys
sys.path.insert(0, {examples:?})
from executor import next_move
from prime_agent import serve
turns = 0
def propose(request):
    global turns
    turns += 1
    if turns == 9:
        os._exit(1)
    disk, source, target = next_move(request["state"]["pegs"], request["input"]["to"])
    wrong = f"move {{disk}} {{source}} {{source}}"
    right = f"move {{disk}} {{source}} {{target}}"
    return {{"action": right if turns % 4 or wrong in request["excluded"] else wrong}}
serve("executor", propose)
"#
    );

    std::fs::write(&program, code).expect("written");
    for (outcome, _) in outcomes(&command(&[program.to_str().expect("plain")]), 2) {
        assert_eq!(
            (&outcome.ending, outcome.assurance),
            (&Ending::Agreed, Some(Assurance::Unrefuted)),
            "{outcome:?}"
        );
        assert!(outcome.backtracks > 0, "{outcome:?}");
    }
}
