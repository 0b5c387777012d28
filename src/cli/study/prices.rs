//! What tokens cost, as options.

use clap::Args;

use prime_protocol::Price;

/// Prices of a million tokens, which hold for all models instead of the configured ones.
#[derive(Args)]
pub(super) struct PriceArguments {
    /// Price of a million prompt tokens, instead of the configured prices
    #[arg(long, value_name = "PRICE", value_parser = price)]
    prompt_price: Option<f64>,
    /// Price of a million generated tokens, instead of the configured prices
    #[arg(long, value_name = "PRICE", value_parser = price)]
    completion_price: Option<f64>,
}

impl PriceArguments {
    /// The price of all tokens; `None` if none is given.
    pub fn price(&self) -> Option<Price> {
        if self.prompt_price.is_none() && self.completion_price.is_none() {
            return None;
        }
        let prompt = self.prompt_price.unwrap_or_default();
        Price::per_million(prompt, prompt, self.completion_price.unwrap_or_default())
    }
}

/// A price that [`Price`] takes.
fn price(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(price) if (0.0..=1e9).contains(&price) => Ok(price),
        _ => Err("give a number from 0 to 1000000000, such as 0.4".to_owned()),
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
