//! The study file: which systems are asked what, and what the report shows.

mod check;
mod file;
mod load;
mod matched;
mod null;
mod runs;
mod system;

pub use check::{Ask, Study};
pub use file::{
    AskSection, BudgetSection, ReportSection, StudyFile, StudySection, SystemSection, schema,
};
pub use load::{StudyError, load, load_with, parse};
pub use matched::{Matched, Prompts, Samples, Select, Unit};
pub use runs::AskedRun;
pub use system::{OneShot, PROMPT_COMPONENTS, PromptStyle, Source, System};

#[cfg(test)]
mod tests;
