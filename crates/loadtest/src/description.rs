//! Describes in one line each how and where a report was measured.

use super::number_format::{count, figure, memory, plain};
use super::report::{Length, Load, Mode, Report};

/// The mode's name on the command line.
pub fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Ring => "ring",
        Mode::Engine => "engine",
        Mode::Http => "http",
        Mode::Model => "model",
    }
}

/// What one latency covers.
pub fn unit(mode: Mode) -> &'static str {
    if mode == Mode::Http { "run" } else { "step" }
}

fn latency(mode: Mode, load: &Load) -> &'static str {
    match (mode, load.rate) {
        (Mode::Http, _) => "latency is from when a run was due to its end as the client sees it",
        (_, None) => "latency is from one decision of a trajectory to its next",
        (_, Some(_)) => "latency is from when a step was due to its decision",
    }
}

fn length(length: Length) -> String {
    match length {
        Length::Steps(steps) => format!("{} steps per trajectory", count(steps)),
        Length::Seconds(seconds) => format!("{} s per point", plain(seconds)),
    }
}

/// The injected faults; empty if there are none.
fn faults(load: &Load) -> String {
    let mut faults = Vec::new();
    if load.delay_us > 0 {
        faults.push(format!("delayed by {} µs", count(load.delay_us)));
    }
    if load.failures > 0.0 {
        faults.push(format!("failing {} % of their turns", plain(load.failures * 100.0)));
    }

    if faults.is_empty() {
        return String::new();
    }
    let who = if load.faulty.is_empty() { "agents".to_owned() } else { load.faulty.join(", ") };
    format!("; {who} {}", faults.join(" and "))
}

/// How it was measured, without the name of the mode.
pub fn method(report: &Report) -> String {
    let load = &report.load;
    let unit = unit(report.mode);
    let mut text = load.rate.map_or_else(
        || "closed loop".to_owned(),
        |rate| format!("open loop, {} {unit}s/s due", plain(rate)),
    );
    text += &format!(", {} after {} s of warm-up", length(load.length), plain(load.warmup_seconds));

    if load.payload_bytes > 0 {
        text += &format!(", payload of {} bytes", count(load.payload_bytes as u64));
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

/// Version, machine and time.
pub fn environment(report: &Report) -> String {
    let machine = &report.machine;
    let cores = if machine.cores == 1 { "core" } else { "cores" };
    format!(
        "prime-agents {} on {}, {} {cores}, {}, {}, load average {} before the test; {}",
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
    use super::super::report::HostInfo;
    use super::super::testing::{open_loop, report};
    use super::*;

    #[test]
    fn every_part_of_a_load_is_described() {
        assert_eq!(
            method(&report()),
            "closed loop, 10 s per point after 1 s of warm-up; 2 cells, placement shared, executor \
             null, verifier rules, coordinator threshold; latency is from one decision of a \
             trajectory to its next"
        );
        assert_eq!(
            method(&open_loop()),
            "open loop, 1,500 steps/s due, 20,000 steps per trajectory after 0.5 s of warm-up, \
             payload of 4,096 bytes, steps committed to a journal; executor, verifier delayed by \
             100 µs and failing 1 % of their turns; latency is from when a step was due to its \
             decision"
        );
        let http = method(&Report { mode: Mode::Http, ..open_loop() });
        assert!(
            http.contains("1,500 runs/s due") && http.ends_with("its end as the client sees it"),
            "{http}"
        );
    }

    #[test]
    fn the_environment_names_version_machine_and_time() {
        assert_eq!(
            environment(&report()),
            "prime-agents 0.1.0 on Example 9000, 2 cores, 8.00 GiB, Linux 6.1.0, load average \
             0.250 before the test; 2026-11-21T10:00:00Z"
        );
        let one =
            environment(&Report { machine: HostInfo { cores: 1, ..report().machine }, ..report() });
        assert!(one.contains(", 1 core, "), "{one}");
    }
}
