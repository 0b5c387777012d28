//! Traces as a collector gets them: a server of the test takes what real runs send.
#![allow(clippy::disallowed_methods, reason = "these tests wait for other threads, in real time")]

mod protobuf;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use prime_bench::tasks::{self, BASE_SEED, Difficulty, InstanceId};
use prime_protocol::Outcome;
use prime_runtime::Silent;
use prime_service::app::{App, run_sampling};
use prime_service::telemetry::{Telemetry, TraceParent, TracedRun};
use prime_settings::Settings;
use protobuf::{Span, attribute, spans};

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// Takes one request, passes on its path and body, and answers that all is well.
fn take(stream: &TcpStream, taken: &Sender<(String, Vec<u8>)>) {
    let mut reader = BufReader::new(stream);
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap() == 0 {
            return;
        }
        if line.trim().is_empty() {
            break;
        }
        head.push(line.trim().to_ascii_lowercase());
    }

    let length =
        head.iter().find_map(|line| line.strip_prefix("content-length:")).expect("a length");
    let mut body = vec![0; length.trim().parse().unwrap()];
    reader.read_exact(&mut body).unwrap();

    taken.send((head[0].clone(), body)).unwrap();
    let answer = "HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Length: 0\r\n\
         Connection: close\r\n\r\n";
    let mut stream = stream;
    stream.write_all(answer.as_bytes()).unwrap();
}

/// A collector: its address, and what it takes.
fn collector() -> (SocketAddr, Receiver<(String, Vec<u8>)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, (taken, requests)) = (listener.local_addr().unwrap(), channel());
    // Ends with the process.
    thread::spawn(move || listener.incoming().for_each(|stream| take(&stream.unwrap(), &taken)));
    (address, requests)
}

fn settings(sets: &[&str]) -> Settings {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    Settings::load(&[], std::iter::empty(), &sets).unwrap()
}

/// Executes a run that is traced.
fn traced(telemetry: &Telemetry, parent: Option<&str>) -> Outcome {
    let settings = settings(&[
        "agents.executor.implementation=scripted",
        "agents.executor.error_rate=0.3",
        "runtime.cells=1",
        "run.fanout=2",
    ]);

    let id =
        InstanceId::new(tasks::find("n-queens").unwrap(), Difficulty::Easy, 0, BASE_SEED).unwrap();
    let run = TracedRun {
        id: "run_0123".to_owned(),
        task: "n-queens".to_owned(),
        parent: parent.map(|header| header.parse::<TraceParent>().unwrap()),
        started: "2026-02-03T04:05:06Z".parse().unwrap(),
    };

    actix::System::new().block_on(async {
        let sampling = run_sampling(&settings);
        let app = App::start(settings).unwrap();
        let problem = id.problem();
        let plan = app.plan(problem.as_ref());
        let mut handle =
            app.submit(problem, plan, sampling, telemetry.observer(&run, Arc::new(Silent)));
        handle.outcome().await.unwrap()
    })
}

/// Outcome of a run with this `traceparent`, and the spans that a collector got until telemetry was
/// shut down.
fn collected(parent: Option<&str>) -> (Outcome, Vec<Span>) {
    let (address, requests) = collector();
    let telemetry =
        Telemetry::start(&format!("http://{address}/")).unwrap().expect("an endpoint is given");
    let outcome = traced(&telemetry, parent);
    telemetry.shutdown();

    let mut all = Vec::new();
    for (head, body) in requests.try_iter() {
        assert_eq!(head, "post /v1/traces http/1.1");
        let (service, found) = spans(&body);
        assert_eq!(service, "prime-agents");
        all.extend(found);
    }
    (outcome, all)
}

#[test]
fn a_run_is_a_span_below_its_callers_and_each_step_one_below_it() {
    let (outcome, spans) = collected(Some(PARENT));
    let (roots, steps): (Vec<_>, Vec<_>) =
        spans.iter().partition(|span| span.name == "invoke_workflow prime");
    assert_eq!((roots.len(), steps.len() as u64), (1, outcome.proposals));

    let root = roots[0];
    let (trace, parent) =
        (0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c_u128, 0xb7ad_6b71_6920_3331_u64);
    assert_eq!(root.parent_id, parent.to_be_bytes());
    assert!(spans.iter().all(|span| span.trace_id == trace.to_be_bytes()));

    let rows = [
        ("gen_ai.operation.name", "invoke_workflow"),
        ("gen_ai.workflow.name", "prime"),
        ("gen_ai.conversation.id", "run_0123"),
        ("prime.task", "n-queens"),
        ("prime.outcome", "agreed"),
        ("prime.verified", "true"),
    ];
    for (name, value) in rows {
        assert_eq!(attribute(&root.attributes, name), value, "{name}");
    }

    assert_eq!(root.start, 1_770_091_506_000_000_000);
    assert_eq!(
        root.events.iter().filter(|event| event.name == "prime.vote").count(),
        outcome.rounds as usize
    );

    let mut failed = 0;
    for step in &steps {
        assert_eq!((step.name.as_str(), &step.parent_id), ("invoke_agent executor", &root.id));
        assert!(
            root.start <= step.start && step.start <= step.end && step.end <= root.end,
            "{step:?}"
        );
        assert_eq!(attribute(&step.attributes, "gen_ai.agent.name"), "executor");
        assert_eq!(attribute(&step.attributes, "gen_ai.usage.output_tokens"), "0");
        assert_eq!(step.events.len(), 1, "{step:?}");

        let verdict = &step.events[0];
        assert_eq!(verdict.name, "gen_ai.evaluation.result");
        assert_eq!(
            attribute(&verdict.attributes, "gen_ai.evaluation.name"),
            "prime.violation_score"
        );

        let score: f64 =
            attribute(&verdict.attributes, "gen_ai.evaluation.score.value").parse().unwrap();
        let label = attribute(&verdict.attributes, "gen_ai.evaluation.score.label");
        assert_eq!(label, if score == 0.0 { "pass" } else { "fail" });

        let decision = attribute(&step.attributes, "prime.decision");
        assert_eq!(
            decision == "proceed",
            score == 0.0,
            "nothing is tolerated in a clean run: {step:?}"
        );

        if score > 0.0 {
            assert!(!attribute(&verdict.attributes, "prime.violations").is_empty());
            failed += 1;
        }
    }

    assert_eq!(failed, outcome.backtracks + outcome.retries);
    assert!(failed > 0, "there were errors to find");
}

#[test]
fn a_run_without_a_caller_begins_a_trace() {
    let (outcome, spans) = collected(None);
    assert_eq!(spans.len() as u64, outcome.proposals + 1);
    let root = spans.iter().find(|span| span.parent_id.is_empty()).expect("a root");
    assert!(root.trace_id.iter().any(|byte| *byte != 0));
    assert!(spans.iter().all(|span| span.trace_id == root.trace_id));
}

#[test]
fn what_the_caller_does_not_record_is_not_sent() {
    let (outcome, spans) = collected(Some(&PARENT.replace("-01", "-00")));
    assert!(outcome.proposals > 0);
    assert_eq!(spans.len(), 0);
}

#[test]
fn a_collector_that_is_not_there_holds_nothing_up() {
    // The port was free a moment ago, and nobody listens on it.
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let telemetry =
        Telemetry::start(&format!("http://{free}")).unwrap().expect("an endpoint is given");
    assert!(traced(&telemetry, None).is_verified());
    telemetry.shutdown();
}

#[test]
fn an_endpoint_that_is_none_is_named() {
    assert!(Telemetry::start("").unwrap().is_none(), "off");
    for endpoint in ["127.0.0.1:4318", "https://collector:4318", "http://"] {
        let Err(error) = Telemetry::start(endpoint) else { panic!("{endpoint} was taken") };
        let message = error.to_string();
        assert!(
            message.contains("telemetry.otlp_endpoint") && message.contains(endpoint),
            "{message}"
        );
    }
}
