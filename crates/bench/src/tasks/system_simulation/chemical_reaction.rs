//! Chemical Reaction: Gillespie's direct method in integers; each draw of the input selects the
//! reaction that fires.
//!
//! A step is one reaction fired.

use crate::tasks::operation::validate_count;
use crate::tasks::pages::chemical_reaction as page;
use crate::tasks::prelude::*;

/// The task `chemical-reaction`.
pub struct ChemicalReaction;

/// With these bounds a thousand times the sum of all propensities stays below 2^63.
const MASS_MAX: i64 = 100_000;
const REACTIONS_MAX: usize = 100;
const RATE_MAX: i64 = 1_000;
const SPECIES_MAX: usize = 1_000;

/// An input of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    masses: Vec<i64>,
    counts: Vec<i64>,
    /// The reactions, numbered from 0.
    pub reactions: Vec<Reaction>,
    /// The draws, each in 0..=999, in order.
    pub draws: Vec<i64>,
}

/// One side of a reaction: species, ascending, each with its count.
pub type Side = Vec<(usize, i64)>;

/// A reaction with its rate constant.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reaction {
    /// Species that it consumes.
    #[serde(rename = "in")]
    pub reactants: Side,
    #[serde(rename = "out")]
    products: Side,
    /// Rate constant, an integer of at least 1.
    pub rate: i64,
}

impl Reaction {
    fn can_fire(&self, counts: &[i64]) -> bool {
        self.reactants.iter().all(|(species, count)| counts[*species] >= *count)
    }

    fn propensity(&self, counts: &[i64]) -> i64 {
        let ways = |(species, count): &(usize, i64)| {
            let n = counts[*species];
            // Molecules of one species react in unordered pairs.
            if *count == 1 { n } else { n * (n - 1) / 2 }
        };
        self.rate * self.reactants.iter().map(ways).product::<i64>()
    }
}

impl Reaction {
    /// The number of different sets of molecules that can react.
    fn encounters(&self, counts: &[i64]) -> i64 {
        match *self.reactants {
            [(species, 2)] => counts[species] * (counts[species] - 1) / 2,
            ref singles => singles.iter().map(|(species, _)| counts[*species]).product(),
        }
    }
}

impl Instance {
    /// The sum of counts · masses.
    fn mass(&self, counts: &[i64]) -> i64 {
        counts.iter().zip(&self.masses).map(|(count, mass)| count * mass).sum()
    }
}

fn side_mass(side: &Side, masses: &[i64]) -> i64 {
    side.iter().map(|(species, count)| count * masses[*species]).sum()
}

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Number of draws used.
    pub t: usize,
    /// Number of molecules of each species.
    pub counts: Vec<i64>,
    fired: Vec<i64>,
    last: Last<Action>,
}

word_actions!(Action {
    /// `fire j`: reaction j fires once.
    Fire(reaction) = "fire",
});

/// All sides of a reaction: one species once or twice, or two species once each.
fn sides(species: usize) -> Vec<Side> {
    let alone = (0..species).flat_map(|one| [vec![(one, 1)], vec![(one, 2)]]);
    let pairs = (0..species)
        .flat_map(|one| (one + 1..species).map(move |other| vec![(one, 1), (other, 1)]));
    alone.chain(pairs).collect()
}

/// A uniform sample of reactions without repetition; `None` if there are too few.
fn draw_reactions(masses: &[i64], count: usize, rng: &mut TaskRng) -> Option<Vec<Reaction>> {
    let sides = sides(masses.len());
    let common = |a: &Side, b: &Side| {
        a.iter().any(|(species, _)| b.iter().any(|(other, _)| other == species))
    };

    let mut pairs: Vec<(&Side, &Side)> = Vec::new();
    for a in &sides {
        let fits = |b: &&Side| side_mass(a, masses) == side_mass(b, masses) && !common(a, b);
        pairs.extend(sides.iter().filter(fits).map(|b| (a, b)));
    }

    if pairs.len() < count {
        return None;
    }

    // The first places of a shuffle.
    for place in 0..count {
        let other = rng.size(place, pairs.len() - 1);
        pairs.swap(place, other);
    }

    let reaction = |(reactants, products): &(&Side, &Side)| Reaction {
        reactants: (*reactants).clone(),
        products: (*products).clone(),
        rate: rng.between(1, 9),
    };
    Some(pairs[..count].iter().map(reaction).collect())
}

impl Task for ChemicalReaction {
    task_items!(Instance, State, Action, page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Instance {
        loop {
            let species = page::size::SPECIES.draw(difficulty, rng);
            let count = page::size::REACTIONS.draw(difficulty, rng);
            let steps = page::size::STEPS.draw(difficulty, rng);

            let masses: Vec<i64> = (0..species).map(|_| rng.between(1, 12)).collect();
            let counts = (0..species).map(|_| rng.between(0, 60)).collect();
            let Some(reactions) = draw_reactions(&masses, count, rng) else { continue };
            let draws = (0..steps).map(|_| rng.between(0, 999)).collect();
            let instance = Instance { masses, counts, reactions, draws };

            let Some((end, fired)) = reference_end::<Self>(&instance, u64::MAX) else { continue };
            let different = end.fired.iter().filter(|fired| **fired > 0).count();
            if fired == steps as u64 && different >= 3 {
                return instance;
            }
        }
    }

    fn validate(instance: &Instance) -> Result<(), InvalidInput> {
        let species = instance.masses.len();
        let counted = (1..=SPECIES_MAX).contains(&species);
        InvalidInput::unless(
            counted,
            "masses",
            format!("has {species} entries; give 1 to {SPECIES_MAX}"),
        )?;
        let masses = instance.masses.iter().all(|mass| (1..=MASS_MAX).contains(mass));
        InvalidInput::unless(masses, "masses", format!("every mass must be 1 to {MASS_MAX}"))?;

        let counts = instance.counts.len() == species
            && instance.counts.iter().all(|n| (0..=MASS_MAX).contains(n));
        let reason = format!("must be one count for each species, each 0 to {MASS_MAX}");
        InvalidInput::unless(counts, "counts", reason)?;

        let light = instance.mass(&instance.counts) <= MASS_MAX;
        InvalidInput::unless(
            light,
            "counts",
            format!("the sum of counts · masses must not exceed {MASS_MAX}"),
        )?;

        let side = |side: &Side| {
            let shape = side.is_sorted_by(|a, b| a.0 < b.0)
                && matches!(**side, [(_, 1 | 2)] | [(_, 1), (_, 1)]);
            shape && side.iter().all(|(one, _)| *one < species)
        };
        let balanced = |reaction: &Reaction| {
            side(&reaction.reactants)
                && side(&reaction.products)
                && (1..=RATE_MAX).contains(&reaction.rate)
                && side_mass(&reaction.reactants, &instance.masses)
                    == side_mass(&reaction.products, &instance.masses)
        };

        let reactions = (1..=REACTIONS_MAX).contains(&instance.reactions.len());
        let reason = format!(
            "must be 1 to {REACTIONS_MAX} with sides of equal mass, each of one species once or twice or two species \
             once each, ascending, and rates 1 to {RATE_MAX}"
        );
        InvalidInput::unless(
            reactions && instance.reactions.iter().all(balanced),
            "reactions",
            reason,
        )?;

        validate_count("draws", instance.draws.len())?;

        let draws = instance.draws.iter().all(|u| (0..1000).contains(u));
        InvalidInput::unless(draws, "draws", "every draw must be 0 to 999")
    }

    fn start(instance: &Instance) -> State {
        let fired = vec![0; instance.reactions.len()];
        State { t: 0, counts: instance.counts.clone(), fired, last: Last(None) }
    }

    fn check_state(instance: &Instance, state: &State) -> Result<(), InvalidInput> {
        limits::length("counts", state.counts.len(), instance.masses.len())?;
        limits::within("counts", state.counts.iter().copied(), 0..=MASS_MAX)?;
        limits::length("fired", state.fired.len(), instance.reactions.len())?;
        limits::counts("fired", state.fired.iter().copied())
    }

    fn apply(instance: &Instance, state: &mut State, action: &Action) -> Result<(), Illegal> {
        let Action::Fire(fires) = *action;
        if state.t >= instance.draws.len() {
            return Err(Illegal("every draw is used"));
        }
        let reaction = instance.reactions.get(fires).ok_or(Illegal("there is no such reaction"))?;
        if !reaction.can_fire(&state.counts) {
            return Err(Illegal("its reactants are not there"));
        }

        reaction.reactants.iter().for_each(|(species, count)| state.counts[*species] -= count);
        reaction.products.iter().for_each(|(species, count)| state.counts[*species] += count);
        state.fired[fires] += 1;
        state.t += 1;
        Ok(())
    }

    fn reference(instance: &Instance, state: &State) -> Option<Action> {
        let u = *instance.draws.get(state.t)?;
        let total: i64 =
            instance.reactions.iter().map(|reaction| reaction.propensity(&state.counts)).sum();

        let mut sum = 0;
        let selected = instance.reactions.iter().position(|reaction| {
            sum += reaction.propensity(&state.counts);
            // Without fractions: sum / total > u / 1000.
            1000 * sum > u * total
        });

        // Nothing is selected when nothing can fire.
        selected.map(Action::Fire)
    }

    fn violations(
        instance: &Instance,
        before: &State,
        action: &Action,
        after: &State,
        found: &mut Violations,
    ) {
        let Action::Fire(fires) = *action;

        // `draw` leaves one reaction in each state, and nothing else is to be decided: a clean
        // trace that ends is the algorithm's.
        if let (Some(u), true) = (instance.draws.get(before.t), fires < instance.reactions.len()) {
            let length = |reaction: &Reaction| reaction.rate * reaction.encounters(&before.counts);
            let start: i64 = instance.reactions[..fires].iter().map(length).sum();
            let end = start + length(&instance.reactions[fires]);
            let total: i64 = instance.reactions.iter().map(length).sum();
            found.require(page::DRAW, 1000 * start <= u * total && u * total < 1000 * end);
        }

        found.require(page::MASS, instance.mass(&after.counts) == instance.mass(&instance.counts));
        found.require(page::NON_NEGATIVE, after.counts.iter().all(|count| *count >= 0));
        // The counts that the reactions fired so far must have left.
        let mut counts = instance.counts.clone();
        for (reaction, fired) in instance.reactions.iter().zip(&after.fired) {
            reaction
                .reactants
                .iter()
                .for_each(|(species, count)| counts[*species] -= fired * count);
            reaction.products.iter().for_each(|(species, count)| counts[*species] += fired * count);
        }

        found.require(page::STOICHIOMETRY, counts == after.counts);

        let fired: i64 = after.fired.iter().sum();
        found.require(page::FIRED_SUM, usize::try_from(fired) == Ok(after.t));

        if Self::ended(instance, after) {
            let stuck = instance.reactions.iter().all(|reaction| !reaction.can_fire(&after.counts));
            found.require(page::DONE, after.t == instance.draws.len() || stuck);
        }
    }

    fn ended(instance: &Instance, state: &State) -> bool {
        state.t >= instance.draws.len()
            || instance.reactions.iter().all(|reaction| !reaction.can_fire(&state.counts))
    }

    fn steps_max(instance: &Instance) -> u64 {
        // One step a draw.
        instance.draws.len() as u64
    }

    fn answer(instance: &Instance, state: &State) -> Value {
        json!({ "counts": state.counts, "fired": state.fired, "mass": instance.mass(&state.counts) })
    }
}
