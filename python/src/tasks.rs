//! What is known of tasks: their pages, grammars, levels; the curriculum.

use prime_bench::curriculum::PHASES;
use prime_bench::tasks::{self, Category, Difficulty, pattern};
use pyo3::prelude::*;
use serde_json::{Map, Value, json};

use crate::errors::value_error;
use crate::instance::find;
use crate::values::{text, to_python};

/// Slugs of all tasks, or of those of a category, in the order of the benchmark.
#[pyfunction(name = "_slugs")]
#[pyo3(signature = (category=None))]
pub fn slugs(category: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<&'static str>> {
    let category = category.filter(|given| !given.is_none()).map(|given| {
        text("category", given)?.parse::<Category>().map_err(|error| value_error("category", error))
    });
    let category = category.transpose()?;

    let specs = tasks::all().map(|task| task.spec());
    Ok(specs
        .filter(|spec| category.is_none_or(|of| spec.category == of))
        .map(|spec| spec.slug)
        .collect())
}

fn meanings(fields: &[(&str, &str)]) -> Value {
    fields
        .iter()
        .map(|(name, meaning)| ((*name).to_owned(), Value::from(*meaning)))
        .collect::<Map<_, _>>()
        .into()
}

/// The page of a task as a dict.
#[pyfunction(name = "_page")]
pub fn page<'py>(py: Python<'py>, task: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let spec = find(task)?.spec();
    let page = spec.page;

    let sizes = Difficulty::ALL
        .iter()
        .map(|level| (level.name().to_owned(), Value::from(spec.sizes[level.rank()])));
    let parsed = |text| serde_json::from_str::<Value>(text).unwrap_or_default();

    let page = json!({
        "id": spec.id,
        "slug": spec.slug,
        "title": spec.title,
        "category": spec.category,
        "levels": sizes.collect::<Map<_, _>>(),
        "problem": page.problem,
        "algorithm": page.algorithm.trim(),
        "step": page.step,
        "actions": page.actions,
        "constraints": spec.constraints,
        "input": meanings(page.input),
        "answer": meanings(page.answer),
        "state": meanings(page.state),
        "hidden": spec.hidden,
        "example": {
            "input": parsed(page.example.input),
            "answer": parsed(page.example.answer),
            "steps": page.example.steps,
            "first": page.example.first,
            "last": page.example.last,
        },
        "paper": spec.paper,
    });

    to_python(py, &page)
}

/// A grammar with a terminal for each form: where alternatives of one terminal begin alike, lexers
/// may stop at the shorter one.
fn lark(forms: &[&str]) -> String {
    let names: Vec<String> = (0..forms.len()).map(|place| format!("FORM_{place}")).collect();
    let terminal = |(name, form): (&String, &&str)| {
        format!("{name}: /{}/\n", pattern::form_regex(form).replace('/', "\\/"))
    };
    let terminals: String = names.iter().zip(forms).map(terminal).collect();
    format!("start: {}\n{terminals}", names.join(" | "))
}

/// grammar(task, form="gbnf") -> str
///
/// The grammar of one action line: `gbnf` (llama.cpp; XGrammar, so SGLang's `ebnf` and vLLM's
/// `grammar`), `regex` (vLLM, SGLang, outlines; unanchored, without capturing groups) or `lark`
/// (llguidance, lark). Numbers beyond 2^53 are in the grammar and are refused by the task.
#[pyfunction]
#[pyo3(signature = (task, form="gbnf"))]
pub fn grammar(task: &Bound<'_, PyAny>, form: &str) -> PyResult<String> {
    let forms = find(task)?.spec().actions;
    match form {
        "gbnf" => Ok(format!("root ::= action\n{}", pattern::gbnf(forms))),
        "regex" => Ok(pattern::regex(forms)),
        "lark" => Ok(lark(forms)),
        _ => Err(value_error("form", format!("unknown form {form:?}: use gbnf, regex or lark"))),
    }
}

/// Name, first and last epoch, and levels of each phase.
#[pyfunction(name = "_phases")]
pub fn phases() -> Vec<(&'static str, u32, u32, Vec<&'static str>)> {
    let levels = |levels: &[Difficulty]| levels.iter().map(|level| level.name()).collect();
    PHASES
        .iter()
        .map(|phase| (phase.name, phase.first_epoch, phase.last_epoch, levels(phase.difficulties)))
        .collect()
}
