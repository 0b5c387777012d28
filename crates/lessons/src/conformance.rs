//! The contract of a lesson, tested over reference traces at all levels and over states that wrong
//! lines lead to.
//!
//! `PRIME_LESSON=slug` tests one lesson, `PRIME_LESSON_SAMPLES=n` multiplies the instances by n.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::thread;

use prime_bench::tasks::{self, Difficulty, Kinds, Machine, PathDraw, TaskRng};

use crate::{
    AnyLesson, QUERY_END, Segment, action_line, compact, completion, derivation, lessons, query,
    read, segments, view,
};

/// Instances at the easy, medium and hard level: traces of the hard level are longer.
const INSTANCES: [u32; 3] = [16, 8, 5];
/// Steps of a trace that are followed. Few tasks have longer ones, and those repeat themselves.
const WALK_MAX: u64 = 10_000;
/// Steps at the beginning of a trace that are all tested; later ones are tested ever more rarely.
const DENSE: u64 = 40;
/// Tested steps of each form of action at each level, wherever they occur.
const OF_FORM: u32 = 60;
/// Walks that take wrong lines, at each level, and their steps.
const WALKS: u32 = 6;
const WALK_STEPS: u32 = 100;
/// Addresses that a model may make up.
const MADE_UP: [&str; 12] = [
    "",
    "0",
    "-1",
    "000",
    "999",
    "9999",
    "x",
    "h999",
    "r999",
    "é",
    " 000",
    "99999999999999999999999",
];
/// A base seed that neither training nor the benchmark uses.
const BASE_SEED: u64 = 5_000_000;

#[expect(clippy::disallowed_methods, reason = "a test is told in the environment how much to do")]
fn told(variable: &str) -> Option<String> {
    std::env::var(variable).ok()
}

#[test]
fn lessons_keep_their_contract() {
    let only = told("PRIME_LESSON");
    let times = told("PRIME_LESSON_SAMPLES").and_then(|samples| samples.parse().ok()).unwrap_or(1);
    let chosen =
        || lessons().filter(|lesson| only.as_deref().is_none_or(|only| only == lesson.slug));

    let reports: Vec<Report> = thread::scope(|scope| {
        // A panic names its thread.
        let named = |lesson: &AnyLesson| thread::Builder::new().name(lesson.slug.to_owned());
        let spawn = |lesson| {
            named(lesson).spawn_scoped(scope, move || Report::of(lesson, times)).expect("a thread")
        };
        let running: Vec<_> = chosen().map(spawn).collect();
        running
            .into_iter()
            .map(|report| report.join().expect("see the panic of the lesson's thread"))
            .collect()
    });

    let mut lengths =
        "mean and greatest bytes of prompt and completion at the easy, medium and hard level"
            .to_owned();
    for report in &reports {
        write!(lengths, "\n{:24}", report.slug).expect("a string");
        for level in &report.levels {
            write!(
                lengths,
                " {:4.0} {:4}",
                level.bytes as f64 / f64::from(level.tested),
                level.bytes_max
            )
            .expect("a string");
            if level.untaught > 0 {
                write!(lengths, " ({:.2} % too long)", level.untaught_percent()).expect("a string");
            }
        }
        write!(lengths, " {:6} prompts", report.completions.len()).expect("a string");
        if report.reads_max > 0 {
            write!(lengths, " {:3} reads", report.reads_most).expect("a string");
        }
    }

    println!("{lengths}");

    let faults: Vec<_> = reports.iter().flat_map(|report| &report.faults).cloned().collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[derive(Default)]
struct Level {
    tested: u32,
    /// Steps whose derivation is too long.
    untaught: u32,
    bytes: usize,
    bytes_max: usize,
}

impl Level {
    fn untaught_percent(&self) -> f64 {
        100.0 * f64::from(self.untaught) / f64::from((self.untaught + self.tested).max(1))
    }
}

struct Report {
    slug: &'static str,
    levels: [Level; 3],
    bytes_max: usize,
    /// The number of reads that the lesson permits, and the number that it needed.
    reads_max: usize,
    reads_most: usize,
    /// The text to be written, keyed by the text before it: the prompt and, with reads, all that
    /// was written and appended. The second text is the place where it was first seen.
    completions: HashMap<String, (String, String)>,
    faults: Vec<String>,
}

impl Report {
    fn of(lesson: &AnyLesson, times: u32) -> Self {
        let mut report = Self {
            slug: lesson.slug,
            levels: Default::default(),
            bytes_max: lesson.bytes_max,
            reads_max: lesson.reads_max,
            reads_most: 0,
            completions: HashMap::new(),
            faults: Vec::new(),
        };
        let task = tasks::find(lesson.slug).expect("a lesson of a task");

        for (level, difficulty) in Difficulty::ALL.into_iter().enumerate() {
            let mut forms = HashMap::new();
            for index in 0..INSTANCES[level] * times {
                let seed = task.spec().seed(BASE_SEED, difficulty, index);
                let problem = task.generate(difficulty, seed);
                let place = format!("{}/{difficulty} seed {seed}", lesson.slug);
                let mut rng = TaskRng::new(seed);
                report.follow(level, problem.start(), &place, &mut forms, &mut rng);
                for _ in 0..20 {
                    let Some(machine) = problem.on_path(PathDraw::Uniform, &mut rng) else { break };
                    report.test(level, machine.as_ref(), &place);
                }

                if index < WALKS * times {
                    report.stray(problem.start(), &place, &mut rng);
                }
            }
        }

        for (level, permitted) in report.levels.iter().zip(lesson.untaught) {
            if level.untaught_percent() > f64::from(permitted) {
                let (slug, percent) = (lesson.slug, level.untaught_percent());
                report.faults.push(format!(
                    "{slug}: {percent:.2} % of the steps too long, not {permitted} %"
                ));
            }
        }

        if (report.reads_max > 0) != (report.reads_most > 0) {
            report.fault(format!(
                "{}: {} reads at most, but {}",
                lesson.slug, report.reads_max, report.reads_most
            ));
        }

        report
    }

    fn fault(&mut self, fault: String) {
        if self.faults.len() < 4 {
            self.faults.push(fault);
        }
    }

    /// Tests a reference trace: its beginning, ever fewer of its later steps, and enough steps of
    /// each form of action.
    fn follow(
        &mut self,
        level: usize,
        mut machine: Box<dyn Machine>,
        place: &str,
        forms: &mut HashMap<String, u32>,
        rng: &mut TaskRng,
    ) {
        let mut step = 0;

        while step < WALK_MAX {
            let Some(line) = machine.reference() else { break };
            let seen = forms.entry(form(&line)).or_default();
            if step < DENSE || rng.below(step) < DENSE || *seen < OF_FORM {
                *seen += 1;
                self.test(level, machine.as_ref(), &format!("{place} step {step}"));
            }

            machine.follow_reference();
            step += 1;
        }

        if machine.reference().is_none() && derivation(machine.as_ref()).is_some() {
            self.fault(format!("{place}: the end has a derivation"));
        }
        // The view of a trace's last state must not panic.
        view(machine.as_ref());
    }

    /// Tests a state of a reference trace.
    fn test(&mut self, level: usize, machine: &dyn Machine, place: &str) {
        let prompt = compact(machine);
        let Some(completion) = completion(machine) else {
            self.levels[level].untaught += u32::from(machine.reference().is_some());
            return;
        };

        let bytes = prompt.len() + completion.len();
        let of_level = &mut self.levels[level];
        of_level.tested += 1;
        of_level.bytes += bytes;
        of_level.bytes_max = of_level.bytes_max.max(bytes);
        let tested = of_level.tested;

        if bytes > self.bytes_max {
            self.fault(format!("{place}: {bytes} bytes: {prompt}{completion}"));
        }
        if !prompt.is_ascii() || !completion.is_ascii() {
            self.fault(format!("{place}: is not ASCII: {prompt}{completion}"));
        }
        if machine.reference().as_deref() != Some(action_line(&completion))
            || completion.starts_with('\n')
        {
            self.fault(format!("{place}: does not end in the reference action: {completion:?}"));
        }

        if tested % 16 == 1 {
            let read_back = machine
                .problem()
                .machine_at(&machine.state())
                .expect("a state of a trace is valid");
            if prompt != compact(read_back.as_ref()) {
                self.fault(format!("{place}: the view depends on more than the state: {prompt}"));
            }
        }

        self.check_reads(machine, &completion, place);
        self.record(machine, &prompt, &completion, place);
    }

    /// Checks the form of the prompt, and that it was never seen with another completion.
    fn record(&mut self, machine: &dyn Machine, prompt: &str, completion: &str, place: &str) {
        let line = view(machine);
        if line.contains(['\n', '\r'])
            || line.ends_with(' ')
            || prompt != format!("{} {line}\n", self.slug)
        {
            self.fault(format!(
                "{place}: a view is one line without a space at its end: {prompt:?}"
            ));
        }

        // The grammar of a served executor permits one line before the action.
        match derivation(machine) {
            Some(line) if line.contains(['\n', '\r']) => {
                self.fault(format!("{place}: a derivation is one line: {line:?}"));
            }
            Some(_) => {}
            None => self.fault(format!("{place}: no derivation of {completion}")),
        }

        let mut before = prompt.to_owned();
        for segment in segments(self.slug, completion) {
            let (Segment::Written(text) | Segment::Appended(text)) = segment;
            if let Segment::Written(written) = segment {
                let (known, first) = self
                    .completions
                    .entry(before.clone())
                    .or_insert_with(|| (written.to_owned(), place.to_owned()));
                if *known != written {
                    let fault = format!("{place}: {before}{written}\nbut at {first}:\n{known}");
                    self.fault(fault);
                }
            }
            before += text;
        }
    }

    /// Checks that each query of the completion has the value that stands there, and that no
    /// address is too odd to be answered or refused.
    fn check_reads(&mut self, machine: &dyn Machine, completion: &str, place: &str) {
        for address in MADE_UP {
            // Any answer or refusal will do, but no panic.
            drop(read(machine, address));
        }

        let mut before = String::new();
        let mut reads = 0;
        for segment in segments(self.slug, completion) {
            let (Segment::Written(text) | Segment::Appended(text)) = segment;
            if let Segment::Appended(value) = segment {
                reads += 1;
                let found = query(&before).map(|address| read(machine, address));
                let word = value
                    .strip_prefix('=')
                    .and_then(|value| value.strip_suffix(' '))
                    .unwrap_or_default();
                if found != Some(Ok(value.to_owned()))
                    || word.is_empty()
                    || word.contains([' ', '\n', QUERY_END])
                {
                    self.fault(format!(
                        "{place}: {value:?} stands where {found:?} is read: {completion}"
                    ));
                }
            }
            before += text;
        }

        self.reads_most = self.reads_most.max(reads);
        if reads > self.reads_max || (reads > 0 && action_line(completion).contains(QUERY_END)) {
            self.fault(format!("{place}: {reads} reads in {completion}"));
        }
    }

    /// Takes wrong lines now and then.
    fn stray(&mut self, mut machine: Box<dyn Machine>, place: &str, rng: &mut TaskRng) {
        let mut lines: Vec<String> = Vec::new();
        // True while no invariant has found one of the wrong lines.
        let mut unnoticed = true;
        // Wrong lines from the beginning of a trace, or only far into it.
        let skip = rng.one_of(&[0, 0, 30, 300]);

        for step in 0..skip + WALK_STEPS {
            let right = machine.reference();
            lines.extend(right.clone());
            let line = match &right {
                Some(right) if step < skip || rng.chance(1, 2) => right.clone(),
                _ if lines.is_empty() => break,
                _ => {
                    let line = lines[rng.index(lines.len())].clone();
                    changed(&line, rng)
                }
            };

            if machine.propose(&line).is_ok() {
                unnoticed &= machine.violations(Kinds::WITHOUT_TRANSITION).is_empty();
                machine.commit();

                let prompt = compact(machine.as_ref());
                // Must not panic in a state that wrong lines made.
                drop(derivation(machine.as_ref()));
                if prompt.trim_end_matches('\n').contains(['\n', '\r']) {
                    self.fault(format!(
                        "{place} step {step} after {line:?}: a view is one line: {prompt:?}"
                    ));
                }

                let place = format!("{place} step {step} after {line:?}");
                if let Some(completion) = completion(machine.as_ref()) {
                    self.check_reads(machine.as_ref(), &completion, &place);
                    if unnoticed {
                        self.record(machine.as_ref(), &prompt, &completion, &place);
                    }
                }
            }
        }
    }
}

/// A line with its numbers masked.
fn form(line: &str) -> String {
    let mut form = String::new();
    for c in line.chars() {
        let c = if c.is_ascii_digit() { '0' } else { c };
        if c != '0' || !form.ends_with('0') {
            form.push(c);
        }
    }
    form
}

/// The line, mostly with a number or a word changed.
fn changed(line: &str, rng: &mut TaskRng) -> String {
    let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
    let place = rng.index(words.len());

    if let Ok(number) = words[place].parse::<i64>() {
        let other =
            [number + 1, number - 1, number, rng.between(0, 3), rng.between(0, 40), 1 << 53];
        words[place] = rng.one_of(&other).to_string();
    }

    words.join(" ")
}
