//! The daemon is killed at random moments, with many runs open and more being submitted, and
//! restarted on the same journal. `make chaos KILLS=1000` does it for long, and also asserts times.
#![allow(clippy::disallowed_methods, reason = "these tests measure other processes, in real time")]

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use crate::daemon::{Daemon, Home, PATIENCE, client, post_with_key};
use crate::figures::{chaos_seed, from_env, is_chaos, load, optimised, percentile, promise};
use crate::records::Remembered;

const SUBMITTERS: usize = 4;
/// Runs that may be submitted after each kill.
const MORE: usize = 4;
/// Most reads of the records between two kills.
const READS_MAX: u32 = 12;
/// Most lines of its log, and then most requests, until a daemon that is starting or resuming runs
/// is killed.
const LINES_MAX: u32 = 12;
const REQUESTS_MAX: u32 = 20;
/// The promise, and an allowance for a machine with other load.
const READY: Duration = Duration::from_secs(2);
const ALLOWANCE: Duration = Duration::from_secs(optimised(3, 60));

const SETS: [&str; 4] = [
    "agents.executor.implementation=scripted",
    "server.queue_max=1000000",
    "log.level=warn",
    // Runs of thousands of steps with errors pop often.
    "run.pops_max=1000000",
];

/// The request of a run: long and short ones, with one trajectory and several, all with errors.
fn request(number: usize) -> Value {
    let discs = optimised(13, 6) + number % 3;
    match number % 5 {
        0 | 1 => {
            json!({
                "task": "tower-of-hanoi", "input": {"n": discs, "from": 0, "to": 2}, "fanout": 1,
                "seed": number,
            })
        }
        2 => {
            json!({
                "task": "tower-of-hanoi", "input": {"n": discs - 1, "from": 0, "to": 1},
                "fanout": 2, "seed": number,
            })
        }
        3 => {
            json!({
                "task": "bubble-sort", "difficulty": "hard", "index": number % 200, "fanout": 2,
                "seed": number,
            })
        }
        _ => {
            json!({
                "task": "dfa-simulation", "difficulty": "hard", "index": number % 200, "fanout": 3,
                "seed": number,
            })
        }
    }
}

/// Shared by the submitters and the killer.
#[derive(Default)]
struct State {
    /// Address of the daemon that is up, and the number of daemons so far.
    address: Option<String>,
    generation: u32,
    /// Runs that may be submitted so far, and those whose submission has begun.
    allowed: usize,
    begun: usize,
    is_over: bool,
    /// Ids of acknowledged runs, by the runs' numbers.
    acknowledged: BTreeMap<usize, String>,
    cut_off: usize,
}

#[derive(Default)]
struct World {
    state: Mutex<State>,
    changed: Condvar,
}

impl World {
    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_all();
    }

    /// Waits until a condition holds.
    fn until(&self, is_so: impl Fn(&State) -> bool) -> MutexGuard<'_, State> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (state, waited) = self
            .changed
            .wait_timeout_while(state, PATIENCE * 5, |state| !is_so(state))
            .unwrap_or_else(PoisonError::into_inner);
        assert!(!waited.timed_out(), "nothing has changed for too long");
        state
    }

    /// The next run to submit; `None` at the end.
    fn next(&self) -> Option<usize> {
        let mut state = self.until(|state| state.begun < state.allowed || state.is_over);
        (state.begun < state.allowed).then(|| {
            state.begun += 1;
            state.begun - 1
        })
    }

    /// Submits runs, each repeatedly until it is acknowledged.
    fn submit(&self) {
        let client = client();
        while let Some(number) = self.next() {
            let mut generation = 0;
            loop {
                let address = {
                    let state = self
                        .until(|state| state.address.is_some() && state.generation > generation);
                    generation = state.generation;
                    state.address.clone().expect("it is up")
                };
                match post_with_key(&client, &address, &key(number), &request(number)) {
                    Ok(answer) => {
                        assert!([200, 202].contains(&answer.status), "{answer:?}");
                        let id = answer.body["id"].as_str().expect("an id").to_owned();
                        self.change(|state| drop(state.acknowledged.insert(number, id)));
                        break;
                    }
                    // It may have been accepted or not, so the next daemon gets the same request.
                    Err(_) => self.change(|state| state.cut_off += 1),
                }
            }
        }
    }
}

fn key(number: usize) -> String {
    format!("run {number}")
}

/// Starts a daemon and kills it while it starts or resumes runs: after this many lines of its log,
/// or, once it is ready, after this many requests.
fn start_and_kill(home: &Arc<Home>, lines: u32, requests: u32) {
    let mut child =
        Daemon::command(home, &[&SETS[..], &["log.level=info"]].concat()).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut log = String::new();

    for _ in 0..lines {
        let start = log.len();
        assert!(stderr.read_line(&mut log).unwrap() > 0, "it exited: {log}");
        if let Some((_, address)) = log[start..].trim().split_once("ready on http://") {
            let client = client();
            for _ in 0..requests {
                client.get(format!("http://{address}/v1/runs?limit=1")).send().unwrap();
            }
            break;
        }
    }

    child.kill().unwrap();
    child.wait().unwrap();
    stderr.read_to_string(&mut log).unwrap();
    assert!(!log.contains("given up") && !log.contains("panicked"), "{log}");
}

/// Starts a daemon and waits until it is ready; returns how long that took.
fn start(home: &Arc<Home>) -> (Daemon, Duration) {
    let daemon = Daemon::start_in(home, &SETS);
    let up = Instant::now();
    assert_eq!(daemon.get("/livez").status, 200, "at once, however many runs there are to resume");
    daemon.until("/readyz", |body| body["ready"] == true);
    let took = daemon.ready_after + up.elapsed();
    (daemon, took)
}

#[test]
fn nothing_is_lost_by_kills_at_random_moments() {
    let kills = from_env("PRIME_CHAOS_KILLS", 8);
    let first = if is_chaos() { 100 } else { 24 };
    eprintln!("chaos: PRIME_CHAOS_KILLS={kills}, {}", load());
    let mut rng = ChaCha8Rng::seed_from_u64(chaos_seed());

    let world = World::default();
    let (home, mut remembered, mut ready, mut amid) =
        (Home::new(), Remembered::default(), Vec::new(), 0);
    let mut open = Vec::new();

    let began = Instant::now();
    let daemon = std::thread::scope(|scope| {
        for _ in 0..SUBMITTERS {
            scope.spawn(|| world.submit());
        }

        let mut daemon = Daemon::start_in(&home, &SETS);
        for kill in 0..kills {
            world.change(|state| {
                (state.address, state.generation) =
                    (Some(daemon.address.clone()), state.generation + 1);
                state.allowed += if kill == 0 { first } else { MORE };
            });
            if kill == 0 {
                drop(world.until(|state| state.acknowledged.len() >= first / 2));
            }

            for _ in 0..rng.random_range(0..=READS_MAX) {
                remembered.see_all(&daemon);
            }

            open.push(daemon.get("/readyz").body["live_runs"].as_u64().expect("a number"));
            daemon.kill();
            world.change(|state| state.address = None);

            while rng.random_ratio(1, 3) {
                start_and_kill(
                    &home,
                    rng.random_range(0..=LINES_MAX),
                    rng.random_range(0..=REQUESTS_MAX),
                );
                amid += 1;
            }

            let (next, took) = start(&home);
            daemon = next;
            ready.push(took);
        }

        world.change(|state| {
            (state.address, state.generation, state.is_over) =
                (Some(daemon.address.clone()), state.generation + 1, true);
        });
        daemon
    });
    let killed_for = began.elapsed();

    let state = world.state.lock().unwrap();
    for (number, id) in &state.acknowledged {
        let location = format!("/v1/runs/{id}");
        let record = daemon.finished(&location);
        assert!(record["failure"].is_null(), "{record}");
        remembered.see(&record);
        remembered.check(&daemon, &location);
        let again = daemon.with_key(&key(*number), &request(*number));
        assert_eq!(
            (again.status, again.body["id"].as_str()),
            (200, Some(id.as_str())),
            "{}",
            key(*number)
        );
    }

    assert_eq!(state.acknowledged.len(), state.allowed, "every run was acknowledged in the end");
    assert_eq!(listed(&daemon), state.allowed, "each key is one run, and there are no others");

    eprintln!(
        "chaos: {kills} kills, and {amid} during a start, in {killed_for:.1?}; {} runs, {} \
         requests cut off, {} records remembered; {} to {} runs open at a kill; ready again after \
         p50 {:.0?}; all over after {:.1?}; {}",
        state.allowed,
        state.cut_off,
        remembered.len(),
        open.iter().min().expect("a kill"),
        open.iter().max().expect("a kill"),
        percentile(&ready, 0.5),
        began.elapsed(),
        load()
    );

    promise("p99 until ready after a kill", percentile(&ready, 0.99), READY + ALLOWANCE);
    let busy = open.iter().filter(|open| **open > 0).count();
    assert!(
        !is_chaos() || busy * 2 > open.len(),
        "runs were open at {busy} kills only: too short for this machine"
    );
}

/// The number of runs.
fn listed(daemon: &Daemon) -> usize {
    let (mut count, mut after) = (0, String::new());
    loop {
        let page = daemon.get(&format!("/v1/runs?limit=1000{after}")).body;
        count += page["runs"].as_array().expect("runs").len();
        let Some(last) = page["next"].as_str() else { return count };
        after = format!("&after={last}");
    }
}
