//! What was measured, how and where, in a line each.

use super::figures::{count, figure, memory, plain};
use super::report::{Length, Load, Mode, Report};

/// A mode as the command line names it.
pub fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Ring => "ring",
        Mode::Engine => "engine",
        Mode::Http => "http",
        Mode::Model => "model",
    }
}

/// What a trajectory's latency is of.
pub fn unit(mode: Mode) -> &'static str {
    if mode == Mode::Http { "run" } else { "step" }
}

/// What the latency of a load is the time between.
fn latency(mode: Mode, load: &Load) -> &'static str {
    match (mode, load.rate) {
        (Mode::Http, _) => "latency is from the moment at which a run was due to its end as the client sees it",
        (_, None) => "latency is from one decision of a trajectory to its next",
        (_, Some(_)) => "latency is from the moment at which a step was due to its decision",
    }
}

fn length(length: Length) -> String {
    match length {
        Length::Steps(steps) => format!("{} steps a trajectory", count(steps)),
        Length::Seconds(seconds) => format!("{} s a point", plain(seconds)),
    }
}

/// What the agents were made to do wrong; empty where it was nothing.
fn faults(load: &Load) -> String {
    let mut faults = Vec::new();
    if load.delay_us > 0 {
        faults.push(format!("waits {} µs", count(load.delay_us)));
    }
    if load.failures > 0.0 {
        faults.push(format!("fails {} % of its turns", plain(load.failures * 100.0)));
    }
    if faults.is_empty() {
        return String::new();
    }
    let who = if load.faulty.is_empty() { "agents".to_owned() } else { load.faulty.join(", ") };
    format!("; of {who}, each {}", faults.join(" and "))
}

/// What was measured how, without the name of the mode.
pub fn how(report: &Report) -> String {
    let load = &report.load;
    let unit = unit(report.mode);
    let mut text =
        load.rate.map_or_else(|| "closed loop".to_owned(), |rate| format!("open loop, {} {unit}s/s due", plain(rate)));
    text += &format!(", {} after {} s of warm-up", length(load.length), plain(load.warmup_seconds));
    if load.payload_bytes > 0 {
        text += &format!(", {} bytes of payload", count(load.payload_bytes as u64));
    }
    if load.durable {
        text += ", steps committed to a journal";
    }
    text += &faults(load);
    if let Some(facts) = &report.runtime {
        let cells = if facts.cells == 1 { "cell" } else { "cells" };
        text += &format!(
            "; {} {cells}, placement {}, executor {}, verifier {}, coordinator {}",
            facts.cells, facts.placement, facts.executor, facts.verifier, facts.coordinator
        );
    }
    format!("{text}; {}", latency(report.mode, load))
}

/// By what, where and when.
pub fn place(report: &Report) -> String {
    let machine = &report.machine;
    let cores = if machine.cores == 1 { "core" } else { "cores" };
    format!(
        "prime-agents {} on {}, {} {cores}, {}, {}, load average {} before it began; {}",
        report.version,
        machine.processor,
        machine.cores,
        memory(machine.memory_bytes),
        machine.system,
        figure(machine.load_average),
        report.started
    )
}

#[cfg(test)]
mod tests {
    use super::super::report::Machine;
    use super::super::testing::{open_loop, report};
    use super::*;

    #[test]
    fn a_load_is_said_whole() {
        assert_eq!(
            how(&report()),
            "closed loop, 10 s a point after 1 s of warm-up; 2 cells, placement shared, executor null, verifier rules, \
             coordinator threshold; latency is from one decision of a trajectory to its next"
        );
        assert_eq!(
            how(&open_loop()),
            "open loop, 1,500 steps/s due, 20,000 steps a trajectory after 0.5 s of warm-up, 4,096 bytes of payload, \
             steps committed to a journal; of executor, verifier, each waits 100 µs and fails 1 % of its turns; latency \
             is from the moment at which a step was due to its decision"
        );
        let http = how(&Report { mode: Mode::Http, ..open_loop() });
        assert!(http.contains("1,500 runs/s due") && http.ends_with("its end as the client sees it"), "{http}");
    }

    #[test]
    fn the_machine_is_named() {
        assert_eq!(
            place(&report()),
            "prime-agents 0.1.0 on Example 9000, 2 cores, 8.00 GiB, Linux 6.1.0, load average 0.250 before it began; \
             2026-11-21T10:00:00Z"
        );
        let one = place(&Report { machine: Machine { cores: 1, ..report().machine }, ..report() });
        assert!(one.contains(", 1 core, "), "{one}");
    }
}
