//! The spans of a run: what an agent does is a child of its turn, and the turn of its run.

use std::cell::RefCell;
use std::collections::BTreeMap;

use tracing::subscriber::DefaultGuard;
use tracing::{Dispatch, Instrument, Span};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::{LookupSpan, Registry};

use super::*;

thread_local! {
    /// Dropped with its thread.
    static GUARD: RefCell<Option<DefaultGuard>> = const { RefCell::new(None) };
}

/// Counts spans by their path of names from the root.
#[derive(Clone, Default)]
struct Paths(Arc<Mutex<BTreeMap<String, u64>>>);

impl<S: tracing::Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Paths {
    fn on_new_span(
        &self,
        _: &tracing::span::Attributes<'_>,
        id: &tracing::Id,
        context: Context<'_, S>,
    ) {
        let scope = context.span(id).expect("it is new").scope().from_root();
        let path: Vec<_> = scope.map(|span| span.name()).collect();
        *self.0.lock().unwrap().entry(path.join(" ")).or_default() += 1;
    }
}

/// Asks a server, in its own span.
struct Asks {
    has_parent: Arc<AtomicU64>,
}

#[async_trait]
impl Before for Asks {
    async fn before(&self, _: u64, _: &Trajectory) -> Result<(), AgentError> {
        self.has_parent.fetch_add(u64::from(!Span::current().is_none()), Ordering::SeqCst);
        tokio::task::yield_now().instrument(tracing::info_span!("http_request")).await;
        Ok(())
    }
}

/// Runs with executors that ask and verifiers that answer at once; `listen` is called on the cell's
/// thread.
fn run(listen: impl Fn() + Send + Sync + 'static) -> (Outcome, u64) {
    let has_parent = Arc::<AtomicU64>::default();
    let counter = Arc::clone(&has_parent);

    let (agents, _) = checked(move |_| {
        listen();
        reference_after(Asks { has_parent: Arc::clone(&counter) })
    });

    let outcome = in_system(async {
        outcome_of(shared(agents).submit(submission(&problem("bubble-sort"), plan(2)))).await
    });
    (outcome, has_parent.load(Ordering::SeqCst))
}

#[test]
fn an_agents_spans_are_children_of_its_turn_and_run() {
    let paths = Paths::default();
    // With one dispatcher in the process, tracing asks the thread that happens to register a
    // callsite which levels are wanted, and that may be another test's.
    let _second = Dispatch::new(Registry::default());
    let dispatch = Dispatch::new(Registry::default().with(paths.clone()));

    let of_cell = dispatch.clone();

    let guard = tracing::dispatcher::set_default(&dispatch);

    let (outcome, with_parent) = run(move || {
        GUARD.with(|guard| *guard.borrow_mut() = Some(tracing::dispatcher::set_default(&of_cell)));
    });
    drop(guard);

    let paths = paths.0.lock().unwrap().clone();
    assert_eq!(paths.get("run"), Some(&1), "{paths:?}");
    for path in ["run propose", "run propose http_request", "run verify", "run decide"] {
        let count = paths.get(path).copied().unwrap_or_default();
        assert!(
            count >= outcome.proposals,
            "{path}: {count} of {} in {paths:?}",
            outcome.proposals
        );
    }

    assert_eq!(paths.len(), 5, "{paths:?}");
    assert!(with_parent >= outcome.proposals);
}

#[test]
fn without_a_listener_there_are_no_spans() {
    let (outcome, with_parent) = run(|| {});
    assert!(outcome.is_verified());
    assert_eq!(with_parent, 0);
}
