//! Resolution Proof: meets the used clauses that clash with the given one, by number, until a
//! resolvent is new.
// A clause is in the list of each of its literals, as in an index of occurrences, and waits in the
// bucket of its length. A literal of the given clause stands with the next used clause of the
// opposite literal's list, whose other literals follow. A literal that is a clause of its own is
// marked: a resolvent with it is subsumed, so that no other literal of the given clause is
// resolved.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::logic::literals::{Literals, Occurrences};
use prime_bench::tasks::logic::resolution_proof::{Clauses, Instance, ResolutionProof, State};

use crate::Lesson;
use crate::reads::looked_up;

pub struct ResolutionProofLesson;

const NOTHING: &str = "-";
/// Follows a literal of the given clause that the used one has as well.
const TWICE: char = '.';
/// Follows a literal of the given clause whose negation the used one has.
const CLASH: char = '#';
/// Stands for the next clause at the end of a list.
const NO_CLAUSE: &str = ".";
/// Marks a clause that exists; after a literal, the clause of this literal alone.
const CLAUSE: &str = "!";

impl Lesson for ResolutionProofLesson {
    type Task = ResolutionProof;

    fn view(instance: &Instance, state: &State) -> String {
        if ResolutionProof::ended(instance, state) {
            return "done".to_owned();
        }
        let index = Index::of(instance, state);

        state.pair().map_or_else(
            || NOTHING.to_owned(),
            |(given, met)| format!("{given:03} {}", index.given(given, Some(met))),
        )
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        ResolutionProof::reference(instance, state)?;
        let index = Index::of(instance, state);
        let mut line = String::new();

        if let Some((given, met)) = state.pair()
            && scan(&index, given, Some(met), &mut line)
        {
            return Some(line);
        }

        // Then the waiting clauses are given one by one, the shortest first.
        for length in 1..=instance.variables {
            let mut next = bucket(&index, length, None, &format!("s{length}"), &mut line);
            while let Some(given) = next {
                line += &looked_up(&format!("{given:03}"), &index.given(given, None));
                if scan(&index, given, None, &mut line) {
                    return Some(line);
                }
                next = bucket(&index, length, Some(given), &format!("n{given:03}"), &mut line);
            }
        }
        None
    }

    const READS_MAX: usize = 400;

    /// Hundreds of pairs of clauses may lie between two resolvents that are kept.
    const BYTES_MAX: usize = 8_500;

    const UNTAUGHT: [u32; 3] = [1, 1, 1];

    /// `s2`: the first waiting clause with two literals. `n012`: the one after clause 12 in its
    /// bucket. `012`: the literals of clause 12, each with the first used clause of the opposite
    /// literal. `007+03x012`: the used clause after clause 7 in the list of -3, while clause 12 is
    /// given. `-01+03`: asks if this is a clause.
    fn read(instance: &Instance, state: &State, address: &str) -> Option<String> {
        let index = Index::of(instance, state);
        let number =
            |digits: &str| digits.parse().ok().filter(|number| *number < index.clauses.len());
        let first = address.chars().next()?;
        let rest = address.get(1..)?;

        match first {
            's' => Some(numbered(index.waiting(rest.parse().ok()?, None))),
            'n' => {
                let after = number(rest)?;
                Some(numbered(index.waiting(index.clauses.get(after).len() as usize, Some(after))))
            }
            '+' | '-' => Some(known(index.contains(literals_in(address)?)).to_owned()),
            _ => match address.split_once('x') {
                None => Some(index.given(number(address)?, None)),
                Some((place, given)) => {
                    // The literals that were resolved may stand between.
                    let place = place.split_once(':').map_or(place, |(place, _)| place);
                    let (after, literal) = place.split_at_checked(place.find(['+', '-'])?)?;

                    let literal = literal.parse().ok()?;
                    let given = number(given)
                        .filter(|given| index.clauses.get(*given).contains(literal))?;

                    Some(index.entry(literal, index.partner(given, literal, Some(number(after)?))))
                }
            },
        }
    }
}

/// The clauses, indexed by their literals and by the progress of the strategy.
struct Index<'a> {
    clauses: Clauses<'a>,
    /// For each clause its place in the order in which they have been taken; the number of those
    /// taken if it is waiting.
    places: Vec<usize>,
    taken: usize,
    /// Literals that are clauses of their own.
    units: Occurrences,
}

impl<'a> Index<'a> {
    fn of(instance: &'a Instance, state: &'a State) -> Self {
        let clauses = state.clauses(instance);
        let mut units = Occurrences::default();

        (0..clauses.len())
            .map(|number| clauses.get(number))
            .filter(|clause| clause.len() == 1)
            .for_each(|unit| units.add(unit));

        let taken = state.taken();
        let mut places = vec![taken.len(); clauses.len()];
        taken.iter().enumerate().for_each(|(place, number)| places[*number] = place);

        Self { clauses, places, taken: taken.len(), units }
    }

    /// The next waiting clause of this length.
    fn waiting(&self, length: usize, after: Option<usize>) -> Option<usize> {
        let mut numbers = after.map_or(0, |after| after + 1)..self.clauses.len();
        numbers.find(|number| {
            self.places[*number] == self.taken && self.clauses.get(*number).len() as usize == length
        })
    }

    /// Returns whether a clause is taken before another one, in the order of the buckets.
    fn is_used(&self, number: usize, given: usize) -> bool {
        let turn = |number: usize| (self.places[number], self.clauses.get(number).len(), number);
        turn(number) < turn(given)
    }

    fn contains(&self, clause: Literals) -> bool {
        (0..self.clauses.len()).any(|number| self.clauses.get(number) == clause)
    }

    /// The next used clause with the opposite of a literal.
    fn partner(&self, given: usize, literal: i64, after: Option<usize>) -> Option<usize> {
        let mut numbers = after.map_or(0, |after| after + 1)..self.clauses.len();
        numbers.find(|number| {
            self.clauses.get(*number).contains(-literal) && self.is_used(*number, given)
        })
    }

    /// The next used clause in the opposite literal's list, the literal of the given clause, and
    /// the used clause's other literals.
    fn entry(&self, literal: i64, next: Option<usize>) -> String {
        let own = self.marked(literal);
        let rest = next.map(|number| self.all_marked(self.clauses.get(number).without(-literal)));
        format!("{}{own}:{}", numbered(next), rest.unwrap_or_default())
    }

    fn given(&self, given: usize, after: Option<usize>) -> String {
        let literals = self.clauses.get(given).iter();
        literals
            .map(|literal| self.entry(literal, self.partner(given, literal, after)) + "/")
            .collect()
    }

    fn marked(&self, literal: i64) -> String {
        written(literal) + if self.units.contains(literal) { CLAUSE } else { "" }
    }

    fn all_marked(&self, clause: Literals) -> String {
        clause.iter().map(|literal| self.marked(literal)).collect()
    }

    fn has_unit(&self, clause: Literals) -> bool {
        clause.iter().any(|literal| self.units.contains(literal))
    }
}

fn known(is_clause: bool) -> &'static str {
    if is_clause { CLAUSE } else { NOTHING }
}

fn written(literal: i64) -> String {
    format!("{literal:+03}")
}

fn all_written(literals: &[i64]) -> String {
    literals.iter().copied().map(written).collect()
}

fn numbered(clause: Option<usize>) -> String {
    clause.map_or_else(|| NO_CLAUSE.to_owned(), |number| format!("{number:03}"))
}

/// `-07+01`, in any order; `None` if these are not literals of a clause.
fn literals_in(address: &str) -> Option<Literals> {
    let starts: Vec<_> =
        address.match_indices(['+', '-']).map(|(start, _)| start).chain([address.len()]).collect();
    let literals = starts.windows(2).map(|ends| address[ends[0]..ends[1]].parse().ok());
    let mut literals = literals.collect::<Option<Vec<i64>>>()?;
    literals.sort_unstable_by_key(|literal| literal.unsigned_abs());
    Literals::try_from(literals).ok()
}

/// Reads which clause is next in a bucket.
fn bucket(
    index: &Index<'_>,
    length: usize,
    after: Option<usize>,
    address: &str,
    line: &mut String,
) -> Option<usize> {
    let next = index.waiting(length, after);
    *line += &looked_up(address, &numbered(next));
    next
}

/// Follows the lists of the given clause's literals side by side. Returns whether a resolvent is
/// kept.
fn scan(index: &Index<'_>, given: usize, after: Option<usize>, line: &mut String) -> bool {
    let clause = index.clauses.get(given);
    let mut lists: Vec<_> = clause
        .iter()
        // If another literal is a clause of its own, each resolvent would be subsumed.
        .filter(|literal| !index.has_unit(clause.without(*literal)))
        .filter_map(|literal| Some((literal, index.partner(given, literal, after)?)))
        .collect();

    while let Some((at, used)) = lists.iter().copied().min_by_key(|(_, next)| *next) {
        if lists.len() > 1 {
            lists.iter().for_each(|(literal, next)| *line += &head(*literal, *next));
            line.push(' ');
        }

        *line += &head(at, used);
        let other = index.clauses.get(used);
        // Without a resolvent, the address of the next one begins here.
        if let Some(resolvent) = resolved(index, clause.without(at), other.without(-at), line) {
            if is_new(index, resolvent, line) {
                return true;
            }
            *line += &head(at, used);
        }

        // Only the lists that stood at this clause advance.
        lists = std::mem::take(&mut lists)
            .into_iter()
            .filter_map(|(literal, next)| {
                if next != used {
                    return Some((literal, next));
                }
                if literal != at {
                    *line += &head(literal, used);
                }
                let next = index.partner(given, literal, Some(used));
                *line += &looked_up(&format!("x{given:03}"), &index.entry(literal, next));
                Some((literal, next?))
            })
            .collect();
    }

    *line += ". ";
    false
}

/// A literal with the clause that its list has come to.
fn head(literal: i64, next: usize) -> String {
    format!("{next:03}{}", written(literal))
}

/// Writes the other literals of the used clause and of the given one. `None` if one of them is a
/// clause of its own, or the negation of another.
fn resolved(
    index: &Index<'_>,
    stay: Literals,
    come: Literals,
    line: &mut String,
) -> Option<Vec<i64>> {
    line.push(':');

    for literal in come.iter() {
        *line += &index.marked(literal);
        if index.units.contains(literal) {
            return None;
        }
    }

    let mut literals: Vec<_> = come.iter().collect();
    for literal in stay.iter() {
        *line += &written(literal);
        if come.contains(-literal) {
            line.push(CLASH);
            return None;
        }
        if come.contains(literal) {
            line.push(TWICE);
        } else {
            literals.push(literal);
        }
    }

    line.push(' ');
    Some(literals)
}

/// Looks up the clauses that could be subsets of the resolvent. If there are none, orders its
/// literals and returns true.
fn is_new(index: &Index<'_>, mut literals: Vec<i64>, line: &mut String) -> bool {
    // Literals that are clauses were found before, so subsets begin with two.
    for size in 2..=literals.len() {
        for subset in subsets(&literals, size) {
            let subsumes = index.contains(subset.iter().copied().collect());
            *line += &looked_up(&all_written(&subset), known(subsumes));
            if subsumes {
                return false;
            }
        }
    }

    if literals.len() > 1 {
        literals.sort_unstable_by_key(|literal| literal.unsigned_abs());
        *line += &all_written(&literals);
    }

    true
}

/// The subsets of this size, in lexicographic order of their places.
fn subsets(literals: &[i64], size: usize) -> Vec<Vec<i64>> {
    if size == 0 {
        return vec![Vec::new()];
    }

    let from = |(place, literal): (usize, &i64)| {
        let rest = subsets(&literals[place + 1..], size - 1).into_iter();
        rest.map(|subset| [vec![*literal], subset].concat()).collect::<Vec<_>>()
    };
    literals.iter().enumerate().flat_map(from).collect()
}
