//! Estimates the cost of a training from a trial of its first steps. Writes only temporary files.

use std::fmt;

use serde::Serialize;

use super::{
    Samples, TrainError, gguf,
    recipe::{Budget, Recipe},
    sft::Run,
};

/// Number of held-out samples drawn per task.
const SAMPLES: usize = 32;

/// Lengths of a task's held-out samples, in tokens that the model reads.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TaskLength {
    /// The task's slug.
    pub task: String,
    /// Mean length.
    pub mean: f64,
    /// Length of the longest sample.
    pub longest: usize,
}

/// The cost of a supervised training, without the model's own attempts (`[corrections]`).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Plan {
    /// The model's name in the recipe.
    pub name: String,
    /// Number of weights.
    pub parameters: usize,
    /// Number of tokens of the vocabulary.
    pub vocabulary: usize,
    /// Size of the exported file in bytes.
    pub bytes: usize,
    /// The tasks' lengths, in the order of `data.tasks`.
    pub tasks: Vec<TaskLength>,
    /// Number of optimizer steps of the trial.
    pub trial_steps: u64,
    /// Wall time of the trial in seconds.
    pub trial_s: f64,
    /// Mean number of tokens of a step, in the trial.
    pub tokens_per_step: f64,
    /// Tokens per second of wall time, in the trial.
    pub tokens_per_s: f64,
    /// Number of steps that the budget allows.
    pub steps: f64,
    /// Number of tokens of these steps.
    pub tokens: f64,
    /// Wall time of the steps. A budget of processor seconds counts as wall time on as many
    /// processors as the trial used.
    pub training_s: f64,
    /// Wall time of the evaluations: at most this during the training, and about this at its end.
    pub evaluations_s: f64,
    /// Wall time in seconds of the evaluation at the end.
    pub last_evaluation_s: f64,
}

impl Plan {
    /// Makes steps for about `trial_s` seconds, at least a pool of eight, and extrapolates.
    ///
    /// # Errors
    /// Like training itself.
    pub fn of(
        recipe: &Recipe,
        samples: &mut dyn Samples,
        trial_s: f64,
    ) -> Result<Self, TrainError> {
        recipe.check()?;
        let folder = tempfile::tempdir().map_err(|source| TrainError::Io {
            action: "create a temporary folder in",
            path: std::env::temp_dir(),
            source,
        })?;

        let mut small = recipe.clone();
        small.evaluation.samples = SAMPLES;
        small.evaluation.final_samples = SAMPLES;

        let mut run = Run::open(&small, samples, &folder.path().join("trial.gguf"), false)?;
        let (began, began_cpu) = (run.progress.elapsed_s(), run.cpu_s());
        // Whole pools, because drawing a pool is part of the cost of its steps.
        while run.state.step == 0 || !run.ends_pool() || run.progress.elapsed_s() - began < trial_s
        {
            run.step(samples)?;
        }

        let (trial_s, trial_cpu_s) = (run.progress.elapsed_s() - began, run.cpu_s() - began_cpu);
        let began = run.progress.elapsed_s();
        run.grade(&small, SAMPLES)?;
        let round_s = (run.progress.elapsed_s() - began) / SAMPLES as f64;

        let (trial_steps, trial_tokens) = (run.state.step, run.state.tokens as f64);
        let step_s = trial_s / trial_steps as f64;
        let steps = match recipe.budget {
            Budget::Steps(steps) => steps as f64,
            Budget::Minutes(minutes) => minutes * 60.0 / step_s,
            Budget::CpuSeconds(seconds) => seconds / (trial_cpu_s / trial_steps as f64),
        };
        let tokens_per_step = trial_tokens / trial_steps as f64;
        let training_s = steps * step_s;

        let lengths = run.state.tasks.iter().zip(&run.held_out).map(|(task, held_out)| {
            let tokens = || held_out.iter().map(super::sample::Encoded::inputs);
            let mean = tokens().sum::<usize>() as f64 / held_out.len().max(1) as f64;
            TaskLength { task: task.clone(), mean, longest: tokens().max().unwrap_or_default() }
        });

        let model = gguf::encode(
            recipe.name.as_str(),
            &run.layout,
            &run.vocabulary,
            &run.state.weights,
            recipe.export.matrices,
        );

        Ok(Self {
            name: recipe.name.clone(),
            parameters: run.state.weights.len(),
            vocabulary: run.vocabulary.size(),
            bytes: model.len(),
            tasks: lengths.collect(),
            trial_steps,
            trial_s,
            tokens_per_step,
            tokens_per_s: trial_tokens / trial_s,
            steps,
            tokens: steps * tokens_per_step,
            training_s,
            evaluations_s: training_s * recipe.evaluation.share_max,
            last_evaluation_s: round_s * recipe.evaluation.final_samples as f64,
        })
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let minutes = |seconds: f64| seconds / 60.0;
        writeln!(
            f,
            "{}: {} task{}, {} parameters, {} tokens in the vocabulary, a file of {:.1} MB",
            self.name,
            self.tasks.len(),
            if self.tasks.len() == 1 { "" } else { "s" },
            self.parameters,
            self.vocabulary,
            self.bytes as f64 / 1e6
        )?;
        for task in &self.tasks {
            writeln!(
                f,
                "  {:<24} {:6.1} tokens a sample, at most {}",
                task.task, task.mean, task.longest
            )?;
        }
        writeln!(
            f,
            "trial: {} steps in {:.0} s, {:.0} tokens a step, {:.0} tokens/s",
            self.trial_steps, self.trial_s, self.tokens_per_step, self.tokens_per_s
        )?;
        write!(
            f,
            "budget: {:.0} steps, {:.1} million tokens, {:.0} min; evaluations at most {:.0} min during the training, {:.0} min \
             at its end",
            self.steps,
            self.tokens / 1e6,
            minutes(self.training_s),
            minutes(self.evaluations_s),
            minutes(self.last_evaluation_s)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::Toy;

    fn plan(budget: &str) -> Plan {
        let recipe = Recipe::from_toml(&format!(
            "name = 'toy'\nseed = 1\nbudget = {budget}\nbatch = {{ tokens = 256 }}\n\
             model = {{ d_model = 32, layers = 1, heads = 1, ff = 64, context = 32 }}\n"
        ))
        .expect("a valid recipe");
        Plan::of(&recipe, &mut Toy::new(), 0.0).expect("a trial works")
    }

    #[test]
    fn a_budget_of_steps_says_its_tokens() {
        let plan = plan("{ steps = 1000 }");
        // A sample is bos, five tokens of the prompt and three digits.
        let length = |task: &str| TaskLength { task: task.to_owned(), mean: 9.0, longest: 9 };
        assert_eq!(plan.tasks, [length("copy"), length("reverse")]);
        assert_eq!((plan.trial_steps, plan.steps, plan.vocabulary), (8, 1000.0, 259));
        // Samples of 9 tokens, padded to a step of 256 or nearly.
        assert!((200.0..=270.0).contains(&plan.tokens_per_step), "{plan:?}");
        assert!((plan.tokens - 1000.0 * plan.tokens_per_step).abs() < 1.0, "{plan:?}");

        let text = plan.to_string();
        assert!(
            text.starts_with("toy: 2 tasks, ")
                && text.contains("budget: 1000 steps, 0.3 million tokens"),
            "{text}"
        );
    }

    #[test]
    fn a_budget_of_minutes_says_its_steps() {
        let plan = plan("{ minutes = 30.0 }");
        assert!((plan.training_s - 1800.0).abs() < 1e-6, "{plan:?}");
        assert!((plan.steps * plan.trial_s / 8.0 - 1800.0).abs() < 1e-6, "{plan:?}");
    }
}
