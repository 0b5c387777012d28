//! What the verdict on a step rests on: constraints that are evaluated, or the opinion of a model or
//! of a program.

use serde::{Deserialize, Serialize};

use prime_bench::tasks::{EDITION, Kind, Kinds, Machine, Problem};

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
    /// A model rates the step; its expected rating is compared with a threshold.
    Rating,
    /// A reward model scores the step, compared with a threshold.
    Reward,
}

impl Method {
    const ALL: [Self; 8] = [
        Self::Rules,
        Self::Reference,
        Self::Report,
        Self::Token,
        Self::Likelihood,
        Self::Program,
        Self::Rating,
        Self::Reward,
    ];

    /// The name that results and records use.
    pub fn name(self) -> &'static str {
        ["rules", "reference", "report", "token", "likelihood", "program", "rating", "reward"]
            [self as usize]
    }
}

/// What the verdict on a step rests on: who looked, and at what.
///
/// Two sets are kept apart. The kinds that were *evaluated* are a fact: this program computed the
/// constraints itself. The kinds that were *looked at* contain those that a program's owner says it
/// checks. Only what was evaluated can make an answer verified ([`Assurance`](super::Assurance)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Stored", into = "Stored")]
pub struct Basis {
    kinds: Kinds,
    evaluated: Kinds,
    /// The kinds on a client's problem, whose checks are evaluated before a model is asked.
    kinds_of_checks: Kinds,
    evaluated_of_checks: Kinds,
    /// A set of methods; bit `m` stands for the method with `m as u8`.
    methods: u8,
}

impl Default for Basis {
    fn default() -> Self {
        Self::NONE
    }
}

/// A [`Basis`] in the record of a run, where it is always that on the run's problem.
#[derive(Serialize, Deserialize)]
struct Stored {
    kinds: Vec<Kind>,
    #[serde(default)]
    evaluated: Vec<Kind>,
    /// The [`EDITION`] of the evaluated constraints; 0 in records from before there was one.
    #[serde(default)]
    edition: u32,
    methods: Vec<Method>,
}

impl From<Basis> for Stored {
    fn from(basis: Basis) -> Self {
        Self {
            kinds: basis.kinds.iter().collect(),
            evaluated: basis.evaluated.iter().collect(),
            edition: EDITION,
            methods: basis.methods().collect(),
        }
    }
}

impl From<Stored> for Basis {
    fn from(stored: Stored) -> Self {
        let kinds = stored.kinds.into_iter().collect();
        // Constraints of another edition may have allowed what these refuse.
        let evaluated = match stored.edition {
            EDITION => stored.evaluated.into_iter().collect(),
            _ => Kinds::NONE,
        };
        let bit = |methods, method: Method| methods | 1 << method as u8;
        Self {
            kinds,
            evaluated,
            kinds_of_checks: kinds,
            evaluated_of_checks: evaluated,
            methods: stored.methods.into_iter().fold(0, bit),
        }
    }
}

impl Basis {
    /// The basis of a verdict that nobody gave: that of a verifier that looks at nothing.
    pub const NONE: Self = Self {
        kinds: Kinds::NONE,
        evaluated: Kinds::NONE,
        kinds_of_checks: Kinds::NONE,
        evaluated_of_checks: Kinds::NONE,
        methods: 0,
    };

    fn of(method: Method, kinds: Kinds, evaluated: Kinds) -> Self {
        // Without kinds nothing is judged, so that no method is at work either.
        if kinds == Kinds::NONE {
            return Self::NONE;
        }

        Self {
            kinds,
            evaluated,
            kinds_of_checks: kinds,
            evaluated_of_checks: evaluated,
            methods: 1 << method as u8,
        }
    }

    /// The basis of a verifier that evaluates constraints of these kinds.
    pub fn rules(kinds: Kinds) -> Self {
        Self::of(Method::Rules, kinds, kinds)
    }

    /// The basis of a verifier that follows the task's algorithm, besides all of its constraints.
    pub fn reference() -> Self {
        Self::of(Method::Reference, Kinds::ALL, Kinds::ALL)
    }

    /// The basis of a model's opinion. Before the model is asked, the machine refuses lines that do
    /// not apply, and a client's checks are evaluated. The model may read the other constraints,
    /// but nobody can say which of them it looked at.
    pub fn model(method: Method) -> Self {
        let format = Kinds::from_iter([Kind::Format]);
        Self {
            kinds_of_checks: Kinds::ALL,
            evaluated_of_checks: Kinds::ALL,
            ..Self::of(method, format, format)
        }
    }

    /// The basis of a program whose owner says that it checks these kinds.
    pub fn program(kinds: Kinds) -> Self {
        Self::of(Method::Program, kinds, Kinds::NONE)
    }

    /// The basis of an ensemble in which each member has a vote and half of the votes reject a
    /// step; [`Basis::NONE`] stands for a member that gave no verdict. A kind counts if half of the
    /// members look at it, because then the others cannot outvote them; a method counts if any
    /// member uses it.
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
            evaluated: of_half(|basis| basis.evaluated),
            kinds_of_checks: of_half(|basis| basis.kinds_of_checks),
            evaluated_of_checks: of_half(|basis| basis.evaluated_of_checks),
            methods: members.iter().fold(0, |methods, basis| methods | basis.methods),
        }
    }

    /// What holds for steps of both bases: the kinds that both looked at, by any of the methods. It
    /// is [`Basis::NONE`] if nobody looked at the steps of either.
    #[must_use]
    pub fn weakest(self, other: Self) -> Self {
        if self.methods == 0 || other.methods == 0 {
            return Self::NONE;
        }
        Self {
            kinds: self.kinds.intersection(other.kinds),
            evaluated: self.evaluated.intersection(other.evaluated),
            kinds_of_checks: self.kinds_of_checks.intersection(other.kinds_of_checks),
            evaluated_of_checks: self.evaluated_of_checks.intersection(other.evaluated_of_checks),
            methods: self.methods | other.methods,
        }
    }

    /// The basis on this problem. A client's problem has only the kinds that its definition names.
    #[must_use]
    pub fn on(self, problem: &dyn Problem) -> Self {
        if problem.has_reference() {
            return self;
        }
        let kinds = problem.rules().into_iter().filter_map(|rule| rule.kind).collect();
        // A program looks at what its owner says, whatever constraints the problem has.
        let is_program = self.methods().eq([Method::Program]);
        let looked_at =
            if is_program { self.kinds } else { self.kinds_of_checks.intersection(kinds) };
        let evaluated = self.evaluated_of_checks.intersection(kinds);

        Self {
            kinds: looked_at,
            evaluated,
            kinds_of_checks: looked_at,
            evaluated_of_checks: evaluated,
            methods: self.methods,
        }
    }

    /// The basis of the step that led a machine to its state. What was evaluated proves nothing of
    /// an answer in whose place any other would do.
    #[must_use]
    pub fn of_step_to(self, machine: &dyn Machine) -> Self {
        if machine.refuses_other_answers() {
            return self;
        }
        Self { evaluated: Kinds::NONE, evaluated_of_checks: Kinds::NONE, ..self }
    }

    /// The kinds of constraints that were looked at; empty if nobody looked.
    pub fn kinds(self) -> Kinds {
        self.kinds
    }

    /// The kinds of constraints that this program evaluated.
    pub fn evaluated(self) -> Kinds {
        self.evaluated
    }

    /// Returns whether a model or a program took part, whose verdict is not evaluated here.
    pub fn is_opinion(self) -> bool {
        self.methods().any(|method| !matches!(method, Method::Rules | Method::Reference))
    }

    /// The methods of those who looked.
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

        for (members, looked_at, evaluated) in [
            (vec![rules], Kinds::WITHOUT_TRANSITION, Kinds::WITHOUT_TRANSITION),
            (vec![rules, model], Kinds::WITHOUT_TRANSITION, Kinds::WITHOUT_TRANSITION),
            (vec![rules, model, model], format, format),
            (vec![model, program], Kinds::ALL, format),
            (vec![rules, rules, model], Kinds::WITHOUT_TRANSITION, Kinds::WITHOUT_TRANSITION),
            (vec![model, model], format, format),
            (vec![Basis::NONE, model], format, format),
            (vec![Basis::NONE, Basis::NONE, rules], Kinds::NONE, Kinds::NONE),
        ] {
            let basis = Basis::of_members(&members);
            assert_eq!((basis.kinds(), basis.evaluated()), (looked_at, evaluated), "{members:?}");
        }

        let methods: Vec<_> = Basis::of_members(&[program, rules, model]).methods().collect();
        assert_eq!(methods, [Method::Rules, Method::Likelihood, Method::Program]);
    }

    #[test]
    fn steps_that_differ_in_their_basis_have_what_both_have() {
        let (rules, all) = (Basis::rules(Kinds::WITHOUT_TRANSITION), Basis::reference());
        let program = Basis::program(Kinds::ALL);

        assert_eq!(rules.weakest(all).evaluated(), Kinds::WITHOUT_TRANSITION);
        assert_eq!(all.weakest(program).evaluated(), Kinds::NONE);
        assert_eq!(all.weakest(program).kinds(), Kinds::ALL);
        assert_eq!(all.weakest(Basis::NONE).kinds(), Kinds::NONE);

        let methods: Vec<_> = rules.weakest(program).methods().collect();
        assert_eq!(methods, [Method::Rules, Method::Program]);
    }

    #[test]
    fn an_opinion_is_no_kind_of_constraint() {
        for method in
            [Method::Report, Method::Token, Method::Likelihood, Method::Rating, Method::Reward]
        {
            let basis = Basis::model(method);
            let format = kinds(&[Kind::Format]);
            assert_eq!((basis.kinds(), basis.evaluated()), (format, format));
        }
        assert_eq!(Basis::program(Kinds::ALL).evaluated(), Kinds::NONE);
        assert_eq!(Basis::rules(Kinds::NONE), Basis::NONE);
    }

    #[test]
    fn a_record_without_what_was_evaluated_claims_nothing() {
        let old = r#"{"kinds":["format"],"kinds_of_checks":[],"measured":[],"methods":["rules"]}"#;
        let basis: Basis = serde_json::from_str(old).unwrap();
        assert_eq!((basis.kinds(), basis.evaluated()), (kinds(&[Kind::Format]), Kinds::NONE));

        let rules = Basis::rules(Kinds::ALL);
        let written = serde_json::to_string(&rules).unwrap();
        assert_eq!(serde_json::from_str::<Basis>(&written).unwrap(), rules);
    }

    #[test]
    fn what_another_edition_evaluated_counts_as_looked_at_alone() {
        for edition in [String::new(), r#""edition":0,"#.into(), r#""edition":999,"#.into()] {
            let stored = format!(
                r#"{{"kinds":["format","terminal"],"evaluated":["format","terminal"],{edition}
                   "methods":["rules"]}}"#
            );
            let basis: Basis = serde_json::from_str(&stored).unwrap();

            assert_eq!(basis.kinds(), kinds(&[Kind::Format, Kind::Terminal]));
            assert_eq!(basis.evaluated(), Kinds::NONE, "{stored}");
        }
    }
}
