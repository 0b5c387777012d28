//! A model whose tokens have a price: what its answers and its failures cost.

use async_trait::async_trait;

use super::AgentError;
use super::model::{Completion, CompletionRequest, Model};
use prime_protocol::Price;

/// A model whose tokens cost something, or nothing if it has no price.
pub struct PricedModel<M> {
    /// The model.
    pub model: M,
    /// The price of its tokens.
    pub price: Option<Price>,
}

#[async_trait]
impl<M: Model> Model for PricedModel<M> {
    async fn complete(&self, request: CompletionRequest) -> Result<Completion, AgentError> {
        let result = self.model.complete(request).await;
        let Some(price) = self.price else { return result };

        match result {
            Ok(completion) => Ok(Completion { usage: completion.usage.at(price), ..completion }),
            // Attempts that failed have spent tokens, too.
            Err(error) => Err(AgentError { usage: error.usage.at(price), ..error }),
        }
    }

    fn applies_grammars(&self) -> bool {
        self.model.applies_grammars()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Failure;
    use prime_protocol::{Cost, Usage};

    struct Answers(Result<Completion, AgentError>);

    #[async_trait]
    impl Model for Answers {
        async fn complete(&self, _: CompletionRequest) -> Result<Completion, AgentError> {
            self.0.clone()
        }

        fn applies_grammars(&self) -> bool {
            false
        }
    }

    fn asked(
        answer: Result<Completion, AgentError>,
        price: Option<Price>,
    ) -> Result<Completion, AgentError> {
        let model = PricedModel { model: Answers(answer), price };
        assert!(!model.applies_grammars());
        futures::executor::block_on(model.complete(CompletionRequest::raw("n-queens", "1 + 1")))
    }

    #[test]
    fn answers_and_failures_cost_what_their_tokens_do() {
        let price = Price::per_million(3.0, 1.0, 15.0);
        let usage = Usage { cached: 40, ..Usage::new(100, 7) };
        let completion = Completion { usage, ..Completion::default() };
        let failure = AgentError::new("model", Failure::Timeout, "it is slow".to_owned());
        let failure = failure.costing(usage);

        // 60 tokens at 3,000 billionths, 40 at 1,000 and 7 at 15,000.
        let cost = Some(Cost::from_nanos(325_000));
        for (price, cost) in [(price, cost), (None, None)] {
            assert_eq!(asked(Ok(completion.clone()), price).unwrap().usage.cost, cost);
            let error = asked(Err(failure.clone()), price).unwrap_err();
            assert_eq!((error.usage.cost, error.usage.prompt), (cost, 100));
        }
    }
}
