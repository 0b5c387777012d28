//! The selection of instances for a file.

use crate::tasks::{AnyTask, Difficulty, InstanceId};

/// Levels, number and base seed of the instances of each task.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Selection {
    /// The levels, in the order of the instances.
    pub difficulties: Vec<Difficulty>,
    /// Instances of each level: the indices from 0 on.
    pub instances: u32,
    /// The base seed; 42 is the benchmark's.
    pub base_seed: u64,
}

impl Selection {
    /// The instances of a task, level by level.
    pub fn of(&self, task: &'static dyn AnyTask) -> Vec<InstanceId> {
        let level = |difficulty: &Difficulty| {
            let difficulty = *difficulty;
            (0..self.instances).map(move |index| InstanceId {
                task,
                difficulty,
                index,
                base_seed: self.base_seed,
            })
        };
        self.difficulties.iter().flat_map(level).collect()
    }

    /// Instances of each task.
    pub fn per_task(&self) -> u64 {
        u64::from(self.instances) * self.difficulties.len() as u64
    }
}
