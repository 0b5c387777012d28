//! The examples of `bench`, `data` and `study`.

/// Examples by the name of the command's page: what each does, and how.
pub const EVALUATION: &[(&str, &[(&str, &str)])] = &[
    (
        "prime-agents-bench",
        &[
            ("Read about a task:", "prime-agents bench show bubble-sort"),
            (
                "Measure the configured agents on a task:",
                "prime-agents bench solve --task bubble-sort --instances 20",
            ),
        ],
    ),
    (
        "prime-agents-bench-generate",
        &[
            ("Write the whole benchmark:", "prime-agents bench generate --all --out benchmark"),
            (
                "Write ten easy instances with traces to standard output:",
                "prime-agents bench generate --task n-queens --difficulty easy --instances 10 \
                 --traces --out -",
            ),
        ],
    ),
    (
        "prime-agents-data",
        &[(
            "Write training data of a task in the chat format:",
            "prime-agents data sft --task bubble-sort --out sft",
        )],
    ),
    (
        "prime-agents-data-sft",
        &[(
            "Write reference steps of all sorts:",
            "prime-agents data sft --category comparison-sorting --out sft",
        )],
    ),
    (
        "prime-agents-data-dpo",
        &[
            (
                "Write preference pairs of a task:",
                "prime-agents data dpo --task n-queens --out dpo",
            ),
            (
                "Write what the verifier of a run preferred; `runs trace` writes its trace:",
                "prime-agents data dpo --only-traces --trace trace.jsonl --out dpo",
            ),
            (
                "The same by RLAIF's scores, which tell faults apart too:",
                "prime-agents data dpo --only-traces --trace trace.jsonl --prefer rlaif --out dpo",
            ),
        ],
    ),
    (
        "prime-agents-data-grpo",
        &[(
            "Write prompts at the easy level:",
            "prime-agents data grpo --difficulty easy --out grpo",
        )],
    ),
    (
        "prime-agents-bench-export",
        &[("Write a dataset:", "prime-agents bench export --format parquet --out dataset")],
    ),
    (
        "prime-agents-bench-check",
        &[(
            "Judge outputs, and keep each judgement:",
            "prime-agents bench check outputs.jsonl --details details.jsonl",
        )],
    ),
    (
        "prime-agents-study",
        &[(
            "Run a study and make its page:",
            "prime-agents study run studies/smoke.toml\n\
             prime-agents study report data/studies/smoke.jsonl",
        )],
    ),
    (
        "prime-agents-study-check",
        &[("Check all shipped studies:", "prime-agents study check studies/*.toml")],
    ),
    (
        "prime-agents-study-schema",
        &[("Describe the columns of records:", "prime-agents study schema --records")],
    ),
    (
        "prime-agents-study-list",
        &[("List the shipped studies:", "prime-agents study list studies")],
    ),
    (
        "prime-agents-study-show",
        &[("Show what is asked:", "prime-agents study show studies/headline.toml")],
    ),
    (
        "prime-agents-study-plan",
        &[(
            "Estimate time and price:",
            "prime-agents study plan studies/headline.toml --prompt-price 0.1 \
             --completion-price 0.4",
        )],
    ),
    (
        "prime-agents-study-run",
        &[
            (
                "Run a study, or what is left of it:",
                "prime-agents study run studies/smoke.toml --concurrent 2",
            ),
            (
                "Stop when it has cost 5:",
                "prime-agents study run studies/n-queens.toml --prompt-price 0.1 \
                 --completion-price 0.4 --price-max 5",
            ),
        ],
    ),
    (
        "prime-agents-study-report",
        &[(
            "Make some tables only:",
            "prime-agents study report data/studies/smoke.jsonl --out report --show T2,T61",
        )],
    ),
    (
        "prime-agents-study-compare",
        &[(
            "Compare two systems of a study:",
            "prime-agents study compare \"single pass\" PRIME data/studies/smoke.jsonl",
        )],
    ),
    (
        "prime-agents-study-merge",
        &[(
            "Add somebody's runs to your own:",
            "prime-agents study merge mine.jsonl theirs=sent.jsonl --out all.jsonl",
        )],
    ),
    (
        "prime-agents-study-leaderboard",
        &[(
            "Rank all systems on the instances of a study:",
            "prime-agents study leaderboard all.jsonl --study studies/smoke.toml",
        )],
    ),
    (
        "prime-agents-bench-rollouts",
        &[(
            "Measure labels by up to eight rollouts of the built-in model:",
            "prime-agents bench rollouts --task gcd-euclidean --rollouts 8",
        )],
    ),
    (
        "prime-agents-bench-strategies",
        &[(
            "Compare two strategies on one task:",
            "prime-agents bench strategies --task n-queens --strategy iterative --strategy beam",
        )],
    ),
    (
        "prime-agents-bench-list",
        &[("List the tasks of a category:", "prime-agents bench list --category automata")],
    ),
    (
        "prime-agents-bench-show",
        &[("Print the page of a task:", "prime-agents bench show bubble-sort")],
    ),
    (
        "prime-agents-bench-prompt",
        &[(
            "Print a prompt without its worked example:",
            "prime-agents bench prompt sudoku --style structured --without examples",
        )],
    ),
    (
        "prime-agents-bench-corrupt",
        &[(
            "Measure what the checks of a task miss:",
            "prime-agents bench corrupt --task bubble-sort",
        )],
    ),
    ("prime-agents-bench-speed", &[("Measure all tasks:", "prime-agents bench speed")]),
    (
        "prime-agents-bench-solve",
        &[(
            "Measure the configured agents on 20 instances of a task:",
            "prime-agents bench solve --task n-queens --instances 20",
        )],
    ),
    (
        "prime-agents-bench-steps",
        &[(
            "Measure single steps of the executor:",
            "prime-agents bench steps --task n-queens --difficulty medium",
        )],
    ),
    (
        "prime-agents-bench-verifier",
        &[
            ("Compare a verifier with the rules:", "prime-agents bench verifier rules tiny"),
            (
                "Write the card of the configured verifier, and its page:",
                "prime-agents bench verifier --card cards/rules.json --report cards/rules.html",
            ),
            ("Show a card:", "prime-agents bench verifier --show cards/rules.json --details"),
        ],
    ),
    (
        "prime-agents-bench-overlap",
        &[(
            "Count the training inputs of n-queens that the benchmark has too:",
            "prime-agents bench overlap --task n-queens",
        )],
    ),
    (
        "prime-agents-bench-overhead",
        &[(
            "Measure what a turn costs without a model:",
            "prime-agents bench overhead --turns 1000",
        )],
    ),
];
