//! The imports of every task file: `use crate::tasks::prelude::*`.

pub(crate) use serde::{Deserialize, Serialize};
pub(crate) use serde_json::{Value, json};

pub(crate) use super::action::{Last, LineField, TaskAction};
pub(crate) use super::action_macros::{line_actions, word_actions, words};
pub(crate) use super::rng::TaskRng;
pub(crate) use super::spec::{Difficulty, Spec};
pub(crate) use super::task::{
    Illegal, InvalidInput, PathDraw, Task, reference_end, reference_is_clean, reference_steps,
    task_items,
};
pub(crate) use super::violations::Violations;
pub(crate) use super::{array, limits};
