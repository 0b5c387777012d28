//! Reinforcement learning of an executor: iterations of rollouts, rewards, advantages and updates,
//! with evaluation on held-out instances. `docs/reinforcement.md` has the equations.

mod advantage;
mod arithmetic;
mod critic;
mod engine_sampler;
mod evaluation;
mod gpu_arithmetic;
mod groups;
pub mod objective;
pub mod policy;
mod practice;
mod processor_arithmetic;
mod recipe;
#[cfg(test)]
mod recipe_test;
mod record;
mod rehearsal;
mod run;
mod state;
#[cfg(test)]
mod tests;
mod update;

pub use evaluation::Held;
pub use recipe::{
    Algorithm, Budget, Curriculum, Data, Evaluation, Keep, RewardPlan, RlRecipe, Rollout,
    SamplerKind, Source, Stop, Unit, Update,
};
pub use record::{Ending, Record};
pub use rehearsal::RehearsalPlan;
pub use run::{RlSummary, rl};
