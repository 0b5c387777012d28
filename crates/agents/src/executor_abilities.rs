//! What an executor can be asked to do, judging by its options.

use prime_settings::{ExecutorAgent, ExecutorImplementation, RoleOptions as _, Settings};

/// The template of the prompt that our own models are trained on. Models trained on it write
/// actions of the benchmark's tasks, whatever they are asked.
const COMPACT: &str = "compact";

/// Returns whether an executor, or a part of it, follows a task's reference algorithm.
pub fn needs_algorithm(settings: &Settings, name: &str) -> bool {
    let Some(agent) = settings.agent::<ExecutorAgent>(name) else { return false };
    match agent.implementation {
        ExecutorImplementation::Reference | ExecutorImplementation::Scripted => true,
        ExecutorImplementation::Escalation => {
            agent.members().into_iter().any(|member| needs_algorithm(settings, member))
        }
        ExecutorImplementation::Llama
        | ExecutorImplementation::Openai
        | ExecutorImplementation::Process
        | ExecutorImplementation::Uniform
        | ExecutorImplementation::Replay => false,
    }
}

/// Returns whether an executor only draws among the choices that a state lists.
pub fn draws_choices(settings: &Settings, name: &str) -> bool {
    let agent = settings.agent::<ExecutorAgent>(name);
    agent.is_some_and(|agent| agent.implementation == ExecutorImplementation::Uniform)
}

/// Returns whether an executor, with all its parts, can be asked in words.
pub fn reads_prose(settings: &Settings, name: &str) -> bool {
    let Some(agent) = settings.agent::<ExecutorAgent>(name) else { return false };
    match agent.implementation {
        ExecutorImplementation::Reference
        | ExecutorImplementation::Scripted
        | ExecutorImplementation::Uniform => false,
        ExecutorImplementation::Llama | ExecutorImplementation::Openai => {
            let prompts = agent.options.prompt_names(agent.implementation);
            prompts.into_iter().all(|prompt| prompt != COMPACT)
        }
        ExecutorImplementation::Escalation => {
            agent.members().into_iter().all(|member| reads_prose(settings, member))
        }
        // It is unknown what they read, so they are given the benefit of the doubt.
        ExecutorImplementation::Process | ExecutorImplementation::Replay => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_with_the_compact_prompt_does_not_read_prose() {
        let reads = |sets: &[&str]| {
            let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
            let settings = Settings::load(&[], std::iter::empty(), &sets).unwrap();
            reads_prose(&settings, &settings.agents.executor.implementation)
        };
        assert!(!reads(&[]), "the built-in model");
        assert!(reads(&["agents.executor.prompt=step"]));
        assert!(!reads(&[
            "agents.executor.prompt=step",
            r#"agents.executor.prompt_variants=["compact"]"#
        ]));
        assert!(reads(&[
            "agents.executor.implementation=replay",
            r#"agents.executor.lines=["x"]"#
        ]));
        assert!(!reads(&["agents.executor.implementation=reference"]));
    }
}
