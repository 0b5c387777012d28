//! `bench list`, `bench show` and `bench prompt`.

use crate::binary::done;

#[test]
fn the_list_names_all_tasks_of_the_paper() {
    let list = done(&["bench", "list", "--output", "json"]).json(0);
    let tasks = list.as_array().expect("a list");
    assert!(tasks.iter().enumerate().all(|(id, task)| task["id"] == id));

    // The paper's categories with their numbers of tasks.
    let categories = [
        ("comparison-sorting", 15),
        ("non-comparison-sorting", 3),
        ("advanced-sorting", 10),
        ("graph-traversal", 6),
        ("tree-structures", 5),
        ("classic-puzzles", 6),
        ("automata", 8),
        ("string-matching", 5),
        ("mathematical", 8),
        ("logic", 6),
        ("data-structures", 6),
        ("system-simulation", 8),
    ];

    assert_eq!(tasks.len(), categories.iter().map(|(_, count)| count).sum::<usize>());
    for (category, count) in categories {
        assert_eq!(
            tasks.iter().filter(|task| task["category"] == category).count(),
            count,
            "{category}"
        );
        let of_category =
            done(&["bench", "list", "--category", category, "--output", "json"]).json(0);
        assert_eq!(of_category.as_array().map(Vec::len), Some(count), "{category}");
    }

    assert_eq!(tasks[0]["paper"]["steps"], 1_000_000);
    assert_eq!(tasks[0]["constraints"][0]["name"], "format");
    let said = format!("{} tasks", tasks.len());
    assert!(done(&["bench", "list"]).stdout.contains(&said), "{said}");
    done(&["bench", "list", "--category", "sorts"]).refused(&["sorts", "advanced-sorting"]);
}

#[test]
fn a_page_shows_the_worked_example() {
    let page = done(&["bench", "show", "bubble-sort"]);
    assert_eq!(page.code, 0, "{}", page.stderr);
    for part in [
        "Algorithm",
        "cmp <i> <j>",
        "permutation (invariant, critical)",
        "[64,34,25,12]",
        "steps: 15",
    ] {
        assert!(page.stdout.contains(part), "{part}: {}", page.stdout);
    }

    let json = done(&["bench", "show", "bubble-sort", "--output", "json"]).json(0);
    assert_eq!(json["page"]["example"]["steps"], 15);
    assert!(json["grammar"].as_str().is_some_and(|grammar| grammar.starts_with("action ::=")));
    done(&["bench", "show", "buble-sort"]).refused(&["buble-sort", "did you mean `bubble-sort`"]);
}

#[test]
fn prompts_come_in_every_style() {
    let prompt = |style: &str, more: &[&str]| {
        let printed = done(&[&["bench", "prompt", "bubble-sort", "--style", style], more].concat());
        assert_eq!(printed.code, 0, "{style}: {}", printed.stderr);
        printed.stdout
    };
    assert!(prompt("baseline", &[]).starts_with("Solve the following problem:\n"));
    let structured = prompt("structured", &[]);
    assert!(
        structured.contains("CONSTRAINTS:")
            && structured.contains("EXAMPLES:")
            && structured.contains("<actions>")
    );

    let bare = prompt("structured", &["--without", "constraints,examples,format,verification"]);
    assert!(
        !bare.contains("CONSTRAINTS:")
            && !bare.contains("EXAMPLES:")
            && !bare.contains("<actions>")
    );

    assert!(prompt("sorting", &[]).contains("INPUT: array=["));
    assert!(prompt("compact", &["--step", "3"]).starts_with("bubble-sort "));
    let verifier = prompt("verifier", &["--step", "1", "--action", "pass"]);
    assert!(verifier.contains("Action: pass\n") && verifier.contains("Violation Score"));

    let refused = |arguments: &[&str], parts: &[&str]| {
        done(&[&["bench", "prompt"], arguments].concat()).refused(parts);
    };
    refused(&["n-queens", "--style", "sorting"], &["n-queens is not a sort"]);
    refused(&["n-queens", "--without", "colour"], &["colour", "constraints"]);
    refused(&["n-queens", "--style", "baseline", "--without", "format"], &["--without"]);
    refused(
        &["n-queens", "--style", "compact", "--step", "100000"],
        &["--step 100000", "ends after"],
    );
    refused(
        &["n-queens", "--style", "verifier", "--action", "jump"],
        &["jump", "not an action line"],
    );
}
