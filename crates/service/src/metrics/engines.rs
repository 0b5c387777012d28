//! Metrics of the configured engines.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

use super::labels::Engine;
use super::level;
use super::process::resident_bytes;
use prime_engine::{EngineCounts, EngineStatus};

/// A counter's name, help and value. Each worker starts at 0 again.
type Row = (&'static str, &'static str, fn(&EngineCounts) -> u64);

const COUNTERS: [Row; 12] = [
    ("prime_engine_decodes", "Decodes of llama.cpp", |counts| counts.decodes),
    ("prime_engine_decoded_tokens", "Tokens in decodes, of prompts and generated", |counts| {
        counts.decoded_tokens
    }),
    ("prime_engine_prompt_tokens", "Tokens of the prompts of turns", |counts| counts.prompt_tokens),
    (
        "prime_engine_shared_tokens",
        "Tokens of prompts that were in the KV cache already; divided by the tokens of prompts: the hit rate",
        |counts| counts.shared_tokens,
    ),
    ("prime_engine_generated_tokens", "Generated tokens", |counts| counts.generated_tokens),
    (
        "prime_engine_forced_tokens",
        "Generated tokens that the grammar determined, which were not sampled",
        |counts| counts.forced_tokens,
    ),
    (
        "prime_engine_drafted_tokens",
        "Tokens computed ahead of their choice, which `speculation` drafted",
        |counts| counts.drafted_tokens,
    ),
    ("prime_engine_accepted_tokens", "Drafted tokens that were then chosen", |counts| {
        counts.accepted_tokens
    }),
    ("prime_engine_forks", "Turns that began with a prefix of a sequence still in use", |counts| {
        counts.forks
    }),
    ("prime_engine_rollbacks", "Turns that continued a truncated sequence", |counts| {
        counts.rollbacks
    }),
    ("prime_engine_evictions", "Cached sequences evicted for others", |counts| counts.evictions),
    ("prime_engine_cancelled", "Cancelled turns", |counts| counts.cancelled),
];

/// The metrics of engines.
#[derive(Default)]
pub(super) struct Engines {
    up: Family<Engine, Gauge>,
    restarts: Family<Engine, Counter>,
    in_flight: Family<Engine, Gauge>,
    sequences: Family<Engine, Gauge>,
    counters: [Family<Engine, Counter>; COUNTERS.len()],
    decode_p99: Family<Engine, Gauge<f64, std::sync::atomic::AtomicU64>>,
    memory: Family<Engine, Gauge>,
    /// The engines whose status was reported.
    told: Mutex<BTreeSet<String>>,
}

impl Engines {
    pub(super) fn register(&self, of: &mut Registry) {
        of.register("prime_engine_up", "Whether the engine's worker takes turns", self.up.clone());
        of.register(
            "prime_engine_restarts",
            "Workers started after the first",
            self.restarts.clone(),
        );
        of.register(
            "prime_engine_in_flight",
            "Turns that wait for the engine",
            self.in_flight.clone(),
        );
        of.register(
            "prime_engine_live_sequences",
            "Turns that are being computed",
            self.sequences.clone(),
        );

        for ((name, help, _), counter) in COUNTERS.iter().zip(&self.counters) {
            of.register(*name, *help, counter.clone());
        }

        let help = "99th percentile of the time of a decode; 0 until enough were seen";
        of.register_with_unit(
            "prime_engine_decode_p99",
            help,
            Unit::Seconds,
            self.decode_p99.clone(),
        );

        let help = "Memory that the engine's worker holds; 0 without a worker of its own";
        of.register_with_unit(
            "prime_engine_resident_memory",
            help,
            Unit::Bytes,
            self.memory.clone(),
        );
    }

    /// Forgets engines that are gone: contexts come and go with their adapters.
    pub(super) fn keep_only(&self, present: &BTreeSet<String>) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let gone: Vec<String> = told.difference(present).cloned().collect();
        for name in gone {
            told.remove(&name);
            let engine = Engine { engine: name };
            for gauges in [&self.up, &self.in_flight, &self.sequences, &self.memory] {
                gauges.remove(&engine);
            }
            self.restarts.remove(&engine);
            self.counters.iter().for_each(|counter| {
                counter.remove(&engine);
            });
            self.decode_p99.remove(&engine);
        }
    }

    pub(super) fn tell(&self, status: &EngineStatus) {
        let engine = Engine { engine: status.name.clone() };
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.insert(status.name.clone());
        drop(told);

        self.up.get_or_create(&engine).set(i64::from(status.ready || status.idle));
        self.in_flight.get_or_create(&engine).set(level(status.in_flight as u64));
        self.sequences.get_or_create(&engine).set(i64::from(status.counts.live));

        // The engine itself counts: its totals replace those here.
        let store = |counter: &Counter, value: u64| counter.inner().store(value, Ordering::Relaxed);
        store(&self.restarts.get_or_create(&engine), u64::from(status.restarts));
        for ((.., number), counter) in COUNTERS.iter().zip(&self.counters) {
            store(&counter.get_or_create(&engine), number(&status.counts));
        }

        self.decode_p99.get_or_create(&engine).set(f64::from(status.counts.decode_p99_us) / 1e6);
        // The worker is another process, whose memory is read from the operating system.
        let memory = status.worker_pid.and_then(|pid| resident_bytes(&pid.to_string()));
        self.memory.get_or_create(&engine).set(level(memory.unwrap_or(0)));
    }
}
