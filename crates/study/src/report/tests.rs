use super::*;
use crate::records::{Records, Status};
use crate::testing::{checked_by, record, wrong};

/// Three tasks in three categories, two systems, ten instances each; the second system is better.
fn records() -> Vec<Record> {
    let mut records = Vec::new();
    for task in ["bubble-sort", "n-queens", "dfa-simulation"] {
        for index in 0..10 {
            let base = record("single pass", task, index);
            records.push(if index % 2 == 0 { wrong(base, "index") } else { base });
            let prime = record("PRIME", task, index);
            records.push(if index == 0 && task == "n-queens" {
                wrong(prime, "ordering")
            } else {
                prime
            });
        }
    }
    records
}

fn report(records: &[Record]) -> Report {
    Report::new(records, 0, &Choice::default()).unwrap()
}

#[test]
fn the_page_is_self_contained_and_has_every_table_and_figure() {
    let report = report(&records());
    let page = page(&report);

    for foreign in ["<link", "<img", "@import", "url(", "src=", "https:"] {
        assert!(!page.contains(foreign), "{foreign}");
    }
    assert_eq!(page.matches("http").count(), report.figures.len(), "the namespace of each drawing");

    for table in &report.tables {
        assert!(page.contains(&format!("<section id=\"{}\" ", table.id)), "{}", table.id);
        assert!(table.rows.iter().all(|row| row.len() == table.columns.len()), "{}", table.id);
    }

    for figure in &report.figures {
        assert!(page.contains(&format!("<figure id=\"figure-{}\">", figure.id)));
        assert!(
            report.tables.iter().any(|table| table.id == figure.table),
            "{} has no rows",
            figure.id
        );
        for (_, svg) in figure.files() {
            assert!(!svg.contains("NaN") && svg.contains("<title>") && svg.contains("viewBox"));
        }
    }

    let ids: Vec<&str> = report.figures.iter().map(|figure| figure.paper).collect();
    assert_eq!(
        ids,
        [
            "Figures 12 and 22",
            "Figures 13 and 23",
            "Figures 15 to 18 and 25 to 28",
            "Figures 14 and 24",
            "Figures 20 and 30",
            "Figures 21 and 31",
            "Figure 6",
            "Figures 7 and 9"
        ]
    );

    assert!(!page.contains("NaN") && !page.contains(">inf"), "no undefined number");
}

#[test]
fn the_same_records_give_the_same_bytes() {
    let records = records();
    assert_eq!(page(&report(&records)), page(&report(&records)));
}

#[test]
fn hostile_names_are_escaped() {
    let hostile = "<script>alert(\"&\")</script>";
    let mut records = records();
    for record in &mut records {
        record.study = hostile.to_owned();
        record.machine = hostile.to_owned();
        if record.system == "PRIME" {
            record.system = hostile.to_owned();
        }
    }
    let report = report(&records);
    let page = page(&report);
    assert_eq!(page.matches("<script").count(), 1, "the page's own");
    for table in &report.tables {
        assert!(!table.latex().contains("(\"&\")"), "{}", table.latex());
    }
}

#[test]
fn a_single_system_and_a_single_run_have_a_report() {
    let one = [record("PRIME", "n-queens", 0)];
    let single = report(&one);
    assert!(single.tables.iter().all(|table| table.id != "comparison"), "nothing to compare");
    assert!(page(&single).contains("<section id=\"summary\" "));

    let mut unmeasured = one;
    unmeasured[0].status = Status::NotMeasured;

    let page = page(&report(&unmeasured));
    assert!(page.contains("1 runs were not measured") && !page.contains("NaN"), "{page}");
}

#[test]
fn a_report_takes_the_place_of_the_one_before() {
    let folder = tempfile::tempdir().unwrap();
    let mut all = Records::default();
    all.records = records();
    let names = |below: &str| {
        let entries = std::fs::read_dir(folder.path().join(below)).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    let write = |choice: &Choice| write_report(&all, choice, folder.path()).unwrap();

    assert!(write(&Choice::default()).tables > 1);
    std::fs::write(folder.path().join("tables/notes.txt"), "mine").unwrap();
    let choice = Choice { show: vec!["T2".to_owned()], ..Choice::default() };
    let written = write(&choice);
    let tables = names("tables");
    // Each table has three files.
    assert_eq!(tables.len(), 3 * written.tables + 1, "{tables:?}");
    assert!(tables.contains(&"notes.txt".to_owned()) && tables.contains(&"summary.md".to_owned()));
    assert_eq!(names("figures").len(), written.figures);
}

#[test]
fn a_list_of_the_papers_numbers_chooses() {
    let choice = Choice { show: vec!["T2".to_owned(), "F13".to_owned()], ..Choice::default() };
    let report = Report::new(&records(), 0, &choice).unwrap();

    let tables: Vec<&str> = report.tables.iter().map(|table| table.id.as_str()).collect();
    assert_eq!(
        tables,
        ["summary", "comparison", "verdicts", "categories"],
        "with the rows of the figure"
    );

    let figures: Vec<&str> = report.figures.iter().map(|figure| figure.id.as_str()).collect();
    assert_eq!(figures, ["radar"]);
}

#[test]
fn files_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let records = Records::from(records());
    let written = write_report(&records, &Choice::default(), folder.path()).unwrap();
    assert!(written.page.is_file() && folder.path().join("records.parquet").is_file());

    for (sub, count) in [("figures", written.figures), ("tables", 3 * written.tables)] {
        assert_eq!(std::fs::read_dir(folder.path().join(sub)).unwrap().count(), count, "{sub}");
    }

    let none = write_report(&Records::default(), &Choice::default(), folder.path());
    assert!(matches!(none, Err(ReportError::NoRecords)));
}

#[test]
fn results_of_different_worth_are_never_in_one_table() {
    let kinds = |system: &str, index: u32, kinds: &str| {
        checked_by(kinds, record(system, "n-queens", index))
    };
    let mut records = Vec::new();
    for index in 0..3 {
        records.push(kinds("alone", index, ""));
        records.push(kinds("PRIME", index, "format,invariant,terminal"));
    }
    records.push(kinds("form", 0, "format"));
    records.push(kinds("told", 0, "format,invariant,transition,terminal"));
    let report = report(&records);

    let rows = |id: &str| -> Vec<String> {
        let table = report.tables.iter().find(|table| table.id == id).expect(id);
        let first = |row: &Vec<crate::tables::Cell>| match &row[0] {
            crate::tables::Cell::Text(text) => text.clone(),
            other => panic!("{other:?}"),
        };
        table.rows.iter().map(first).collect()
    };
    assert_eq!(rows("summary"), ["alone", "PRIME"]);
    assert_eq!(rows("summary-not-sound"), ["alone", "form (kinds not sound)"]);
    assert_eq!(rows("summary-transition"), ["alone", "told (verifier saw transition)"]);

    let title = |id: &str| &report.tables.iter().find(|table| table.id == id).expect(id).title;
    assert_eq!(title("summary"), "Performance of each system (kinds that are sound for the task)");
    assert_eq!(
        title("summary-not-sound"),
        "Performance of each system (kinds that are not sound for the task)"
    );
    assert_eq!(title("summary-transition"), "Performance of each system (every transition)");
    for figure in &report.figures {
        assert!(report.tables.iter().any(|table| table.id == figure.table), "{}", figure.table);
    }
    let kinds = "Verifiers looked at these kinds of constraints: format; format, invariant, \
                 terminal; format, invariant, transition, terminal; none.";
    assert!(report.method.iter().any(|paragraph| paragraph.starts_with(kinds)));
}

#[test]
fn systems_stand_in_the_order_of_the_study_file() {
    let labels = |records: &[Record], order: &[&str]| {
        let order = order.iter().map(|name| (*name).to_owned()).collect();
        let records = in_order(records, &Choice { order, ..Choice::default() }.order);
        let results = Results::new(&records, &[]).unwrap();
        results.systems.iter().map(|system| system.label.clone()).collect::<Vec<_>>()
    };

    // The system to which others are made equal is asked first, wherever it stands in the file.
    let mut records = records();
    assert_eq!(labels(&records, &[]), ["single pass", "PRIME"]);
    assert_eq!(labels(&records, &["PRIME", "votes", "single pass"]), ["PRIME", "single pass"]);
    for record in &mut records {
        record.system_place = Some(u32::from(record.system == "single pass"));
    }
    assert_eq!(labels(&records, &[]), ["PRIME", "single pass"]);
}

#[test]
fn a_budget_of_nothing_is_remarked() {
    let mut records = records();
    let remark = |records: &[Record]| {
        let remarks = report(records).remarks;
        remarks.into_iter().find(|remark| remark.contains("budget"))
    };
    records[0].matched_budget = Some(7.0);
    assert_eq!(remark(&records), None);

    records[0].matched_budget = Some(0.0);
    let remark = remark(&records).expect("a remark");
    assert!(
        remark.starts_with("single pass: 1 of 30 runs had a budget of 0 and drew one sample"),
        "{remark}"
    );
    assert!(remark.contains("`budget.match_to`"), "{remark}");
}

#[test]
fn the_page_begins_with_the_result() {
    // Clustered by task: PRIME's task means 1, .9 and 1 have residual sums 1/3, -2/3 and 1/3, so
    // the error is sqrt(3/2 * 2/3)/30 = .0333, times Student's 4.3027 of two degrees of freedom
    // .1434. The differences .5, .4 and .5 have the same error; their t is 14.0, of which p is
    // 1 - 14/sqrt(14^2 + 2) = .0051.
    let report = report(&records());
    let sentences = report.result.join(" ").replace('\u{a0}', " ");
    assert_eq!(
        sentences,
        "PRIME solves 96.7 % (82.3 to 100.0) of 30 instances of 3 tasks, single pass 50.0 % (50.0 \
         to 50.0). The difference on 30 pairs is 46.7 percentage points (32.3 to 61.0; p = 0.005). \
         Intervals are at 95 %."
    );
    let page = page(&report);
    let body = page.split_once("</h1>").expect("a heading").1.trim_start();
    assert!(body.starts_with("<p class=\"result\">PRIME solves 96.7"), "{body:.200}");
}

#[test]
fn the_result_of_several_systems_names_the_best_and_the_worst() {
    let mut records = records();
    for index in 0..10 {
        records.push(wrong(record("votes, two", "bubble-sort", index), "index"));
        records.push(record("small", "n-queens", index));
    }
    let result = report(&records).result.join(" ").replace('\u{a0}', " ");
    // The systems that were asked a third of the instances are not ranked.
    assert!(
        result.starts_with(
            "Of the 2 systems that were asked 30 or more instances, PRIME solves the most, 96.7 % \
             (82.3 to 100.0) of 30 instances of 3 tasks, and single pass the fewest, 50.0 %"
        ),
        "{result}"
    );
    // On one task each, five discordant pairs are too few for a test.
    let significant = "1 of 1 tested difference is significant at 5 % after Holm's adjustment, \
                       that from single pass to PRIME: 46.7 percentage points (32.3 to 61.0; p = \
                       0.005).";
    assert!(result.contains(significant), "{result}");

    // Wilson's interval of 1 of 1 begins at 1/(1 + 1.96^2).
    let mut one = [record("PRIME", "n-queens", 0)];
    let result = report(&one).result.join(" ").replace('\u{a0}', " ");
    assert!(
        result.starts_with("PRIME solves 100.0 % (20.7 to 100.0) of 1 instance of 1 task."),
        "{result}"
    );
    one[0].status = Status::NotMeasured;
    assert_eq!(report(&one).result, ["No run was measured."]);
}

#[test]
fn figures_that_would_show_nothing_are_sentences() {
    let mut records = Vec::new();
    for task in ["bubble-sort", "n-queens", "dfa-simulation"] {
        for index in 0..4 {
            records.push(record("single pass", task, index));
            records.push(record("PRIME", task, index));
        }
    }
    let report = report(&records);
    assert!(report.figures.is_empty(), "{:?}", report.figures);
    for sentence in [
        "Accuracy by category: every value is 100 %.",
        "Accuracy of each task: every value is 100 %.",
        "Gains and losses of tasks: single pass → PRIME: the systems are equal on each of 3 tasks.",
        "Accuracy of each task: single pass → PRIME: single pass solves 100 % of each of 3 tasks \
         and PRIME 100 %.",
        "Accuracy of each system: every value is 100 %.",
        "Accuracy against latency: all systems have the same accuracy and the same time.",
    ] {
        assert!(report.left_out.iter().any(|reason| reason == sentence), "{:?}", report.left_out);
        assert!(page(&report).contains(&format!("<li>{sentence}</li>")));
    }
}

#[test]
fn only_tasks_that_differ_are_gains_and_losses() {
    let mut records = Vec::new();
    for (place, task) in ["bubble-sort", "n-queens", "dfa-simulation"].into_iter().enumerate() {
        for index in 0..4 {
            let base = record("single pass", task, index);
            records.push(if place < 2 && index == 0 { wrong(base, "index") } else { base });
            records.push(record("PRIME", task, index));
        }
    }
    let report = report(&records);
    let gains = report.figures.iter().find(|it| it.id.starts_with("top-gains")).expect("drawn");
    let svg = &gains.panels[0].svg;
    assert!(svg.contains("n-queens") && !svg.contains("dfa-simulation"), "{svg}");
    assert!(gains.caption.starts_with("The 2 tasks in which the systems differ, of 3 tasks"));
}

#[test]
fn a_system_has_the_same_colour_in_every_report() {
    let colour = |report: &Report| {
        let systems = report.figures.iter().find(|it| it.id == "systems").expect("drawn");
        let svg = &systems.panels[0].svg;
        let mark = svg.split_once("<title>PRIME ").expect("PRIME's bar").1;
        let fill = mark.split_once("fill=\"").expect("its filling").1;
        fill[..7].to_owned()
    };
    let two = colour(&report(&records()));
    let mut records = records();
    for name in ["another", "a third", "four votes"] {
        let more = (0..10).map(|index| record(name, "n-queens", index));
        records.splice(0..0, more);
    }
    assert_eq!(two, colour(&report(&records)));
    assert_eq!(two, prime_page::palette::hex(prime_page::palette::series(1)));
}

#[test]
fn many_tasks_have_a_drawing_for_each_category() {
    let all = || prime_bench::tasks::all().map(|task| task.spec().slug);
    let unchecked = |system: &str, task: &str| checked_by("", record(system, task, 0));
    let mut records: Vec<Record> = all().map(|task| unchecked("PRIME", task)).collect();
    records.extend(all().map(|task| wrong(unchecked("single pass", task), "index")));
    let report = report(&records);
    let tasks = report.figures.iter().find(|figure| figure.id == "tasks").expect("drawn");
    assert_eq!(tasks.panels.len(), prime_bench::tasks::Category::ALL.len());
    let files: Vec<String> = tasks.files().map(|(name, _)| name).collect();
    assert!(files.contains(&"tasks-comparison-sorting".to_owned()), "{files:?}");

    // A task is a row of one drawing.
    let named = tasks.panels.iter().filter(|panel| panel.svg.contains(">bubble-sort</text>"));
    assert_eq!(named.count(), 1);
}

#[test]
fn the_page_has_landmarks_headings_in_order_and_headers_of_rows() {
    let page = page(&report(&records()));
    assert_eq!((page.matches("<main>").count(), page.matches("<h1").count()), (1, 1));
    let levels: Vec<u32> = page
        .match_indices("<h")
        .filter_map(|(at, _)| page[at + 2..].chars().next()?.to_digit(10))
        .collect();
    assert!(levels.windows(2).all(|pair| pair[1] <= pair[0] + 1), "{levels:?}");
    for (at, _) in page.match_indices("<th") {
        let tag = &page[at..at + page[at..].find('>').unwrap()];
        assert!(tag == "<thead" || tag.contains("scope="), "{tag}");
    }
}
