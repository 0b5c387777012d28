//! The options that limit a run.

use clap::Args;
use serde_json::Value;

use super::submit::{finite, given, object};

#[derive(Args)]
pub struct BudgetOptions {
    /// Maximum number of proposals
    #[arg(long, value_name = "N")]
    budget_steps: Option<u64>,
    /// Maximum number of prompt and completion tokens
    #[arg(long, value_name = "N")]
    budget_tokens: Option<u64>,
    /// Maximum number of completion tokens
    #[arg(long, value_name = "N")]
    budget_completion_tokens: Option<u64>,
    /// Maximum cost of the tokens that have a price, in the currency of the daemon's prices
    #[arg(long, value_name = "AMOUNT", value_parser = finite)]
    budget_cost: Option<f64>,
    /// Maximum run time, in milliseconds
    #[arg(long, value_name = "MS")]
    budget_wall_ms: Option<u64>,
}

impl BudgetOptions {
    /// The field `budget` of a request; `None` if no limit is given.
    pub fn field(&self) -> Option<Value> {
        object(given([
            ("steps", self.budget_steps.map(Value::from)),
            ("tokens", self.budget_tokens.map(Value::from)),
            ("completion_tokens", self.budget_completion_tokens.map(Value::from)),
            ("cost", self.budget_cost.map(Value::from)),
            ("wall_ms", self.budget_wall_ms.map(Value::from)),
        ]))
    }
}
