//! The floors: three functions that call each other, and three threads joined by crossbeam's
//! channels.

use std::hint::black_box;
use std::thread;
use std::time::Instant;

use crossbeam_channel::bounded;
use peers::{
    Action, Coordinator, Kick, MAILBOX, Measured, Phase, Request, Spec, Verdict, drive_blocking,
    execute, measured, process_time, report, verify,
};

/// Steps that are timed together: reading the clock costs more than one of them.
const STEPS_PER_SAMPLE: u32 = 1000;

#[inline(never)]
fn executor(request: Request) -> Action {
    execute(request)
}

#[inline(never)]
fn verifier(action: Action) -> Verdict {
    verify(action)
}

#[inline(never)]
fn coordinator(verdict: Verdict) -> Request {
    let step = if verdict.score > 0.5 { verdict.step } else { verdict.step + 1 };
    Request { trajectory: verdict.trajectory, step, payload: verdict.payload }
}

fn step(request: Request) -> Request {
    black_box(coordinator(verifier(executor(request))))
}

fn call(spec: Spec) -> Measured {
    let mut samples = Vec::new();

    if spec.is_timed {
        let mut request = Request::first(0, 0);
        for _ in 0..(spec.steps / u64::from(STEPS_PER_SAMPLE)).max(1) {
            let start = Instant::now();
            for _ in 0..STEPS_PER_SAMPLE {
                request = step(request);
            }
            samples.push(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX));
        }
    }

    let mut requests: Vec<Request> =
        (0..spec.trajectories).map(|index| Request::first(index, 0)).collect();

    let (cpu, start) = (process_time(), Instant::now());
    for _ in 0..spec.steps {
        for request in &mut requests {
            *request = step(*request);
        }
    }

    Measured { steps_per_sample: STEPS_PER_SAMPLE, ..measured(&spec, start, cpu, samples) }
}

/// Each thread runs until nobody is left to send to it, or to receive from it.
fn crossbeam(spec: Spec) -> Option<Measured> {
    // More threads would measure the kernel, not the channels.
    if spec.trios() > 64 {
        return None;
    }

    let (phase, mut ended) = Phase::new(spec);
    let mut kicks: Vec<Kick> = Vec::new();
    for _ in 0..spec.trios() {
        let (to_executor, requests) = bounded::<Request>(MAILBOX);
        let (to_verifier, actions) = bounded::<Action>(MAILBOX);
        let (to_coordinator, verdicts) = bounded::<Verdict>(MAILBOX);

        thread::spawn(move || {
            requests.iter().try_for_each(|request| to_verifier.send(execute(request)))
        });
        thread::spawn(move || {
            actions.iter().try_for_each(|action| to_coordinator.send(verify(action)))
        });

        let (back, mut coordinator) = (to_executor.clone(), Coordinator::new(&phase));
        thread::spawn(move || {
            verdicts.iter().try_for_each(|verdict| {
                coordinator.decide(verdict).map_or(Ok(()), |next| back.send(next))
            })
        });

        kicks.push(Box::new(move |request| to_executor.send(request).expect("the executor lives")));
    }

    Some(drive_blocking(&kicks, &phase, &mut ended))
}

fn main() {
    report(|variant, spec| match variant {
        "call" => Ok(Some(call(spec))),
        "crossbeam" => Ok(crossbeam(spec)),
        other => Err(format!("`{other}` is none of call, crossbeam")),
    });
}
