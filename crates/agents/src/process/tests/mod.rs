//! Process agents: well-behaved and misbehaving programs.

mod answers;
mod cancellation;
mod conversation;
mod examples;
mod faults;
mod requests;

use std::path::PathBuf;

use super::{ProcessExecutor, ProcessVerifier};
use crate::{Executor, Proposal, Sampling, Verifier};
use prime_bench::tasks::{self, Difficulty, Kinds};
use prime_protocol::trajectory::Limits;
use prime_protocol::{Trajectory, Verdict};
use prime_settings::Program;

const LIMITS: Limits =
    Limits { attempts_max: 8, pops_max: 8, snapshot_every_frames: 8, ..Limits::DEFAULT };
const SAMPLING: Sampling = Sampling { temperature: 0.5, top_p: 0.9, seed: 7 };

/// The preamble of the test programs: `say` writes a line, `ask` waits for one.
const HEAD: &str = r#"
import json, os, sys, time
def say(text):
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
def ask():
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    return json.loads(line)
def hello():
    ask()
    say('{"prime":1}')
"#;

/// A short Python program, which may use `say`, `ask` and `hello`.
fn python(code: &str) -> Program {
    let command =
        ["python3", "-B", "-S", "-c", &format!("{HEAD}\n{code}")].map(str::to_owned).to_vec();
    Program { command, ..Program::default() }
}

fn executor(program: &Program) -> ProcessExecutor {
    ProcessExecutor::start("test", program).expect("a program is named")
}

fn verifier(program: &Program) -> ProcessVerifier {
    ProcessVerifier::start("test", program, Kinds::ALL.into()).expect("a program is named")
}

fn trajectory(slug: &str) -> Trajectory {
    Trajectory::new(
        tasks::find(slug).expect("listed").generate(Difficulty::Easy, 3).start(),
        &LIMITS,
    )
}

async fn propose(agent: &ProcessExecutor) -> Result<Proposal, crate::AgentError> {
    agent.propose(&trajectory("tower-of-hanoi"), SAMPLING).await
}

async fn judge(agent: &ProcessVerifier, line: &str) -> Result<Verdict, crate::AgentError> {
    let mut trajectory = trajectory("tower-of-hanoi");
    // Applicable or not: both are judged.
    let _ = trajectory.machine.propose(line);
    agent.judge(&trajectory, line).await
}

/// True if a process exists and is not a zombie.
fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(PathBuf::from(format!("/proc/{pid}/stat")));
    stat.is_ok_and(|stat| {
        !stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z'))
    })
}

/// True if a process no longer exists.
fn is_gone(pid: u32) -> bool {
    !PathBuf::from(format!("/proc/{pid}")).exists()
}
