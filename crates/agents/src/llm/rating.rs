//! The expected rating of a step over the likely first tokens of a model's answer, as G-Eval
//! computes it (Liu et al., 2023). Pure.

/// Minimum total probability of the ratings; below it the model is answering something else.
const MASS_MIN: f64 = 0.5;

/// Why there is no expected rating.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(super) enum NoRating {
    #[error(
        "the server returns no `top_logprobs`, which a rating needs: use another server, or \
         `verdict = \"token\"`"
    )]
    NoAlternatives,
    #[error(
        "the ratings 0 to {best} have only {mass:.2} of the probability: the model answers \
         something else"
    )]
    Improbable { mass: f64, best: u32 },
}

/// The expected rating divided by the best one, 0 to 1. `alternatives` are tokens with their ln p.
pub(super) fn expected_rating(alternatives: &[(String, f32)], best: u32) -> Result<f64, NoRating> {
    if alternatives.is_empty() {
        return Err(NoRating::NoAlternatives);
    }

    let (mut mass, mut sum) = (0.0, 0.0);
    for (token, logprob) in alternatives {
        let rating = token.trim().parse::<u32>().ok().filter(|rating| *rating <= best);
        // A server may write anything: ln p is at most 0.
        if let Some(rating) = rating.filter(|_| logprob.is_finite() && *logprob <= 0.0) {
            let probability = f64::from(*logprob).exp();
            mass += probability;
            sum += probability * f64::from(rating);
        }
    }

    if mass < MASS_MIN {
        return Err(NoRating::Improbable { mass, best });
    }
    Ok(sum / mass / f64::from(best))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::cast_possible_truncation, reason = "probabilities for a test")]
    fn rated(tokens: &[(&str, f64)], best: u32) -> Result<f64, NoRating> {
        let tokens: Vec<_> =
            tokens.iter().map(|(token, p)| ((*token).to_owned(), p.ln() as f32)).collect();
        expected_rating(&tokens, best)
    }

    #[test]
    fn ratings_count_by_their_probability() {
        // (9 · 0.5 + 6 · 0.25) / 0.75 = 8 of 9; the other token is not a rating.
        let found = rated(&[("9", 0.5), (" 6", 0.25), ("The", 0.25)], 9).unwrap();
        assert!((found - 8.0 / 9.0).abs() < 1e-6, "{found}");

        let found = rated(&[("1", 0.7), ("0", 0.3)], 1).unwrap();
        assert!((found - 0.7).abs() < 1e-6, "{found}");
        assert_eq!(rated(&[("0", 1.0)], 9), Ok(0.0));
    }

    #[test]
    fn without_probable_ratings_there_is_none() {
        assert_eq!(expected_rating(&[], 9), Err(NoRating::NoAlternatives));

        let improbable = rated(&[("I", 0.9), ("7", 0.1)], 9).unwrap_err();
        assert!(improbable.to_string().contains("only 0.10 of the probability"), "{improbable}");
        assert!(rated(&[("10", 1.0), ("-1", 0.5), ("7.5", 0.5)], 9).is_err());

        for logprob in [f32::NAN, f32::INFINITY, 3.0] {
            assert!(expected_rating(&[("7".to_owned(), logprob)], 9).is_err(), "{logprob}");
        }
    }
}
