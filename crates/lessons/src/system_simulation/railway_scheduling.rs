//! Railway Scheduling: the train that is ready first, when its segment is free, and when it leaves
//! it.
// A segment has a letter, `a` for 0.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::system_simulation::railway_scheduling::{
    Instance, RailwayScheduling, State,
};

use crate::Lesson;
use crate::numbers::{compared, letter, sum, terse_minimum};

pub struct RailwaySchedulingLesson;

/// Digits of a time.
const WIDTH: usize = 3;

/// The trains that have not arrived.
fn under_way(instance: &Instance, state: &State) -> impl Iterator<Item = usize> {
    (0..instance.trains.len()).filter(|train| state.station[*train] != instance.trains[*train].to)
}

impl Lesson for RailwaySchedulingLesson {
    type Task = RailwayScheduling;

    fn view(instance: &Instance, state: &State) -> String {
        let train = |train: usize| {
            let segment = instance.trains[train].next_segment(state.station[train]);
            format!(
                "{train:02}:{:0WIDTH$}{}{}",
                state.ready[train],
                letter(segment),
                instance.trains[train].pace
            )
        };
        let trains: Vec<_> = under_way(instance, state).map(train).collect();

        let segment = |(segment, length): (usize, &u64)| {
            format!("{}{length},{:0WIDTH$}", letter(segment), state.free[segment])
        };
        let segments: Vec<_> = instance.segments.iter().enumerate().map(segment).collect();

        format!("{} free {}", trains.join(" "), segments.join(" "))
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        let action = RailwayScheduling::reference(instance, state)?;
        let time = |time: u64| usize::try_from(time).ok();

        let ready =
            under_way(instance, state).map(|train| Some((train, time(state.ready[train])?)));
        let least = terse_minimum(ready.collect::<Option<Vec<_>>>()?, WIDTH);

        let (train, segment) = (action.train, action.segment);
        let (length, pace, free) =
            (instance.segments[segment], instance.trains[train].pace, state.free[segment]);
        let order = compared(time(state.ready[train])?, time(free)?, WIDTH);

        let running = instance.running_time(train, segment);
        let leave = sum(time(action.enter)?, time(running)?, WIDTH);
        let enter = format!("{order} {:0WIDTH$} {length}*{pace}={running:02}", action.enter);
        let segment = format!("{}{segment:02}:{length},{free:0WIDTH$}", letter(segment));

        Some(format!("{least};{train:02}{segment} {enter} {leave} {:0WIDTH$}", action.leave))
    }
}
