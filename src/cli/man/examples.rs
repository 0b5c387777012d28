//! The examples of the manual and of `--help`.

use super::evaluation_examples::EVALUATION;

/// The examples of a command: what each does, and how.
pub type Examples = (&'static str, &'static [(&'static str, &'static str)]);

/// The examples of all commands, by the names of their pages.
pub fn all() -> impl Iterator<Item = &'static Examples> {
    PRODUCT.iter().chain(EVALUATION)
}

/// The examples on the page of this name.
pub fn of(page: &str) -> Option<&'static [(&'static str, &'static str)]> {
    all().find(|(name, _)| *name == page).map(|(_, examples)| *examples)
}

const PRODUCT: &[Examples] = &[
    (
        "prime-agents",
        &[
            ("Solve an instance with a built-in model:", "prime-agents run tower-of-hanoi"),
            (
                "Start a daemon and submit a run to it:",
                "prime-agents serve &\nprime-agents runs submit n-queens --wait",
            ),
            ("Check the machine and the configuration:", "prime-agents doctor"),
        ],
    ),
    (
        "prime-agents-run",
        &[
            (
                "Solve the fourth medium instance:",
                "prime-agents run n-queens --difficulty medium --index 3",
            ),
            (
                "Solve an input of your own without a model, and keep every step:",
                "prime-agents run bubble-sort --input my.json --set \
                 agents.executor.implementation=reference --trace steps.jsonl",
            ),
            (
                "Solve a problem of your own, here with given lines instead of a model:",
                "prime-agents run --problem examples/problem.json \
                 --set agents.executor.implementation=replay \
                 --set 'agents.executor.lines=[\"[3,5,13]\"]'",
            ),
        ],
    ),
    (
        "prime-agents-problem",
        &[(
            "Understand a problem of your own:",
            "prime-agents problem check examples/problem.json",
        )],
    ),
    (
        "prime-agents-problem-check",
        &[(
            "See what two answers break, without a model:",
            "prime-agents problem check examples/problem.json --line '[8,8,5]' \
             --line '[3,5,13]'",
        )],
    ),
    ("prime-agents-schedules", &[("See what will start next:", "prime-agents schedules next")]),
    (
        "prime-agents-schedules-list",
        &[("List the schedules with their last runs:", "prime-agents schedules list")],
    ),
    (
        "prime-agents-schedules-next",
        &[("List the next times of one schedule:", "prime-agents schedules next nightly")],
    ),
    (
        "prime-agents-schedules-run",
        &[("Start a run of a schedule now:", "prime-agents schedules run nightly")],
    ),
    ("prime-agents-webhooks", &[("See what was given up:", "prime-agents webhooks list")]),
    (
        "prime-agents-webhooks-list",
        &[("List the webhooks with what waits:", "prime-agents webhooks list")],
    ),
    (
        "prime-agents-webhooks-messages",
        &[(
            "List what was given up, with the reasons, as JSON:",
            "prime-agents webhooks messages ops --output json",
        )],
    ),
    (
        "prime-agents-webhooks-resend",
        &[
            ("Send all that was given up again:", "prime-agents webhooks resend ops"),
            (
                "Send one message again:",
                "prime-agents webhooks resend ops msg_019a0b1c2d3e4f5061728394a5b_ended",
            ),
        ],
    ),
    ("prime-agents-tasks", &[("Upload a task:", "prime-agents tasks push count.wasm")]),
    (
        "prime-agents-tasks-push",
        &[("Name the task:", "prime-agents tasks push count.wasm --name count-2")],
    ),
    ("prime-agents-tasks-list", &[("List your tasks:", "prime-agents tasks list")]),
    ("prime-agents-tasks-delete", &[("Delete a task:", "prime-agents tasks delete count")]),
    (
        "prime-agents-runs",
        &[(
            "Submit a run and follow it:",
            "prime-agents runs watch \"$(prime-agents runs submit n-queens)\"",
        )],
    ),
    (
        "prime-agents-runs-submit",
        &[
            (
                "Submit a run and wait for its result:",
                "prime-agents runs submit n-queens --index 3 --wait",
            ),
            (
                "Submit a problem of your own:",
                "prime-agents runs submit --problem problem.json --strategy beam",
            ),
            (
                "Retry safely in a script:",
                "prime-agents runs submit n-queens --key nightly-2026-02-03",
            ),
        ],
    ),
    (
        "prime-agents-runs-list",
        &[
            (
                "List all failed runs as JSON:",
                "prime-agents runs list --status failed --all --output json",
            ),
            (
                "Find runs by what is in them, the longest first:",
                "prime-agents runs list -q 418 --sort -steps",
            ),
        ],
    ),
    (
        "prime-agents-runs-trace",
        &[(
            "Save a trace:",
            "prime-agents runs trace run_019a0b1c2d3e4f5061728394a5b --out trace.jsonl",
        )],
    ),
    (
        "prime-agents-serve",
        &[
            ("Serve on another port:", "prime-agents serve --set server.bind=127.0.0.1:8080"),
            (
                "Reload the configuration of a running daemon:",
                "kill -HUP \"$(pidof prime-agents)\"",
            ),
        ],
    ),
    (
        "prime-agents-mcp",
        &[(
            "Give an MCP client the runs of a daemon:",
            "prime-agents mcp --url http://127.0.0.1:7433",
        )],
    ),
    (
        "prime-agents-loadtest",
        &[(
            "Measure coordination with 1000 trajectories:",
            "prime-agents loadtest --trajectories 1000 --steps 2000",
        )],
    ),
    (
        "prime-agents-doctor",
        &[("Check memory and devices without loading a model:", "prime-agents doctor --no-load")],
    ),
    ("prime-agents-model", &[("What a file holds:", "prime-agents model show model.gguf")]),
    (
        "prime-agents-model-show",
        &[("Show what a file holds and needs:", "prime-agents model show model.gguf")],
    ),
    (
        "prime-agents-model-render",
        &[(
            "Show what a model would see:",
            "prime-agents model render model.gguf --messages messages.json",
        )],
    ),
    (
        "prime-agents-agents-try",
        &[
            (
                "Show one turn of an executor:",
                "prime-agents agents try executor llama --task n-queens --after 2",
            ),
            (
                "The same turn with a prompt of your own:",
                "prime-agents agents try executor llama --task n-queens --after 2 --prompt prompt.txt",
            ),
        ],
    ),
    (
        "prime-agents-config-show",
        &[("Save the effective configuration:", "prime-agents config show >my.toml")],
    ),
    ("prime-agents-key-new", &[("Make a key for a client:", "prime-agents key new ci")]),
    (
        "prime-agents-completions",
        &[
            ("Complete in the user's shell from now on:", "prime-agents completions --install"),
            ("Complete in bash, in this shell:", "source <(prime-agents completions bash)"),
        ],
    ),
    (
        "prime-agents-runs-show",
        &[(
            "Print a run with its answer as JSON:",
            "prime-agents runs show run_019a0b1c2d3e4f5061728394a5b --output json",
        )],
    ),
    (
        "prime-agents-runs-watch",
        &[("Follow a run to its end:", "prime-agents runs watch run_019a0b1c2d3e4f5061728394a5b")],
    ),
    (
        "prime-agents-runs-cancel",
        &[(
            "Cancel a run; its committed steps stay:",
            "prime-agents runs cancel run_019a0b1c2d3e4f5061728394a5b",
        )],
    ),
    (
        "prime-agents-runs-attest",
        &[(
            "Keep a signed statement:",
            "prime-agents runs attest run_019a0b1c2d3e4f5061728394a5b --out run.json",
        )],
    ),
    (
        "prime-agents-attest",
        &[
            ("Make a key for the daemon:", "prime-agents attest key attest.pem"),
            (
                "Check a statement and the run's trace:",
                "prime-agents attest verify run.json --trace run.jsonl \
                 --key ed25519:11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=",
            ),
        ],
    ),
    (
        "prime-agents-attest-key",
        &[("Make a key, or show its public half:", "prime-agents attest key attest.pem")],
    ),
    (
        "prime-agents-attest-verify",
        &[(
            "Check a statement:",
            "prime-agents attest verify run.json \
             --key ed25519:11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=",
        )],
    ),
    (
        "prime-agents-runs-fork",
        &[(
            "Start a new run from the first ten events of another:",
            "prime-agents runs fork run_019a0b1c2d3e4f5061728394a5b --seq 10 --seed 7",
        )],
    ),
    (
        "prime-agents-runs-retry",
        &[
            (
                "Try a failed run again, without the lines that were rejected:",
                "prime-agents runs retry run_019a0b1c2d3e4f5061728394a5b",
            ),
            (
                "The same, for a run that ended at its limit of proposals:",
                "prime-agents runs retry run_019a0b1c2d3e4f5061728394a5b --budget-steps 2000",
            ),
        ],
    ),
    (
        "prime-agents-runs-export",
        &[
            (
                "Write a run with its chain, for another daemon:",
                "prime-agents runs export run_019a0b1c2d3e4f5061728394a5b --out run.jsonl",
            ),
            (
                "Write it as spans for an OpenTelemetry collector:",
                "prime-agents runs export run_019a0b1c2d3e4f5061728394a5b --as otel --content",
            ),
        ],
    ),
    (
        "prime-agents-runs-import",
        &[(
            "Add a run of another daemon:",
            "prime-agents runs import run.jsonl --url http://127.0.0.1:7433",
        )],
    ),
    (
        "prime-agents-runs-reviews",
        &[(
            "List the steps that a person should look at:",
            "prime-agents runs reviews run_019a0b1c2d3e4f5061728394a5b",
        )],
    ),
    (
        "prime-agents-runs-review",
        &[(
            "Reject a step, with the reason:",
            "prime-agents runs review run_019a0b1c2d3e4f5061728394a5b 15 reject --note neighbours",
        )],
    ),
    (
        "prime-agents-runs-assign",
        &[(
            "Leave a step to the key bob:",
            "prime-agents runs assign run_019a0b1c2d3e4f5061728394a5b 15 bob",
        )],
    ),
    (
        "prime-agents-runs-pairs",
        &[(
            "Write the reviews of a task's runs as preference pairs:",
            "prime-agents runs pairs --task n-queens --out pairs.jsonl",
        )],
    ),
    (
        "prime-agents-runs-approvals",
        &[("List the steps that wait, of all runs:", "prime-agents runs approvals")],
    ),
    (
        "prime-agents-runs-approve",
        &[(
            "Commit the line that waits as number 2:",
            "prime-agents runs approve run_019a0b1c2d3e4f5061728394a5b 2",
        )],
    ),
    (
        "prime-agents-runs-reject",
        &[(
            "Refuse a line, with a reason that the executor reads:",
            "prime-agents runs reject run_019a0b1c2d3e4f5061728394a5b 2 --reason \
             \"no two queens in a row\"",
        )],
    ),
    (
        "prime-agents-runs-edit",
        &[(
            "Put another line in its place:",
            "prime-agents runs edit run_019a0b1c2d3e4f5061728394a5b 2 \"place 3 5\"",
        )],
    ),
    (
        "prime-agents-runs-label",
        &[(
            "Give a run a label, and take another one away:",
            "prime-agents runs label run_019a0b1c2d3e4f5061728394a5b team:red --remove draft",
        )],
    ),
    (
        "prime-agents-runs-overview",
        &[(
            "Add up the runs of November:",
            "prime-agents runs overview --since 2026-11-01T00:00:00Z --before \
             2026-12-01T00:00:00Z",
        )],
    ),
    (
        "prime-agents-runs-split",
        &[(
            "Compare the two sides of an A/B test since a day:",
            "prime-agents runs split --since 2026-02-03T00:00:00Z",
        )],
    ),
    (
        "prime-agents-runs-gc",
        &[(
            "Remove runs that ended more than 90 days ago:",
            "prime-agents runs gc --older-than-days 90",
        )],
    ),
    (
        "prime-agents-runs-reverify",
        &[(
            "Which of the finished runs would another verifier have decided otherwise?",
            "prime-agents runs reverify --all --verifier strict",
        )],
    ),
    (
        "prime-agents-runs-verify-chain",
        &[(
            "Compute the hash chain of a run, and compare it with its record:",
            "prime-agents runs verify-chain run_019a0b1c2d3e4f5061728394a5b",
        )],
    ),
    (
        "prime-agents-agents",
        &[("Check all configured agents on every task:", "prime-agents agents check")],
    ),
    (
        "prime-agents-agents-list",
        &[("List all agents that can be named:", "prime-agents agents list")],
    ),
    (
        "prime-agents-agents-show",
        &[(
            "Print the options and the prompt of a verifier:",
            "prime-agents agents show verifier tiny",
        )],
    ),
    (
        "prime-agents-agents-check",
        &[("Check the agents of a configuration:", "prime-agents agents check --config my.toml")],
    ),
    (
        "prime-agents-agents-schema",
        &[(
            "Write the schema for an editor:",
            "prime-agents agents schema executor >executor.json",
        )],
    ),
    (
        "prime-agents-config-check",
        &[(
            "Check a file before the daemon reloads it:",
            "prime-agents config check --config my.toml",
        )],
    ),
    (
        "prime-agents-config-schema",
        &[("Write the schema for an editor:", "prime-agents config schema >schema.json")],
    ),
    (
        "prime-agents-cluster",
        &[("Show the nodes of a cluster:", "prime-agents cluster status --url http://db1:7433")],
    ),
    (
        "prime-agents-cluster-status",
        &[(
            "Show the nodes, asking any that answers:",
            "prime-agents cluster status --url http://db1:7433 --url http://db2:7433",
        )],
    ),
    (
        "prime-agents-journal",
        &[(
            "Move to PostgreSQL:",
            "prime-agents journal copy data/runs.sqlite postgres://prime@db/prime",
        )],
    ),
    (
        "prime-agents-journal-copy",
        &[(
            "Move back to a file:",
            "prime-agents journal copy postgres://prime@db/prime data/runs.sqlite",
        )],
    ),
    (
        "prime-agents-journal-check",
        &[("Look for damage:", "prime-agents journal check data/runs.sqlite")],
    ),
    (
        "prime-agents-journal-salvage",
        &[(
            "Save what a damaged file still holds:",
            "prime-agents journal salvage data/runs.sqlite data/saved.sqlite",
        )],
    ),
    ("prime-agents-key", &[("Make a key for a client:", "prime-agents key new ci")]),
    (
        "prime-agents-health",
        &[("Ask whether a run submitted now would make progress:", "prime-agents health --ready")],
    ),
    ("prime-agents-train", &[("List the arguments of the trainer:", "prime-agents train --help")]),
    (
        "prime-agents-config",
        &[("Print the effective configuration:", "prime-agents config show --config my.toml")],
    ),
    (
        "prime-agents-man",
        &[("Install all pages:", "prime-agents man --dir ~/.local/share/man/man1")],
    ),
];
