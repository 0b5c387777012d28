use std::sync::Arc;

use futures::executor::block_on;

use super::*;
use crate::llm::fake_model::{FakeModel, advanced, completion};
use crate::llm::{ExecutorOptions, LlmExecutor};
use crate::model::Model;
use crate::prompt::Templates;
use crate::{AsyncExecutor, Proposal};
use prime_protocol::Trajectory;

const SAMPLING: Sampling = Sampling { temperature: 0.7, top_p: 0.9, seed: 11 };

fn propose(model: &Arc<FakeModel>, options: ExecutorOptions, trajectory: &Trajectory) -> Proposal {
    let shared: Arc<dyn Model> = model.clone();
    let executor =
        LlmExecutor::new(shared, &Templates::default(), options).expect("built-in templates");
    block_on(executor.propose(trajectory, SAMPLING)).expect("a proposal")
}

/// A model that writes these parts in turn; a part that ends a query stops there.
fn writing(parts: &'static [&'static str]) -> Arc<FakeModel> {
    FakeModel::new(move |request| {
        let part = parts[request.prompt.matches('?').count().min(parts.len() - 1)];
        let tokens = part.len();
        Ok(Completion {
            usage: Usage::new(request.prompt.len() as u64, tokens as u64),
            tokens: part.bytes().map(u32::from).collect(),
            logprobs: vec![-0.5; tokens],
            is_stopped: request.stop.is_some_and(|stop| part.contains(stop)),
            ..completion(part)
        })
    })
}

/// An array of which two cells are known.
fn trajectory() -> (Trajectory, [String; 2]) {
    let trajectory = advanced("introsort", 1);
    let cell = |place: usize| {
        format!("={:+05} ", trajectory.machine.state()["a"][place].as_i64().expect("a number"))
    };
    let cells = [cell(3), cell(12)];
    (trajectory, cells)
}

#[test]
fn values_are_appended_where_they_are_asked_for() {
    let (trajectory, [first, second]) = trajectory();
    let model = writing(&["so 003?", "012?", "less\ncmp 0 1"]);
    let proposal = propose(&model, ExecutorOptions::compact("llama", 100), &trajectory);

    let prompt = prime_lessons::compact(trajectory.machine.as_ref());
    assert_eq!(proposal.derivation, format!("so 003?{first}012?{second}less"));
    assert_eq!((proposal.line.as_str(), proposal.unfinished), ("cmp 0 1", None));

    let written = "so 003?012?less\ncmp 0 1";
    assert_eq!(
        proposal.tokens,
        written.bytes().map(u32::from).collect::<Vec<_>>(),
        "values are not the model's"
    );
    assert_eq!(proposal.logprobs.len(), written.len());

    let appended = first.len() + second.len();
    let expected = Usage::new((prompt.len() + appended) as u64, written.len() as u64);
    assert_eq!(proposal.usage, expected);

    let requests = model.requests.lock().expect("no panic with the lock");
    let prompts: Vec<_> = requests.iter().map(|request| request.prompt.clone()).collect();
    let whole = format!("{prompt}so 003?{first}012?{second}");
    assert_eq!(prompts, [&prompt, &whole[..prompt.len() + 7 + first.len()], &whole]);
    assert!(requests.iter().all(|request| request.stop == Some('?')));

    let limits: Vec<_> = requests.iter().map(|request| request.max_tokens).collect();
    assert_eq!(limits, [100, 93, 89]);

    let spec = trajectory.machine.spec();
    assert_eq!(
        requests[0].grammar.as_deref(),
        Some(prompt::grammar(spec, prompt::FreeLine::Allowed, None).as_str())
    );
    assert_eq!(
        requests[1].grammar.as_deref(),
        Some(prompt::continued_grammar(spec, true).as_str())
    );
    assert_ne!(
        requests[0].sampling.seed, requests[1].sampling.seed,
        "or it would draw the same numbers again"
    );
}

#[test]
fn a_query_without_an_answer_ends_the_proposal_with_the_reason() {
    let (trajectory, [first, _]) = trajectory();
    let model = writing(&["003?", "so 999?never read"]);
    let proposal = propose(&model, ExecutorOptions::compact("llama", 100), &trajectory);
    assert_eq!((proposal.line.as_str(), proposal.derivation), ("999?", format!("003?{first}so")));

    let reason = proposal.unfinished.expect("a reason");
    assert!(reason.contains("`999`"), "{reason}");
    assert_eq!(model.count(), 2);
    assert!(trajectory.machine.fork().propose("999?").is_err(), "it is not an action");
}

#[test]
fn reads_are_bounded() {
    let (trajectory, _) = trajectory();
    let model = writing(&["003?"]);
    let proposal = propose(&model, ExecutorOptions::compact("llama", 1000), &trajectory);

    let reads_max = prime_lessons::reads_max("introsort");
    assert_eq!(model.count(), reads_max + 1);

    let last = model.last();
    let grammar = prompt::continued_grammar(trajectory.machine.spec(), false);
    assert_eq!((last.stop, last.grammar.as_deref()), (None, Some(grammar.as_str())));
    assert!(grammar.starts_with("root ::= [^?\\n]* \"\\n\" action\n"), "{grammar}");
    assert_eq!(proposal.unfinished, None);
}

#[test]
fn a_text_that_has_no_tokens_left_is_judged_as_it_is() {
    let (trajectory, [first, _]) = trajectory();
    let model = writing(&["003?"]);
    let proposal = propose(&model, ExecutorOptions::compact("llama", 4), &trajectory);
    assert_eq!((model.count(), proposal.line), (1, format!("003?{first}")));

    let model = FakeModel::new(|request| {
        if request.prompt.contains('?') {
            return Err(AgentError::new("model", Failure::TooLong, "513 tokens"));
        }
        Ok(Completion { is_stopped: true, ..completion("003?") })
    });
    let proposal = propose(&model, ExecutorOptions::compact("llama", 100), &trajectory);
    assert_eq!((model.count(), proposal.line), (2, format!("003?{first}")));
}

#[test]
fn only_models_that_have_learnt_lessons_with_reads_are_stopped() {
    let model = FakeModel::saying("what?\ncmp 0 1");
    let asked = |options: ExecutorOptions, task: &str| {
        let proposal = propose(&model, options, &advanced(task, 1));
        assert_eq!(proposal.derivation, "what?");
        model.last().stop
    };
    assert_eq!(asked(ExecutorOptions::compact("llama", 100), "bubble-sort"), None);
    assert_eq!(asked(ExecutorOptions::step("big", 100), "introsort"), None);

    let held = ExecutorOptions { grammar: true, ..ExecutorOptions::step("big", 100) };
    assert_eq!(asked(held, "introsort"), None);
    assert_eq!(asked(ExecutorOptions::compact("llama", 100), "introsort"), Some('?'));
}
