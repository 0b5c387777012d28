//! A hundred runs under way and more coming in, while the daemon is killed at random moments and started again on the
//! same journal. `make chaos KILLS=1000` does it for long.
#![allow(clippy::disallowed_methods, reason = "these tests measure other processes, in real time")]

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use crate::daemon::{Daemon, Home, PATIENCE, client, is_over, post_with_key};
use crate::figures::{alone, from_env, load, optimised, percentile};
use crate::records::Remembered;

const SUBMITTERS: usize = 4;
/// Runs at the beginning, and at most so many more after each kill.
const RUNS: usize = optimised(100, 24);
const MORE: usize = 4;
/// How often the records are read between two kills, at most.
const READS_MAX: u32 = 12;
/// Lines of its log after which a daemon is killed that is starting or taking up runs.
const LINES_MAX: u32 = 60;
/// The daemon's own aim, and what a machine that does other things at the same time may add to it.
const READY: Duration = Duration::from_secs(2);
const ALLOWANCE: Duration = Duration::from_secs(optimised(3, 60));

const SETS: [&str; 4] = [
    "agents.executor.implementation=scripted",
    "server.queue_max=1000000",
    "log.level=warn",
    // Runs of thousands of steps with errors pop often.
    "run.pops_max=1000000",
];

/// What the run with this number is asked for: long and short, alone and in company, all with errors.
fn request(number: usize) -> Value {
    let discs = optimised(13, 6) + number % 3;
    match number % 5 {
        0 | 1 => {
            json!({"task": "tower-of-hanoi", "input": {"n": discs, "from": 0, "to": 2}, "fanout": 1, "seed": number})
        }
        2 => {
            json!({"task": "tower-of-hanoi", "input": {"n": discs - 1, "from": 0, "to": 1}, "fanout": 2, "seed": number})
        }
        3 => json!({"task": "bubble-sort", "difficulty": "hard", "index": number % 200, "fanout": 2, "seed": number}),
        _ => {
            json!({"task": "dfa-simulation", "difficulty": "hard", "index": number % 200, "fanout": 3, "seed": number})
        }
    }
}

/// What those who submit and the one who kills tell each other.
#[derive(Default)]
struct State {
    /// Of the daemon that is up, and how many were up before.
    address: Option<String>,
    generation: u32,
    /// Runs that may be handed in so far, and those that were begun to be.
    allowed: usize,
    begun: usize,
    is_over: bool,
    /// Numbers of runs to their ids.
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

    /// Waits until it is so.
    fn until(&self, is_so: impl Fn(&State) -> bool) -> MutexGuard<'_, State> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (state, waited) = self
            .changed
            .wait_timeout_while(state, PATIENCE * 5, |state| !is_so(state))
            .unwrap_or_else(PoisonError::into_inner);
        assert!(!waited.timed_out(), "nothing has changed for too long");
        state
    }

    /// The next run to hand in; `None` when there are enough.
    fn next(&self) -> Option<usize> {
        let mut state = self.until(|state| state.begun < state.allowed || state.is_over);
        (state.begun < state.allowed).then(|| {
            state.begun += 1;
            state.begun - 1
        })
    }

    /// Hands in runs, each as often as it takes until it is acknowledged.
    fn submit(&self) {
        let client = client();
        while let Some(number) = self.next() {
            let mut generation = 0;
            loop {
                let address = {
                    let state = self.until(|state| state.address.is_some() && state.generation > generation);
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
                    // Whether it was taken is not known: the same is sent to the next daemon.
                    Err(_) => self.change(|state| state.cut_off += 1),
                }
            }
        }
    }
}

fn key(number: usize) -> String {
    format!("run {number}")
}

/// Starts a daemon and kills it after so many lines of its log: before it is ready, or while it takes up runs.
fn start_and_kill(home: &Arc<Home>, lines: u32) {
    let mut child = Daemon::command(home, &[&SETS[..], &["log.level=info"]].concat()).spawn().unwrap();
    let stderr = BufReader::new(child.stderr.take().unwrap());
    let (say, log) = crossbeam_channel::unbounded();
    let reader = std::thread::spawn(move || stderr.lines().map_while(Result::ok).for_each(|line| drop(say.send(line))));
    // It may have less to say than that.
    let heard: Vec<_> = (0..lines).map_while(|_| log.recv_timeout(Duration::from_secs(1)).ok()).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    reader.join().unwrap();
    let heard: Vec<_> = heard.into_iter().chain(log.try_iter()).collect();
    assert!(!heard.iter().any(|line| line.contains("given up") || line.contains("panicked")), "{heard:#?}");
}

/// Starts a daemon and waits until it is ready for runs; gives how long that took.
fn start(home: &Arc<Home>) -> (Daemon, Duration) {
    let daemon = Daemon::start_in(home, &SETS);
    let up = Instant::now();
    assert_eq!(daemon.get("/livez").status, 200, "at once, whatever there is to take up");
    daemon.until("/readyz", |body| body["ready"] == true);
    let took = daemon.ready_after + up.elapsed();
    (daemon, took)
}

#[test]
fn nothing_is_lost_by_kills_at_random_moments() {
    let _alone = alone();
    let kills = from_env("PRIME_CHAOS_KILLS", optimised(30, 8));
    let seed = from_env("PRIME_CHAOS_SEED", rand::random());
    eprintln!("chaos: PRIME_CHAOS_SEED={seed} PRIME_CHAOS_KILLS={kills}, {}", load());
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let world = World::default();
    let (home, mut remembered, mut ready, mut amid) = (Home::new(), Remembered::default(), Vec::new(), 0);
    let mut open = Vec::new();
    let began = Instant::now();
    let daemon = std::thread::scope(|scope| {
        for _ in 0..SUBMITTERS {
            scope.spawn(|| world.submit());
        }
        let mut daemon = Daemon::start_in(&home, &SETS);
        for kill in 0..kills {
            world.change(|state| {
                (state.address, state.generation) = (Some(daemon.address.clone()), state.generation + 1);
                state.allowed += if kill == 0 { RUNS } else { MORE };
            });
            if kill == 0 {
                drop(world.until(|state| state.acknowledged.len() >= RUNS / 2));
            }
            for _ in 0..rng.random_range(0..=READS_MAX) {
                remembered.see_all(&daemon);
            }
            open.push(daemon.get("/readyz").body["live_runs"].as_u64().expect("a number"));
            daemon.kill();
            world.change(|state| state.address = None);
            while rng.random_ratio(1, 3) {
                start_and_kill(&home, rng.random_range(0..=LINES_MAX));
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
        // The stream ends with the run.
        daemon.text(&format!("{location}/events?after=1000000000"));
        let record = daemon.get(&location).body;
        assert!(is_over(&record) && record["failure"].is_null(), "{record}");
        remembered.see(&record);
        remembered.check(&daemon, &location);
        let again = daemon.with_key(&key(*number), &request(*number));
        assert_eq!((again.status, again.body["id"].as_str()), (200, Some(id.as_str())), "{}", key(*number));
    }
    assert_eq!(state.acknowledged.len(), state.allowed, "every run was acknowledged in the end");
    assert_eq!(listed(&daemon), state.allowed, "each key is one run, and there are no others");
    let p99 = percentile(&ready, 0.99);
    eprintln!(
        "chaos: {kills} kills, and {amid} amid a start, in {killed_for:.1?}; {} runs, {} requests cut off, {} records \
         remembered; {} to {} runs open at a kill; ready again after p50 {:.0?}, p99 {p99:.0?} (aim {READY:.0?}); all over after {:.1?}; {}",
        state.allowed,
        state.cut_off,
        remembered.len(),
        open.iter().min().expect("a kill"),
        open.iter().max().expect("a kill"),
        percentile(&ready, 0.5),
        began.elapsed(),
        load()
    );
    assert!(p99 <= READY + ALLOWANCE, "{p99:?}");
    let busy = open.iter().filter(|open| **open > 0).count();
    assert!(busy * 2 > open.len(), "runs were under way at {busy} kills only: they are too short for this machine");
}

/// How many runs there are.
fn listed(daemon: &Daemon) -> usize {
    let (mut count, mut after) = (0, String::new());
    loop {
        let page = daemon.get(&format!("/v1/runs?limit=1000{after}")).body;
        count += page["runs"].as_array().expect("runs").len();
        let Some(last) = page["next"].as_str() else { return count };
        after = format!("&after={last}");
    }
}
