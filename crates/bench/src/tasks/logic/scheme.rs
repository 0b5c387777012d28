//! Type schemes and their texts: `forall a b. a -> b -> t3`.

use super::simple_type::{self, Symbol, Type, Variable, letters, renamed, variable};
use super::type_program::{Due, Kind, Program};

/// A type with quantified variables, in order of first appearance.
#[derive(Clone)]
pub struct Scheme {
    pub quantified: Vec<Variable>,
    pub body: Type,
}

/// A count of variables as the number type of variables.
pub fn number(count: usize) -> u32 {
    u32::try_from(count).expect("invariant: a type has few variables")
}

fn names(count: u32) -> Vec<String> {
    (0..count).map(letters).collect()
}

impl Scheme {
    /// A type without quantified variables.
    pub fn of(body: Type) -> Self {
        Self { quantified: Vec::new(), body }
    }

    /// The text, with the quantified variables renamed to letters.
    pub fn text(&self) -> String {
        let rename = |place| Symbol::Renamed(number(place));
        let (body, count) =
            renamed(&self.body, |variable| self.quantified.contains(&variable), rename);
        let names = names(number(count));
        if names.is_empty() {
            body.to_string()
        } else {
            format!("forall {}. {body}", names.join(" "))
        }
    }

    /// Reads a text that [`Scheme::text`] wrote. Which variables were renamed is lost and does
    /// not matter: they get numbers that no run reaches.
    pub fn read(text: &str) -> Option<Self> {
        let (quantifier, body) = match text.strip_prefix("forall ") {
            Some(rest) => rest.split_once(". ")?,
            None => ("", text),
        };

        let given: Vec<&str> = quantifier.split(' ').filter(|name| !name.is_empty()).collect();
        if given.len() > simple_type::TYPE_MAX {
            return None;
        }
        let place = |piece: &str| given.iter().position(|name| *name == piece).map(number);
        let body = simple_type::read_with(body, |piece| place(piece).map(Symbol::Renamed))?;
        // Numbers from the top of the range, which no run reaches.
        let variable = |place: u32| Variable(u32::MAX - place);
        let symbols = body.iter().map(|symbol| match symbol {
            Symbol::Renamed(place) => Symbol::Variable(variable(*place)),
            _ => *symbol,
        });
        let body: Type = symbols.collect::<Vec<_>>().into();

        let scheme = Self { quantified: (0..number(given.len())).map(variable).collect(), body };
        (scheme.text() == text).then_some(scheme)
    }
}

/// The entries of the first `done` nodes: schemes by binder, the number of type variables made, and
/// the number of types that wait for their parents. `None` if the program has fewer nodes, or
/// `lets` are not theirs.
pub fn entered(
    program: &Program,
    done: usize,
    lets: &[(String, String)],
) -> Option<(Vec<Option<Scheme>>, u32, usize)> {
    let mut lets = lets.iter();
    let mut schemes = vec![None; program.names.len()];
    let (mut fresh, mut types) = (0, 0);

    for node in program.nodes.get(..done)? {
        for due in &node.due {
            match due {
                Due::Enter(binder) => {
                    schemes[*binder] = Some(Scheme::of(variable(fresh)));
                    fresh += 1;
                }
                Due::Condition => {}
                Due::Generalise(binder, _) => {
                    let (_, text) =
                        lets.next().filter(|(name, _)| *name == program.names[*binder])?;
                    schemes[*binder] = Some(Scheme::read(text)?);
                }
            }
        }

        fresh += match node.kind {
            Kind::App => 1,
            Kind::Variable(binder) => number(schemes[binder].as_ref()?.quantified.len()),
            _ => 0,
        };

        // A node replaces the types of its arguments by its own.
        types = types + 1 - node.kind.arguments();
    }

    lets.next().is_none().then_some((schemes, fresh, types))
}

#[cfg(test)]
mod tests {
    use super::Scheme;

    #[test]
    fn only_texts_that_schemes_write_are_read() {
        for text in ["Int", "t3 -> Int", "forall a. a -> a", "forall a b. (a -> b) -> t0 -> b"] {
            assert_eq!(Scheme::read(text).map(|scheme| scheme.text()).as_deref(), Some(text));
        }
        for text in [
            "",
            "a",
            "forall . Int",
            "forall a. Int",
            "forall b. b -> b",
            "forall a b. b -> a",
            "forall a a. a",
        ] {
            assert!(Scheme::read(text).is_none(), "{text:?}");
        }
    }
}
