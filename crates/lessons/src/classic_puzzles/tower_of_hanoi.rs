//! Tower of Hanoi: each disk with the peg that the larger ones need it on.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::classic_puzzles::tower_of_hanoi::{Instance, State, TowerOfHanoi};

use crate::Lesson;

pub struct Of;

impl Lesson for Of {
    type Task = TowerOfHanoi;

    fn view(instance: &Instance, state: &State) -> String {
        let disks: Vec<_> = state.wants(instance).map(|(disk, peg, _)| format!("{disk:02}:{peg}")).collect();
        format!("to={} {}", instance.to, disks.join(" "))
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        let action = TowerOfHanoi::reference(instance, state)?;
        let mut line = String::new();
        for (disk, peg, wanted) in state.wants(instance) {
            let relation = if peg == wanted { '=' } else { '>' };
            line += &format!("{disk:02}:{peg}{relation}{wanted} ");
        }
        Some(format!("{line}so {:02}:{}>{}", action.disk, action.from, action.to))
    }
}
