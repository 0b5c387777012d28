//! Blind Maze: the next direction in order that does not lead back, from the count of those tried
//! and the trail's end.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::classic_puzzles::blind_maze::{BlindMaze, Instance, State};

use crate::Lesson;

pub struct BlindMazeLesson;

impl Lesson for BlindMazeLesson {
    type Task = BlindMaze;

    fn view(_: &Instance, state: &State) -> String {
        format!("tried {} came {}", state.next, state.trail.chars().last().unwrap_or('-'))
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        BlindMaze::reference(instance, state).map(|_| String::new())
    }
}
