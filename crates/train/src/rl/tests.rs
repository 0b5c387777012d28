//! The loop as a whole, and the common properties of its algorithms.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

use super::critic::Critic;
use super::groups::{Episode, Group, Sampled};
use super::objective::{Drawn, Gain, Loss, Objective};
use super::policy::Policy;
use super::record::{Ending, Record};
use super::state::State;
use super::update::Learner;
use super::{Algorithm, Budget, Keep, RlRecipe, Stop, rl};
use crate::batch::Batch;
use crate::decoder::Decoder;
use crate::layout::Layout;
use crate::model_view::ModelView;
use crate::network::Weights;
use crate::optimizer::Moments;
use crate::recipe::{Architecture, Compute};
use crate::sample::Encoded;
use crate::sampler::{Request, Sampling};
use crate::vocabulary::{EOS, Vocabulary};
use crate::{Session, initial};

const SHIPPED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/prime-tiny.gguf");
const TINY: Architecture = Architecture { d_model: 32, layers: 2, heads: 1, ff: 64, context: 16 };

fn recipe(more: &str) -> RlRecipe {
    let text = format!(
        "name = 'a'\nseed = 7\ninit = '{SHIPPED}'\nbudget = {{ iterations = 2 }}\n\
         data = {{ tasks = ['n-queens'], curriculum = {{ levels = ['easy'] }} }}\n\
         evaluation = {{ every = 1, instances = 2 }}\n{more}"
    );
    RlRecipe::from_toml(&text).expect("a recipe")
}

/// Groups of single tokens, of which the even ones are rewarded, and the share of the even ones.
fn bandit(layout: &Layout, policy: &Policy, rng: &mut ChaCha8Rng) -> (Vec<Group>, f64) {
    let weights: Weights<f32> = Weights::of(layout, policy.flat());
    let prompts: Vec<Vec<u16>> = (97..105).map(|letter| vec![letter]).collect();
    let requests = prompts.iter().map(|prompt| Request {
        prompt,
        streams: (0..16).map(|_| ChaCha8Rng::seed_from_u64(rng.next_u64())).collect(),
        values: None,
    });

    let sampling = Sampling { temperature: 1.0, tokens_max: 1 };
    let drawn =
        Decoder::new(ModelView::new(layout, &weights)).complete(requests.collect(), sampling);

    let mut rewarded = 0.0;
    let groups = prompts.iter().zip(drawn).map(|(prompt, completions)| {
        let episodes = completions.into_iter().map(|completion| {
            let is_even = completion.tokens.first().unwrap_or(&EOS).is_multiple_of(2);
            rewarded += f64::from(u8::from(is_even)) / 128.0;
            let sampled = Sampled { task: 0, prompt: prompt.clone(), completion };
            Episode { steps: vec![sampled], rewards: vec![f64::from(u8::from(is_even))] }
        });
        episodes.collect()
    });

    (groups.collect(), rewarded)
}

fn policy(recipe: &RlRecipe, layout: &Layout, weights: &[f32]) -> Policy {
    let moments = Moments { first: vec![0.0; layout.len], second: vec![0.0; layout.len] };
    Policy::new(recipe.update, &recipe.optimizer, layout, [weights, weights], moments, 0)
        .expect("a processor")
}

#[test]
fn every_algorithm_makes_what_is_rewarded_more_likely() {
    let algorithms = [
        Algorithm::Grpo { scale: None },
        Algorithm::Grpo { scale: Some(0.5) },
        Algorithm::Ppo { discount: 1.0, lambda: 0.95, value_clip: 0.2 },
        Algorithm::Reinforce { discount: 1.0 },
        Algorithm::BestOf,
    ];
    for (algorithm, compute) in algorithms
        .iter()
        .flat_map(|algorithm| [Compute::F32, Compute::Bf16].map(|c| (algorithm, c)))
    {
        let mut recipe = recipe("[update]\nepochs = 1\n");
        (recipe.model, recipe.algorithm, recipe.update.compute) = (TINY, *algorithm, compute);

        let layout = Layout::new(TINY, Vocabulary::default().size());
        let mut policy = policy(&recipe, &layout, &layout.initialize(1));
        let mut critic = Critic::new(TINY.d_model);
        let mut rng = ChaCha8Rng::seed_from_u64(1);

        let before = bandit(&layout, &policy, &mut rng).1;
        for iteration in 0..40 {
            let (groups, _) = bandit(&layout, &policy, &mut rng);
            let mut learner = Learner {
                recipe: &recipe,
                policy: &mut policy,
                critic: &mut critic,
                rehearsal: None,
                rate: 2e-3,
            };
            learner.learn(&groups, &mut rng, iteration).expect("finite");
        }

        let after = bandit(&layout, &policy, &mut rng).1;
        assert!(
            before < 0.65 && after > before + 0.2,
            "{algorithm:?} {compute:?}: {before} to {after}"
        );
    }
}

#[test]
fn both_arithmetics_agree_on_terms_gradients_reference_and_features() {
    let mut recipe = recipe("");
    recipe.objective = Objective { clip: 0.2, kl: 0.3, entropy: 0.1 };

    let (layout, _, initial) =
        initial::policy(Path::new(SHIPPED), recipe.model).expect("the shipped model");

    // Away from the reference, so that each term of the objective counts.
    let moved: Vec<f32> = initial
        .iter()
        .zip(layout.initialize(3))
        .map(|(weight, noise)| weight + 0.2 * noise)
        .collect();

    let mut batch = Batch::default();
    for (prompt, completion) in [("n-queens n=08", "c=3"), ("n-queens", "0124"), ("a", "")] {
        let tokens = |text: &str| text.bytes().map(u16::from).collect();
        batch.push(&Encoded::drawn(0, tokens(prompt), tokens(completion)), 64).expect("it fits");
    }

    // Hot, because the terms grow exponentially with a token's log-probability, and with its
    // rounding where it is unlikely.
    let loss = Loss { objective: recipe.objective, gain: Gain::Ratio, temperature: 4.0 };

    let mut results = [Compute::F32, Compute::Bf16].map(|compute| {
        recipe.update.compute = compute;
        let moments = Moments { first: vec![0.0; layout.len], second: vec![0.0; layout.len] };
        let mut policy =
            Policy::new(recipe.update, &recipe.optimizer, &layout, [&moved, &initial], moments, 0)
                .expect("a processor");

        let reference = policy.reference(&batch, loss.temperature).expect("logits");
        let features = policy.features(&batch).expect("features");

        let drawn: Vec<Drawn> = batch
            .targets
            .iter()
            .zip(&reference)
            .enumerate()
            .map(|(place, (target, reference))| Drawn {
                token: target.token,
                old: reference - 0.1,
                reference: *reference,
                advantage: if place % 2 == 0 { 1.0 } else { -0.7 },
                weight: 0.125,
            })
            .collect();

        let terms = policy.learn(&batch, loss, &drawn).expect("a gradient");
        let norm = policy.step(1e-3).expect("an update");
        policy.settle().expect("weights");
        (reference, features, terms, norm, policy.flat().to_vec())
    });

    let [
        (reference, features, terms, norm, flat),
        (other_reference, other_features, other_terms, other_norm, other_flat),
    ] = &mut results;

    let close =
        |a: f32, b: f32, room: f32| assert!((a - b).abs() < room * (1.0 + a.abs()), "{a} and {b}");

    assert_eq!(
        (reference.len(), features.len()),
        (batch.targets.len(), batch.targets.len() * recipe.model.d_model)
    );

    reference.iter().zip(other_reference).for_each(|(a, b)| close(*a, *b, 0.05));
    features.iter().zip(other_features).for_each(|(a, b)| close(*a, *b, 0.1));
    terms.iter().zip(other_terms).for_each(|(a, b)| {
        close(a.loss, b.loss, 0.1);
        close(a.kl, b.kl, 0.1);
        close(a.entropy, b.entropy, 0.05);
    });
    assert!((*norm / *other_norm - 1.0).abs() < 0.05, "{norm} and {other_norm}");

    // Adam's first step is the sign of the gradient. It is the same where both gradients are
    // clearly not zero.
    let same = flat
        .iter()
        .zip(other_flat.iter())
        .zip(&moved)
        .filter(|((a, b), from)| (*a > *from) == (*b > *from))
        .count();
    assert!(same as f64 > 0.9 * moved.len() as f64, "{same} of {}", moved.len());
}

#[test]
fn a_group_of_equals_teaches_nothing() {
    let recipe = recipe("");
    let (layout, _, initial) =
        initial::policy(Path::new(SHIPPED), recipe.model).expect("the shipped model");
    let mut policy = policy(&recipe, &layout, &initial);
    let mut rng = ChaCha8Rng::seed_from_u64(1);

    let (mut groups, _) = bandit(&layout, &policy, &mut rng);
    for episode in groups.iter_mut().flatten() {
        episode.rewards = vec![1.0];
    }

    let mut critic = Critic::new(recipe.model.d_model);
    let mut learner = Learner {
        recipe: &recipe,
        policy: &mut policy,
        critic: &mut critic,
        rehearsal: None,
        rate: 1e-3,
    };

    let outcome = learner.learn(&groups, &mut rng, 0).expect("finite");
    assert_eq!((outcome.mixed, outcome.samples, outcome.steps), (0.0, 0, 0));
}

fn records(out: &Path) -> Vec<Record> {
    let text =
        std::fs::read_to_string(format!("{}.records.jsonl", out.display())).expect("records");
    text.lines().map(|line| serde_json::from_str(line).expect("a record")).collect()
}

#[test]
fn a_resumed_run_continues_as_if_it_had_not_stopped() {
    let more = "[rollout]\ngroups = 24\ngroup = 6\ntrajectories = 6\ntemperature = 1.6\ncompute = 'bf16'\nproposals_max = 30\ntokens_max = 90\n\
                [reward]\nsource = 'oracle'\n[update]\ncompute = 'bf16'\n";

    let folder = tempfile::tempdir().expect("a folder");
    let stop = AtomicBool::new(false);
    let session = |resume| Session { resume, stop: &stop };
    let (whole, parts) = (folder.path().join("whole.gguf"), folder.path().join("parts.gguf"));

    let recipe = recipe(more);
    let summary = rl(&recipe, &whole, &session(false), &mut |_| ()).expect("a run");
    assert_eq!((summary.ending, summary.iterations), (Ending::Finished, 2));

    let mut first = recipe.clone();
    first.budget = Budget::Iterations(1);
    rl(&first, &parts, &session(false), &mut |_| ()).expect("the first half");
    rl(&recipe, &parts, &session(true), &mut |_| ()).expect("the second half");

    let (_, vocabulary, initial) =
        initial::policy(Path::new(SHIPPED), recipe.model).expect("the shipped model");
    let state = |out: &Path| {
        State::load(Path::new(&format!("{}.checkpoint", out.display())), &recipe, &vocabulary)
            .expect("a checkpoint")
    };

    let (whole_state, parts_state) = (state(&whole), state(&parts));
    assert_ne!(whole_state.weights, initial, "something was learnt");
    assert_eq!(whole_state.weights, parts_state.weights);
    assert_eq!(whole_state.moments, parts_state.moments);

    let shape = |records: &[Record]| {
        records.iter().map(|r| (r.iteration, r.reward, r.drawn)).collect::<Vec<_>>()
    };
    let (whole, parts) = (records(&whole), records(&parts));
    assert_eq!(shape(&whole), shape(&parts));
    assert_eq!(whole.iter().map(|record| record.iteration).collect::<Vec<_>>(), [0, 1, 2]);
    assert!(whole[1].mixed > 0.0 && whole[0].held_out.len() == 3, "{whole:?}");

    // Another recipe cannot continue from this checkpoint.
    let mut other = recipe.clone();
    other.rollout.group = 5;
    let refused = rl(&other, &folder.path().join("parts.gguf"), &session(true), &mut |_| ())
        .expect_err("refused");
    assert!(refused.to_string().contains("the recipe differs"), "{refused}");
}

#[test]
fn a_run_whose_rollouts_the_engine_draws_learns_from_them() {
    let more = "[rollout]\nsampler = 'engine'\ngroups = 24\ngroup = 6\ntrajectories = 4\ntemperature = 2.0\nproposals_max = 40\n\
                tokens_max = 90\n[reward]\nsource = 'oracle'\n";

    let folder = tempfile::tempdir().expect("a folder");
    let mut recipe = recipe(more);
    recipe.budget = Budget::Iterations(1);
    let out = folder.path().join("m.gguf");

    rl(&recipe, &out, &Session { resume: false, stop: &AtomicBool::new(false) }, &mut |_| ())
        .expect("a run");

    let records = records(&out);
    assert_eq!(records[0].held_out[0].right, 2, "easy boards are solved: {records:?}");
    let record = &records[1];
    assert!(record.mixed > 0.0 && record.learnt > 0, "{record:?}");
    // The updated policy is the one that drew, except for rounding.
    assert!(record.clipped < 0.05 && record.kl.abs() < 0.05, "{record:?}");
}

#[test]
fn whole_trajectories_are_rewarded_as_the_paper_does() {
    let more = "[rollout]\nunit = 'trajectory'\ngroups = 4\ngroup = 2\nproposals_max = 200\n";
    let folder = tempfile::tempdir().expect("a folder");
    let mut recipe = recipe(more);
    recipe.budget = Budget::Iterations(1);

    let out = folder.path().join("m.gguf");
    rl(&recipe, &out, &Session { resume: false, stop: &AtomicBool::new(false) }, &mut |_| ())
        .expect("a run");

    let record = &records(&out)[1];
    let [task, verify, efficiency, format] =
        record.reward_parts.expect("a composite reward has parts");

    assert!(
        (record.reward - (10.0 * task + verify + 0.5 * efficiency + 0.1 * format)).abs() < 1e-9,
        "{record:?}"
    );
    assert!(
        task > 0.0 && (0.0..1.0).contains(&efficiency),
        "the shipped model solves easy boards: {record:?}"
    );
}

#[test]
fn the_last_policy_is_kept_if_the_recipe_says_so_unless_it_has_collapsed() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |name: &str, keep: Keep, solved_drop: f64| {
        let mut recipe = recipe(
            "[rollout]\ngroups = 12\ngroup = 6\ntrajectories = 4\ntemperature = 2.0\nproposals_max = 10\ntokens_max = 90\n\
             [reward]\nsource = 'oracle'\n",
        );

        // A rate that destroys the policy.
        recipe.optimizer.learning_rate = 0.5;
        // Enough for easy boards.
        recipe.evaluation.proposals_max = Some(60);
        recipe.evaluation.keep = keep;
        recipe.stop = Stop { kl_max: f64::MAX, solved_drop };

        let session = Session { resume: false, stop: &AtomicBool::new(false) };
        let summary = rl(&recipe, &folder.path().join(name), &session, &mut |_| ()).expect("a run");
        (summary.kept_iteration, summary.ending)
    };

    assert_eq!(run("best", Keep::Best, 1.0), (0, Ending::Finished));
    assert_eq!(run("last", Keep::Last, 1.0), (2, Ending::Finished));
    assert_eq!(run("collapsed", Keep::Last, 0.1), (0, Ending::HeldOutCollapse));
}

#[test]
fn what_is_rehearsed_is_learnt_beside_and_named_in_the_model() {
    let more = "[rollout]\ngroups = 24\ngroup = 6\ntrajectories = 6\ntemperature = 1.6\nproposals_max = 30\ntokens_max = 90\n\
                [reward]\nsource = 'oracle'\n[rehearsal]\ntasks = ['tower-of-hanoi']\ntokens = 256\n";

    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("m.gguf");
    let mut learnt = recipe(more);
    // The benchmark has nearly all inputs of this task.
    learnt.data.benchmark_inputs = vec!["tower-of-hanoi".to_owned()];
    rl(&learnt, &out, &Session { resume: false, stop: &AtomicBool::new(false) }, &mut |_| ())
        .expect("a run");

    let exported = std::fs::read(&out).expect("the model");
    let text = String::from_utf8_lossy(&exported);
    assert!(
        text.contains("n-queens") && text.contains("tower-of-hanoi"),
        "the tasks that the model knows"
    );

    let misspelt = recipe("[rehearsal]\ntasks = ['tower-of-hanoy']\n");
    let refused =
        rl(&misspelt, &out, &Session { resume: false, stop: &AtomicBool::new(false) }, &mut |_| ());
    let message = refused.expect_err("there is no such task").to_string();
    assert!(
        message.contains("rehearsal.tasks") && message.contains("`tower-of-hanoi`"),
        "{message}"
    );

    let losses: Vec<_> = records(&out).iter().map(|record| record.rehearsal).collect();
    assert_eq!(losses[0], None, "nothing is rehearsed before the first iteration");
    // The shipped model is nearly sure of each token of this task.
    assert!(
        losses[1..].iter().all(|loss| loss.is_some_and(|loss| loss > 0.0 && loss < 0.2)),
        "{losses:?}"
    );
}
