//! What tokens cost, as options.

use clap::Args;

use prime_study::plan::Prices;

/// Prices of a million tokens.
#[derive(Args)]
pub(super) struct PriceArguments {
    /// Price of a million prompt tokens
    #[arg(long, value_name = "PRICE", default_value_t = 0.0, value_parser = amount)]
    prompt_price: f64,
    /// Price of a million generated tokens
    #[arg(long, value_name = "PRICE", default_value_t = 0.0, value_parser = amount)]
    completion_price: f64,
}

impl PriceArguments {
    pub fn prices(&self) -> Prices {
        Prices { prompt_million: self.prompt_price, completion_million: self.completion_price }
    }

    /// True if any token costs something.
    pub fn are_given(&self) -> bool {
        self.prompt_price > 0.0 || self.completion_price > 0.0
    }
}

/// An amount of money.
pub(super) fn amount(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(amount) if (0.0..=1e12).contains(&amount) => Ok(amount),
        _ => Err("give a number from 0 to 1000000000000, such as 0.4".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_is_a_number_that_can_be_paid() {
        for (text, expected) in [("0", 0.0), ("0.4", 0.4), ("12", 12.0), ("1e3", 1_000.0)] {
            assert_eq!(amount(text), Ok(expected));
        }
        for text in ["", "-1", "NaN", "inf", "1e13", "one"] {
            assert!(amount(text).is_err(), "{text}");
        }
    }
}
