//! A problem of your own, with checks as CEL expressions. The executor `replay` proposes given
//! lines, so that checks can be tried without a model; the first two lines violate one each.
//!
//! `cargo run --example own_problem`

use prime_problems::Custom;
use prime_service::app::App;
use prime_settings::Settings;
use serde_json::json;

fn main() -> anyhow::Result<()> {
    let problem = Custom::read(&json!({
        "statement": "Give three different numbers from `of` that add up to `sum`.",
        "input": {"of": [3, 5, 8, 13], "sum": 21},
        "answer": {
            "schema": {"type": "array", "items": {"type": "integer"}, "minItems": 3, "maxItems": 3},
        },
        "constraints": [
            {"name": "members", "severity": "critical", "check": "answer.all(n, n in input.of)"},
            {
                "name": "different", "severity": "major",
                "check": "answer[0] != answer[1] && answer[1] != answer[2]",
            },
            {
                "name": "sum", "severity": "critical",
                "check": "answer[0] + answer[1] + answer[2] == input.sum",
            },
        ],
    }))?;
    let sets = [
        "agents.executor.implementation=replay".to_owned(),
        r#"agents.executor.lines=["[8, 8, 5]", "[3, 5, 8]", "[3, 5, 13]"]"#.to_owned(),
        "run.fanout=1".to_owned(),
    ];
    let settings = Settings::load(&[], std::iter::empty(), &sets)?;

    let outcome = actix::System::new()
        .block_on(async { anyhow::Ok(App::start(settings)?.solve(problem.problem()).await?) })?;

    println!("{} proposals, verified: {}", outcome.proposals, outcome.is_verified());
    println!("answer: {}", outcome.answer.unwrap_or_default());
    Ok(())
}
