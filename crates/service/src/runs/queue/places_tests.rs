use std::time::Duration;

use futures::FutureExt as _;
use tokio::time::advance;

use super::*;

fn limits(running_max: u32) -> QueueLimits {
    QueueLimits { turns_max: 100, running_max, aging_ms: 1_000, ..QueueLimits::default() }
}

fn places(limits: QueueLimits) -> Arc<Places> {
    let places = Arc::<Places>::default();
    places.limit(limits);
    places
}

fn run(priority: i32) -> Wanted {
    Wanted {
        owner: "ada".to_owned(),
        task: "n-queens".to_owned(),
        turns: 1,
        priority,
        waited_ms: 0,
        has_begun: false,
    }
}

/// Ends runs one after the other, and returns the order in which these turns came.
fn order(mut holds: Place, turns: Vec<(&'static str, Turn)>) -> Vec<&'static str> {
    let (mut waiting, mut served) = (turns, Vec::new());
    while !waiting.is_empty() {
        drop(holds);
        let mut ready = waiting
            .iter_mut()
            .enumerate()
            .filter_map(|(at, (_, turn))| turn.now_or_never().map(|place| (at, place)));
        let (at, place) = ready.next().expect("one of them has the place");
        assert!(ready.next().is_none(), "there is one place");
        served.push(waiting.remove(at).0);
        holds = place;
    }
    served
}

fn taken(places: &Arc<Places>, wanted: Wanted) -> Place {
    places.enter(wanted).now_or_never().expect("a free place")
}

#[tokio::test(start_paused = true)]
async fn the_highest_priority_comes_first_and_then_the_oldest() {
    let places = places(limits(1));
    let first = taken(&places, run(0));

    let mut turns = Vec::new();
    for (name, priority) in [("a", 0), ("b", 5), ("c", -5), ("d", 5), ("e", 0), ("f", 100)] {
        turns.push((name, places.enter(run(priority))));
        advance(Duration::from_millis(1)).await;
    }
    assert_eq!(order(first, turns), ["f", "b", "d", "a", "e", "c"]);
}

#[tokio::test(start_paused = true)]
async fn waiting_is_worth_priority_so_that_no_run_starves() {
    let places = places(limits(1));
    let mut holds = taken(&places, run(0));
    let mut low = places.enter(run(-100));

    // A new run with the highest priority comes every second, as fast as places become free.
    for second in 1..=300 {
        advance(Duration::from_secs(1)).await;
        let high = places.enter(run(100));
        drop(holds);
        if let Some(place) = (&mut low).now_or_never() {
            assert_eq!(second, 200, "200 levels are worth 200 seconds, and the older one is first");
            return drop(place);
        }
        holds = high.now_or_never().expect("the place");
    }
    panic!("the run with the lowest priority never began");
}

#[tokio::test(start_paused = true)]
async fn what_waited_in_an_earlier_process_counts_and_what_had_begun_comes_first() {
    let places = places(limits(1));
    let first = taken(&places, run(0));

    let new = places.enter(run(3));
    let old = places.enter(Wanted { waited_ms: 4_000, ..run(0) });
    let begun = places.enter(Wanted { has_begun: true, ..run(-100) });
    assert_eq!(
        order(first, vec![("new", new), ("old", old), ("begun", begun)]),
        ["begun", "old", "new"]
    );
}

#[tokio::test(start_paused = true)]
async fn others_pass_a_run_that_waits_for_its_own_key_or_task() {
    let places = places(QueueLimits {
        key_running_max: 1,
        of_keys: HashMap::from([("bob".to_owned(), 2)]),
        of_tasks: HashMap::from([("kmp".to_owned(), 1)]),
        ..limits(0)
    });
    let of = |owner: &str, task: &str| Wanted {
        owner: owner.to_owned(),
        task: task.to_owned(),
        ..run(0)
    };

    let ada = taken(&places, of("ada", "kmp"));
    let mut ada_again = places.enter(of("ada", "n-queens"));
    let mut kmp_again = places.enter(of("bob", "kmp"));
    let _bob = (taken(&places, of("bob", "n-queens")), taken(&places, of("cy", "n-queens")));
    assert!((&mut ada_again).now_or_never().is_none());
    assert!((&mut kmp_again).now_or_never().is_none());

    drop(ada);
    let _ada = ada_again.now_or_never().expect("the key's place");
    let _kmp = kmp_again.now_or_never().expect("the task's place");
    let third_of_bob = places.enter(of("bob", "n-queens"));
    assert!(third_of_bob.now_or_never().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_wide_run_is_not_passed_and_one_wider_than_the_limit_goes_alone() {
    let places = places(limits(0));
    let wide = |turns| Wanted { turns, ..run(0) };
    let half = taken(&places, wide(60));
    let mut too_wide = places.enter(wide(101));
    let mut narrow = places.enter(wide(1));
    assert!((&mut narrow).now_or_never().is_none(), "it waits behind the wide one");

    drop(half);
    let alone = (&mut too_wide).now_or_never().expect("all places");
    assert!((&mut narrow).now_or_never().is_none());
    drop(alone);
    assert!(narrow.now_or_never().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_run_that_stops_waiting_leaves_nothing_behind() {
    let places = places(limits(1));
    let first = taken(&places, run(0));
    let (gone, mut next) = (places.enter(run(9)), places.enter(run(0)));

    drop(gone);
    assert_eq!(places.waiting(), 1);
    drop(first);
    // The turn has its place, and is dropped before it looks.
    assert_eq!(places.waiting(), 0);
    let last = places.enter(run(0));
    assert!((&mut next).now_or_never().is_some());
    drop(next);
    assert!(last.now_or_never().is_some());

    let state = places.state();
    assert_eq!((state.in_use.runs, state.in_use.turns), (0, 0));
    assert!(state.in_use.of_keys.is_empty() && state.in_use.of_tasks.is_empty());
}

#[tokio::test(start_paused = true)]
async fn other_limits_count_at_once() {
    let places = places(limits(1));
    let _first = taken(&places, run(0));
    let mut second = places.enter(run(0));
    assert!((&mut second).now_or_never().is_none());

    places.limit(limits(2));
    assert!(second.now_or_never().is_some());
}
