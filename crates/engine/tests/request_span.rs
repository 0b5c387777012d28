//! Requests carry the caller's span through a worker process and back. This program is its own
//! worker (a stub).
#![allow(clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crossbeam_channel::bounded;
use prime_engine::{Engine, EngineError, EngineSpec, Format, Generation, Request, Sampling};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// A span as the subscriber saw it.
#[derive(Clone, Debug, Default)]
struct Seen {
    name: &'static str,
    parent: Option<u64>,
    fields: BTreeMap<&'static str, String>,
    closed: bool,
}

impl Visit for Seen {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.fields.insert(field.name(), format!("{value:?}"));
    }
}

/// Records all spans.
#[derive(Clone, Default)]
struct Recorder {
    spans: Arc<Mutex<BTreeMap<u64, Seen>>>,
    current: Arc<Mutex<Vec<u64>>>,
    next: Arc<AtomicU64>,
}

impl Recorder {
    fn of(&self, name: &str) -> Vec<Seen> {
        self.spans.lock().unwrap().values().filter(|span| span.name == name).cloned().collect()
    }
}

impl Subscriber for Recorder {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let id = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        let current = self.current.lock().unwrap().last().copied();
        let parent = attributes
            .parent()
            .map(Id::into_u64)
            .or_else(|| current.filter(|_| attributes.is_contextual()));
        let mut seen = Seen { name: attributes.metadata().name(), parent, ..Seen::default() };

        attributes.record(&mut seen);
        self.spans.lock().unwrap().insert(id, seen);
        Id::from_u64(id)
    }

    fn record(&self, id: &Id, values: &Record<'_>) {
        values.record(self.spans.lock().unwrap().get_mut(&id.into_u64()).unwrap());
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, id: &Id) {
        self.current.lock().unwrap().push(id.into_u64());
    }

    fn exit(&self, _: &Id) {
        self.current.lock().unwrap().pop();
    }

    fn try_close(&self, id: Id) -> bool {
        self.spans.lock().unwrap().get_mut(&id.into_u64()).unwrap().closed = true;
        true
    }
}

fn request(max_tokens: u32) -> Request {
    Request {
        prompt: "any".to_owned(),
        format: Format::Raw,
        grammar: None,
        excluded: Vec::new(),
        excluded_prefixes: Vec::new(),
        stop: None,
        newline_ends: false,
        thinking: prime_engine::Thinking::AsModel,
        sampling: Sampling::GREEDY,
        max_tokens,
        logprobs: false,
        ignore_end: false,
        group: 0,
        space: 0,
    }
}

/// Submits a request and waits for its reply.
fn ask(engine: &Engine, request: Request) -> Result<Generation, EngineError> {
    let (answer, answered) = bounded(1);
    engine.submit(request, move |result| answer.send(result).unwrap());
    answered.recv().unwrap()
}

fn the_span_has_its_parent_and_its_fields(engine: &Engine) {
    let recorder = Recorder::default();
    tracing::subscriber::with_default(recorder.clone(), || {
        tracing::info_span!("caller").in_scope(|| {
            assert_eq!(ask(engine, request(1)).unwrap().text, "step");
            assert!(ask(engine, request(0)).is_err());
        });
    });

    let spans = recorder.of("engine_request");
    let caller = recorder
        .spans
        .lock()
        .unwrap()
        .iter()
        .find(|(_, span)| span.name == "caller")
        .map(|(id, _)| *id);

    let [answered, refused] = &spans[..] else { panic!("{spans:?}") };
    assert_eq!((answered.parent, refused.parent), (caller, caller));
    assert!(answered.closed && refused.closed, "a reply closes its span");

    let names: Vec<&str> = answered.fields.keys().copied().collect();
    assert_eq!(names, ["decode_ms", "prefill_ms", "prompt_tokens", "queue_ms", "tokens"]);
    assert!(answered.fields["queue_ms"].parse::<f64>().unwrap() >= 0.0);
    assert_eq!(answered.fields["tokens"], "0", "a stub generates none");
    assert!(refused.fields["error"].contains("max_tokens"), "{refused:?}");
}

fn without_a_subscriber_there_is_no_span(engine: &Engine) {
    let recorder = Recorder::default();
    assert!(ask(engine, request(1)).is_ok());

    // The subscriber comes after `submit`, so nothing of the request reaches it.
    let (answer, answered) = bounded(1);
    engine.submit(request(1), move |result| answer.send(result).unwrap());
    tracing::subscriber::with_default(recorder.clone(), || answered.recv().unwrap().unwrap());
    assert!(recorder.spans.lock().unwrap().is_empty());
}

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some("engine-worker") {
        return prime_engine::worker_main();
    }

    // What cargo-nextest asks of a test program.
    if std::env::args().any(|argument| argument == "--list") {
        if std::env::args().all(|argument| argument != "--ignored") {
            println!("request_span: test");
        }
        return ExitCode::SUCCESS;
    }

    let spec = EngineSpec {
        name: "stub".to_owned(),
        stub_answer: Some("step".to_owned()),
        ..EngineSpec::default()
    };
    let engine = Engine::start(spec).unwrap();

    the_span_has_its_parent_and_its_fields(&engine);
    without_a_subscriber_there_is_no_span(&engine);
    engine.shutdown();

    println!("test result: ok. 2 passed");
    ExitCode::SUCCESS
}
