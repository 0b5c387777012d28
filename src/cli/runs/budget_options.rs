//! The options that limit a run.

use clap::Args;
use serde_json::Value;

use super::submit::{finite, given, object};

#[derive(Args)]
pub struct BudgetOptions {
    /// Maximum number of proposals
    #[arg(long = "budget-steps", value_name = "N")]
    steps: Option<u64>,
    /// Maximum number of prompt and completion tokens
    #[arg(long = "budget-tokens", value_name = "N")]
    tokens: Option<u64>,
    /// Maximum number of completion tokens
    #[arg(long = "budget-completion-tokens", value_name = "N")]
    completion_tokens: Option<u64>,
    /// Maximum cost of the tokens that have a price, in the currency of the daemon's prices
    #[arg(long = "budget-cost", value_name = "AMOUNT", value_parser = finite)]
    cost: Option<f64>,
    /// Maximum run time, in milliseconds
    #[arg(long = "budget-wall-ms", value_name = "MS")]
    wall_ms: Option<u64>,
}

impl BudgetOptions {
    /// The field `budget` of a request; `None` if no limit is given.
    pub fn field(&self) -> Option<Value> {
        object(given([
            ("steps", self.steps.map(Value::from)),
            ("tokens", self.tokens.map(Value::from)),
            ("completion_tokens", self.completion_tokens.map(Value::from)),
            ("cost", self.cost.map(Value::from)),
            ("wall_ms", self.wall_ms.map(Value::from)),
        ]))
    }
}
