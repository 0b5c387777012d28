//! What the verdict on a verified answer is worth.

use serde::{Deserialize, Serialize};

use super::count;
use prime_bench::judge::detection::{Detection, DetectionTable};
use prime_bench::tasks::Kind;
use prime_roles::{Basis, Method};

/// How often the verifier's constraints miss a wrong step of this task, as measured on the
/// benchmark.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Misses {
    /// Wrong steps that were tried, each in a reference trace of this task.
    pub tried: u64,
    /// Those that the constraints found.
    pub found: u64,
    /// The share that they missed, 0 to 1.
    pub rate: f64,
    /// The upper end of its one-sided 95 % confidence interval; above 0 even if nothing was missed.
    pub rate_bound: f64,
    /// The version of the table with these figures.
    pub table: String,
}

/// What a verified answer rests on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = RunVerification))]
pub struct Verification {
    /// The verifier's name.
    pub verifier: String,
    /// How it judges. A model's `report`, `token` or `likelihood` is an opinion, which is no kind
    /// of constraint.
    pub methods: Vec<Method>,
    /// The kinds of constraints that were evaluated, or that a program's owner says it checks. Of
    /// an ensemble, those that at least half of the members check: the others cannot outvote them.
    pub kinds: Vec<Kind>,
    /// Steps of the answer's trajectory; the verifier found each of them clean.
    pub steps: u64,
    /// Left out where it was not measured: for problems outside the benchmark, models and programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub misses: Option<Misses>,
}

/// The kinds, as in `format, invariant`, then the methods other than the evaluation of constraints.
pub fn looked_at(kinds: &[Kind], methods: &[Method]) -> String {
    let opinions =
        methods.iter().filter(|method| **method != Method::Rules).map(|method| method.name());

    let names: Vec<_> = kinds.iter().map(|kind| kind.name()).chain(opinions).collect();
    if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
}

impl Verification {
    pub fn new(verifier: &str, basis: Basis, task: &str, steps: u64) -> Self {
        let table = DetectionTable::current();
        let misses = table.detection(task, basis.measured()).map(|detection| Misses {
            tried: detection.tried,
            found: detection.found,
            rate: detection.miss_rate(),
            rate_bound: detection.miss_rate_bound(),
            table: DetectionTable::current_id().to_owned(),
        });

        Self {
            verifier: verifier.to_owned(),
            methods: basis.methods().collect(),
            kinds: basis.kinds().iter().collect(),
            steps,
            misses,
        }
    }

    /// One line, such as `verified (rules: format, invariant; in tests these found 119 of 120 wrong
    /// steps of this task; 7 steps)`.
    pub fn text(&self) -> String {
        let worth = self.misses.as_ref().map_or_else(
            || "not measured for this task".to_owned(),
            |misses| {
                format!(
                    "in tests these {} of this task",
                    Detection { tried: misses.tried, found: misses.found }.text()
                )
            },
        );

        let looked_at = looked_at(&self.kinds, &self.methods);
        format!("verified ({}: {looked_at}; {worth}; {})", self.verifier, count(self.steps, "step"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use prime_bench::tasks::Kinds;

    #[test]
    fn a_likelihood_is_named_as_what_it_is() {
        let verification =
            Verification::new("tiny", Basis::model(Method::Likelihood), "bubble-sort", 1);
        let expected =
            json!({"verifier": "tiny", "methods": ["likelihood"], "kinds": ["format"], "steps": 1});

        assert_eq!(serde_json::to_value(&verification).unwrap(), expected);
        assert_eq!(
            verification.text(),
            "verified (tiny: format, likelihood; not measured for this task; 1 step)"
        );
    }

    #[test]
    fn constraints_carry_what_they_miss() {
        let verification =
            Verification::new("rules", Basis::rules(Kinds::WITHOUT_TRANSITION), "bubble-sort", 312);
        let misses = verification.misses.clone().expect("measured");

        assert!(
            misses.found <= misses.tried
                && misses.rate <= misses.rate_bound
                && misses.rate_bound > 0.0
        );
        assert!(misses.table.starts_with("1-"), "{misses:?}");

        let text = verification.text();
        let start = "verified (rules: format, invariant, terminal; in tests these found ";
        assert!(
            text.starts_with(start) && text.ends_with(" wrong steps of this task; 312 steps)"),
            "{text}"
        );
    }

    #[test]
    fn nothing_was_measured_on_problems_outside_the_benchmark() {
        let verification = Verification::new("rules", Basis::rules(Kinds::ALL), "problem", 2);
        assert_eq!(verification.misses, None);
        let expected = "verified (rules: format, invariant, transition, terminal; \
            not measured for this task; 2 steps)";
        assert_eq!(verification.text(), expected);
    }

    #[test]
    fn an_ensemble_is_worth_what_half_of_it_evaluates() {
        let (rules, model) = (Basis::rules(Kinds::WITHOUT_TRANSITION), Basis::model(Method::Token));
        let of = |members: &[Basis]| {
            Verification::new("both", Basis::of_members(members), "n-queens", 8)
        };
        let (two, three) = (of(&[rules, model]), of(&[rules, model, model]));

        let alone = Verification::new("both", rules, "n-queens", 8);

        assert_eq!((two.misses, &two.kinds), (alone.misses, &alone.kinds));
        assert_eq!(two.methods, [Method::Rules, Method::Token]);
        assert_eq!(
            three.text(),
            "verified (both: format, token; not measured for this task; 8 steps)"
        );
    }
}
