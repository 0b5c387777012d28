//! The models of an agent with adapters.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;

use crate::AgentError;
use crate::model::{Completion, CompletionRequest, Model, ServedAdapter};
use prime_settings::AgentAdapters;

/// The adapters of an agent, to choose one by task.
#[derive(Clone, Debug)]
pub struct Choice {
    own: String,
    scale: f64,
    by_task: BTreeMap<String, String>,
}

impl From<AgentAdapters<'_>> for Choice {
    fn from(AgentAdapters { own, scale, by_task }: AgentAdapters<'_>) -> Self {
        Self { own: own.to_owned(), scale, by_task: by_task.clone() }
    }
}

impl Choice {
    fn of_task(&self, task: &str) -> Option<&str> {
        let Self { own, scale, by_task } = self;
        AgentAdapters { own, scale: *scale, by_task }.of_task(task)
    }
}

/// A model with an adapter for each task: contexts of one engine, by adapter; `None` is the model
/// itself.
pub struct AdaptedModel {
    choice: Choice,
    models: BTreeMap<Option<String>, Arc<dyn Model>>,
}

impl AdaptedModel {
    /// A model from the contexts of an engine, by adapter.
    ///
    /// # Panics
    /// An adapter that `choice` names is not among the models.
    pub fn new(choice: Choice, models: BTreeMap<Option<String>, Arc<dyn Model>>) -> Self {
        let named = choice.by_task.values().chain([&choice.own]);
        for name in named {
            let key = (!name.is_empty()).then(|| name.clone());
            assert!(models.contains_key(&key), "the adapter {name:?} has a model");
        }
        Self { choice, models }
    }

    fn of(&self, task: &str) -> &Arc<dyn Model> {
        let adapter = self.choice.of_task(task).map(str::to_owned);
        self.models.get(&adapter).expect("invariant: checked when it was made")
    }
}

#[async_trait]
impl Model for AdaptedModel {
    async fn complete(&self, request: CompletionRequest) -> Result<Completion, AgentError> {
        self.of(request.task).complete(request).await
    }

    fn applies_grammars(&self) -> bool {
        self.models.values().all(|model| model.applies_grammars())
    }
}

/// A pool of servers that apply an agent's adapters.
pub struct ServedModel<M> {
    /// Which adapter a task gets.
    pub choice: Choice,
    /// The pool of servers.
    pub pool: M,
}

#[async_trait]
impl<M: Model> Model for ServedModel<M> {
    async fn complete(&self, request: CompletionRequest) -> Result<Completion, AgentError> {
        let adapter = self.choice.of_task(request.task);
        let adapter =
            adapter.map(|name| ServedAdapter { name: name.into(), scale: self.choice.scale });
        self.pool.complete(CompletionRequest { adapter, ..request }).await
    }

    fn applies_grammars(&self) -> bool {
        self.pool.applies_grammars()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Says its name, and the adapter that a server would apply.
    struct Named(&'static str);

    #[async_trait]
    impl Model for Named {
        async fn complete(&self, request: CompletionRequest) -> Result<Completion, AgentError> {
            let adapter = request.adapter.map(|adapter| (adapter.name, adapter.scale));
            let text = format!("{} {adapter:?}", self.0);
            Ok(Completion { text, ..Completion::default() })
        }
    }

    fn choice() -> Choice {
        let by_task = [("union-find", "one"), ("n-queens", "")];
        let by_task = by_task.map(|(task, name)| (task.to_owned(), name.to_owned())).into();
        Choice { own: "rest".to_owned(), scale: 0.5, by_task }
    }

    async fn said(model: &impl Model, task: &'static str) -> String {
        model.complete(CompletionRequest::raw(task, "")).await.expect("an answer").text
    }

    #[tokio::test]
    async fn each_task_is_asked_of_the_context_with_its_adapter() {
        let model = |name: Option<&'static str>| {
            let model: Arc<dyn Model> = Arc::new(Named(name.unwrap_or("base")));
            (name.map(str::to_owned), model)
        };
        let models = [None, Some("one"), Some("rest")].map(model).into();
        let model = AdaptedModel::new(choice(), models);
        assert_eq!(said(&model, "union-find").await, "one None");
        assert_eq!(said(&model, "n-queens").await, "base None");
        assert_eq!(said(&model, "sudoku").await, "rest None");
    }

    #[tokio::test]
    async fn servers_are_told_the_adapter_of_the_task() {
        let model = ServedModel { choice: choice(), pool: Named("pool") };
        assert_eq!(said(&model, "union-find").await, "pool Some((\"one\", 0.5))");
        assert_eq!(said(&model, "n-queens").await, "pool None");
        assert_eq!(said(&model, "sudoku").await, "pool Some((\"rest\", 0.5))");
    }
}
