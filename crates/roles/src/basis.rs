//! What a verifier's verdict rests on: constraints that are evaluated, or the opinion of a model or
//! of a program.

use serde::{Deserialize, Serialize};

use prime_bench::tasks::{Kind, Kinds};

/// How a verifier judges a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Evaluates constraints.
    Rules,
    /// Compares the step with the one that the task's algorithm takes.
    Reference,
    /// A model reports PASS or FAIL for each constraint.
    Report,
    /// A model says right or wrong in one token.
    Token,
    /// A model finds the step likely or unlikely.
    Likelihood,
    /// A program of the operator's judges.
    Program,
}

impl Method {
    const ALL: [Self; 6] =
        [Self::Rules, Self::Reference, Self::Report, Self::Token, Self::Likelihood, Self::Program];

    pub fn name(self) -> &'static str {
        ["rules", "reference", "report", "token", "likelihood", "program"][self as usize]
    }
}

/// What a verifier looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Stored", into = "Stored")]
pub struct Basis {
    kinds: Kinds,
    /// The kinds that it checks on a client's problem, whose checks are evaluated for models too.
    kinds_of_checks: Kinds,
    /// The kinds that a program says it checks by itself, whatever constraints a problem has.
    own: Kinds,
    /// The kinds decided by the benchmark's constraints, so that their misses were measured.
    measured: Kinds,
    /// A set of methods; bit `m` stands for the method with `m as u8`.
    methods: u8,
}

/// A [`Basis`] in the record of a run.
#[derive(Serialize, Deserialize)]
struct Stored {
    kinds: Vec<Kind>,
    kinds_of_checks: Vec<Kind>,
    /// Runs of former versions have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    own: Vec<Kind>,
    measured: Vec<Kind>,
    methods: Vec<Method>,
}

impl From<Basis> for Stored {
    fn from(basis: Basis) -> Self {
        let list = |kinds: Kinds| kinds.iter().collect();
        let Basis { kinds, kinds_of_checks, own, measured, .. } = basis;
        Self {
            kinds: list(kinds),
            kinds_of_checks: list(kinds_of_checks),
            own: list(own),
            measured: list(measured),
            methods: basis.methods().collect(),
        }
    }
}

impl From<Stored> for Basis {
    fn from(stored: Stored) -> Self {
        Self {
            kinds: stored.kinds.into_iter().collect(),
            kinds_of_checks: stored.kinds_of_checks.into_iter().collect(),
            own: stored.own.into_iter().collect(),
            measured: stored.measured.into_iter().collect(),
            methods: stored
                .methods
                .into_iter()
                .fold(0, |methods, method| methods | 1 << method as u8),
        }
    }
}

impl Basis {
    /// The basis of a verifier that looks at nothing.
    pub const NONE: Self = Self {
        kinds: Kinds::NONE,
        kinds_of_checks: Kinds::NONE,
        own: Kinds::NONE,
        measured: Kinds::NONE,
        methods: 0,
    };

    fn of(method: Method, kinds: Kinds) -> Self {
        // Without kinds nothing is judged, so that no method is at work either.
        if kinds == Kinds::NONE {
            return Self::NONE;
        }

        Self {
            kinds,
            kinds_of_checks: kinds,
            own: Kinds::NONE,
            measured: Kinds::NONE,
            methods: 1 << method as u8,
        }
    }

    /// The basis of a verifier that evaluates constraints of these kinds.
    pub fn rules(kinds: Kinds) -> Self {
        Self { measured: kinds, ..Self::of(Method::Rules, kinds) }
    }

    /// The basis of a verifier that follows the task's algorithm, besides all of its constraints.
    pub fn reference() -> Self {
        Self { measured: Kinds::ALL, ..Self::of(Method::Reference, Kinds::ALL) }
    }

    /// The basis of a model's opinion. Before the model is asked, the machine refuses lines that do
    /// not apply, and a client's checks are evaluated. The model may read the other constraints,
    /// but nobody can say which of them it looked at.
    pub fn model(method: Method) -> Self {
        Self { kinds_of_checks: Kinds::ALL, ..Self::of(method, Kinds::from_iter([Kind::Format])) }
    }

    /// The basis of a program whose owner says that it checks these kinds.
    pub fn program(kinds: Kinds) -> Self {
        Self { own: kinds, ..Self::of(Method::Program, kinds) }
    }

    /// The basis of an ensemble in which each member has a vote and half of the votes reject a
    /// step. A kind counts if half of the members look at it, because then the others cannot
    /// outvote them; a method counts if any member uses it.
    pub fn of_members(members: &[Self]) -> Self {
        let of_half = |kinds: fn(&Self) -> Kinds| {
            let is_of_half = |kind: &Kind| {
                2 * members.iter().filter(|basis| kinds(basis).contains(*kind)).count()
                    >= members.len()
            };
            Kind::ALL.into_iter().filter(is_of_half).collect::<Kinds>()
        };

        Self {
            kinds: of_half(|basis| basis.kinds),
            kinds_of_checks: of_half(|basis| basis.kinds_of_checks),
            own: of_half(|basis| basis.own),
            measured: of_half(|basis| basis.measured),
            methods: members.iter().fold(0, |methods, basis| methods | basis.methods),
        }
    }

    /// The basis on a client's problem that has constraints of these kinds. What a program says it
    /// checks counts without them. Nothing was measured there.
    #[must_use]
    pub fn on_checks(self, kinds: Kinds) -> Self {
        let kinds = self.kinds_of_checks.intersection(kinds);
        let kinds: Kinds = kinds.iter().chain(self.own.iter()).collect();
        Self { kinds, kinds_of_checks: kinds, measured: Kinds::NONE, ..self }
    }

    /// The kinds of constraints that it checks; empty if it checks nothing.
    pub fn kinds(self) -> Kinds {
        self.kinds
    }

    /// Whether it checks more than the form of lines on a problem without constraints, as a program
    /// can.
    pub fn checks_by_itself(self) -> bool {
        self.own.iter().any(|kind| kind != Kind::Format)
    }

    /// The kinds whose rate of misses was measured; empty if the verdict is a model's or a
    /// program's.
    pub fn measured(self) -> Kinds {
        self.measured
    }

    pub fn methods(self) -> impl Iterator<Item = Method> {
        Method::ALL.into_iter().filter(move |method| self.methods & (1 << *method as u8) != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(kinds: &[Kind]) -> Kinds {
        kinds.iter().copied().collect()
    }

    #[test]
    fn a_kind_counts_if_half_of_the_members_look_at_it() {
        let rules = Basis::rules(Kinds::WITHOUT_TRANSITION);
        let model = Basis::model(Method::Likelihood);
        let program = Basis::program(Kinds::ALL);
        let format = kinds(&[Kind::Format]);

        for (members, looked_at, measured) in [
            (vec![rules], Kinds::WITHOUT_TRANSITION, Kinds::WITHOUT_TRANSITION),
            (vec![rules, model], Kinds::WITHOUT_TRANSITION, Kinds::WITHOUT_TRANSITION),
            (vec![rules, model, model], format, Kinds::NONE),
            (vec![model, program], Kinds::ALL, Kinds::NONE),
            (vec![rules, rules, model], Kinds::WITHOUT_TRANSITION, Kinds::WITHOUT_TRANSITION),
            (vec![model, model], format, Kinds::NONE),
        ] {
            let basis = Basis::of_members(&members);
            assert_eq!((basis.kinds(), basis.measured()), (looked_at, measured), "{members:?}");
        }

        let methods: Vec<_> = Basis::of_members(&[program, rules, model]).methods().collect();
        assert_eq!(methods, [Method::Rules, Method::Likelihood, Method::Program]);
    }

    #[test]
    fn an_opinion_is_no_kind_of_constraint() {
        for method in [Method::Report, Method::Token, Method::Likelihood] {
            let basis = Basis::model(method);
            assert_eq!((basis.kinds(), basis.measured()), (kinds(&[Kind::Format]), Kinds::NONE));

            let custom = basis.on_checks(kinds(&[Kind::Format, Kind::Terminal]));
            assert_eq!(
                custom.kinds(),
                kinds(&[Kind::Format, Kind::Terminal]),
                "checks are evaluated"
            );
        }
    }

    #[test]
    fn what_a_program_says_it_checks_counts_on_a_problem_without_constraints() {
        let format = kinds(&[Kind::Format]);
        let program = Basis::program(Kinds::WITHOUT_TRANSITION);
        assert!(program.checks_by_itself());
        assert_eq!(program.on_checks(format).kinds(), Kinds::WITHOUT_TRANSITION);
        assert!(!Basis::program(format).checks_by_itself());

        for other in [Basis::rules(Kinds::ALL), Basis::model(Method::Report), Basis::NONE] {
            assert!(!other.checks_by_itself(), "{other:?}");
        }
        assert_eq!(Basis::rules(Kinds::ALL).on_checks(format).kinds(), format);

        // Two of three members do not vouch for more than the form.
        let rules = Basis::rules(Kinds::ALL);
        assert!(!Basis::of_members(&[rules, rules, program]).checks_by_itself());
        let stored: Basis =
            serde_json::from_str(&serde_json::to_string(&program).unwrap()).unwrap();
        assert_eq!(stored, program);
    }

    #[test]
    fn on_a_clients_problem_only_the_kinds_that_it_has_are_looked_at() {
        let basis = Basis::rules(Kinds::WITHOUT_TRANSITION)
            .on_checks(kinds(&[Kind::Format, Kind::Terminal]));
        assert_eq!(
            (basis.kinds(), basis.measured()),
            (kinds(&[Kind::Format, Kind::Terminal]), Kinds::NONE)
        );
        assert_eq!(Basis::rules(Kinds::NONE), Basis::NONE);
    }
}
