//! Several models that know different tasks, as one.

use std::sync::Arc;

use async_trait::async_trait;

use crate::AgentError;
use crate::model::{Completion, CompletionRequest, Model};
use prime_settings::first_that_knows;

/// Whether a model has learnt a task; `None` if that is not known.
pub type Learnt = Box<dyn Fn(&str) -> Option<bool> + Send + Sync>;

/// Asks the model that knows the task ([`first_that_knows`]).
pub struct ModelByTask(Vec<(Learnt, Arc<dyn Model>)>);

impl ModelByTask {
    /// Models in order of preference.
    ///
    /// # Panics
    /// The list is empty.
    pub fn new(models: Vec<(Learnt, Arc<dyn Model>)>) -> Self {
        assert!(!models.is_empty(), "an agent has a model");
        Self(models)
    }

    fn of(&self, task: &str) -> &Arc<dyn Model> {
        first_that_knows(&self.0, |(learnt, _)| learnt(task))
            .map_or(&self.0[0].1, |(_, model)| model)
    }
}

#[async_trait]
impl Model for ModelByTask {
    async fn complete(&self, request: CompletionRequest) -> Result<Completion, AgentError> {
        self.of(request.task).complete(request).await
    }

    fn applies_grammars(&self) -> bool {
        self.0.iter().all(|(_, model)| model.applies_grammars())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Echo(&'static str);

    #[async_trait]
    impl Model for Echo {
        async fn complete(&self, _: CompletionRequest) -> Result<Completion, AgentError> {
            Ok(Completion { text: self.0.to_owned(), ..Completion::default() })
        }
    }

    type Named = (&'static str, fn(&str) -> Option<bool>);

    async fn asked(models: &[Named], task: &'static str) -> String {
        let model = |&(name, learnt): &Named| {
            (Box::new(learnt) as Learnt, Arc::new(Echo(name)) as Arc<dyn Model>)
        };
        let models = ModelByTask::new(models.iter().map(model).collect());
        let request = CompletionRequest::raw(task, "");
        models.complete(request).await.expect("an answer").text
    }

    #[tokio::test]
    async fn the_first_that_has_learnt_the_task_is_asked() {
        let sorts: Named = ("sorts", |task| Some(task.ends_with("sort")));
        let puzzles: Named = ("puzzles", |task| Some(task == "sudoku"));
        let general: Named = ("general", |_| None);
        for (models, task, expected) in [
            (&[sorts, puzzles][..], "sudoku", "puzzles"),
            (&[sorts, puzzles], "heap-sort", "sorts"),
            (&[sorts, puzzles], "n-queens", "sorts"),
            (&[sorts, general, puzzles], "sudoku", "puzzles"),
            (&[sorts, general], "n-queens", "general"),
        ] {
            assert_eq!(asked(models, task).await, expected, "{task}");
        }
    }
}
