//! The contract of a lesson, tested over reference traces at all levels and over states that wrong
//! lines lead to.
//!
//! `PRIME_LESSON=slug` tests one lesson, `PRIME_LESSON_SAMPLES=n` multiplies the instances by n.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::thread;

use prime_bench::fnv1a;
use prime_bench::tasks::{self, Difficulty, Kinds, Machine, PathDraw, TaskRng};

use crate::{
    AnyLesson, QUERY_END, Segment, action_line, compact, completion, derivation, lessons, query,
    read, segments, view,
};

/// Instances at the easy, medium and hard level: traces of the hard level are longer.
const INSTANCES: [u32; 3] = [16, 8, 5];
/// Steps of a trace that are followed. Few tasks have longer ones, and those repeat themselves.
const WALK_MAX: u64 = 10_000;
/// Steps at the beginning of a trace that are tested; of the later ones fewer and fewer.
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

/// What the shipped models were trained on: prompts and completions of these lessons must not
/// change.
const SHIPPED: [(&str, u64); 86] = [
    ("bubble-sort", 86_278_280_731_138_789),
    ("tower-of-hanoi", 4_557_077_103_975_266_462),
    ("n-queens", 735_614_129_618_828_687),
    ("dfa-simulation", 9_413_800_405_020_029_523),
    ("long-division", 11_423_926_836_538_397_177),
    ("pda-execution", 8_843_157_854_234_215_352),
    ("turing-machine", 12_288_501_837_506_517_043),
    ("register-machine", 14_621_128_332_637_216_827),
    ("cellular-automaton", 10_846_159_565_925_157_092),
    ("kmp-pattern", 5_861_339_265_013_247_833),
    ("cfg-derivation", 10_253_832_517_234_156_745),
    ("selection-sort", 11_993_098_406_409_199_249),
    ("insertion-sort", 6_911_844_078_179_332_997),
    ("shell-sort", 17_112_763_051_103_824_052),
    ("merge-sort", 9_465_609_740_775_772_122),
    ("quick-sort", 7_957_425_442_494_211_280),
    ("heap-sort", 8_836_919_597_131_390_532),
    ("tree-sort", 4_002_084_254_737_447_356),
    ("cocktail-sort", 9_494_263_026_549_701_525),
    ("comb-sort", 9_319_878_809_971_310_224),
    ("gnome-sort", 15_258_837_379_435_399_204),
    ("odd-even-sort", 11_360_150_514_008_702_164),
    ("pancake-sort", 2_766_747_364_156_528_589),
    ("stooge-sort", 12_531_018_425_025_196_051),
    ("stack-simulator", 17_603_054_212_837_211_873),
    ("queue-simulator", 10_540_164_802_915_719_511),
    ("doubly-linked-list", 14_863_564_069_292_181_217),
    ("union-find", 15_564_375_906_596_963_093),
    ("bst-insertion", 5_783_101_750_969_033_797),
    ("bst-inorder", 9_655_598_851_066_384_016),
    ("heap-operations", 11_227_652_968_115_020_522),
    ("dfs-on-tree", 10_517_659_870_622_690_910),
    ("bfs-on-graph", 441_098_176_947_998_530),
    ("topological-sort", 11_097_934_011_936_032_711),
    ("packet-routing", 1_971_563_475_695_881_238),
    ("assembly-line", 16_375_152_314_981_757_755),
    ("cycle-sort", 7_626_491_036_589_589_667),
    ("counting-sort", 4_693_002_848_380_319_377),
    ("radix-sort", 5_744_749_074_823_120_752),
    ("strand-sort", 12_489_699_376_631_551_013),
    ("tournament-sort", 9_616_449_596_788_993_227),
    ("blind-maze", 11_847_109_638_398_337_775),
    ("symbolic-diff", 10_952_744_123_401_775_823),
    ("red-black-insert", 14_279_256_320_873_870_141),
    ("ascii-art-parse", 12_302_612_805_676_225_474),
    ("bitonic-sort", 2_947_998_512_894_694_636),
    ("batcher-merge", 13_230_442_898_634_158_174),
    ("dijkstra", 13_964_169_030_092_068_567),
    ("unification", 4_385_928_260_714_601_065),
    ("railway-scheduling", 13_864_421_241_094_231_692),
    ("type-inference", 3_693_235_713_205_900_793),
    ("sat-dpll", 10_814_695_630_893_163_547),
    ("markov-chain", 9_072_165_234_526_673_075),
    ("matrix-multiply", 301_796_549_136_105_877),
    ("polynomial-gcd", 708_741_356_699_452_738),
    ("gcd-euclidean", 17_782_853_589_226_537_707),
    ("nfa-simulation", 1_768_670_860_235_562_505),
    ("petri-net", 12_308_452_146_233_328_328),
    ("hash-table", 7_597_359_558_759_016_222),
    ("smoothsort", 16_697_095_316_435_504_561),
    ("logic-grid", 1_255_281_143_716_247_914),
    ("floyd-warshall", 17_189_753_543_705_415_857),
    ("resolution-proof", 16_760_838_299_100_866_964),
    ("24-game", 4_131_224_941_766_824_736),
    ("bucket-sort", 17_832_368_985_978_619_289),
    ("patience-sort", 13_865_822_699_286_143_226),
    ("introsort", 6_488_446_551_781_184_656),
    ("library-sort", 10_957_080_987_982_450_639),
    ("lru-cache", 5_194_194_041_226_465_268),
    ("translation-chain", 3_532_108_780_312_861_111),
    ("elevator-scheduling", 16_352_589_580_836_465_730),
    ("blockchain-ledger", 4_610_289_786_756_031_014),
    ("file-system", 7_420_209_332_315_941_064),
    ("meeting-scheduler", 9_187_210_586_284_847_744),
    ("dependency-sat", 10_638_683_069_336_337_342),
    ("huffman-tree", 2_329_943_116_704_722_393),
    ("block-sort", 3_154_177_474_573_266_330),
    ("timsort", 13_511_371_687_702_257_909),
    ("a-star", 4_632_699_656_767_140_396),
    ("regex-nfa", 15_142_070_943_466_016_979),
    ("lambda-reduction", 882_263_765_857_401_956),
    ("sudoku", 11_267_584_854_367_544_668),
    ("chemical-reaction", 17_726_075_706_669_367_192),
    ("gaussian-elimination", 13_325_940_057_646_606_208),
    ("simplex-method", 10_265_062_690_565_775_926),
    ("continued-fraction", 15_600_525_816_194_980_673),
];

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

#[test]
fn the_shipped_models_lessons_are_unchanged() {
    let changed = SHIPPED.map(|(slug, shipped)| {
        let task = tasks::find(slug).expect("a task");
        let mut text = String::new();
        for (difficulty, seed) in
            Difficulty::ALL.into_iter().flat_map(|level| (0..4).map(move |seed| (level, seed)))
        {
            let mut machine = task.generate(difficulty, seed).start();
            for _ in 0..300 {
                text += &compact(machine.as_ref());
                text += completion(machine.as_ref()).as_deref().unwrap_or("end");
                machine.follow_reference();
            }
        }
        let digest = fnv1a(text.bytes());
        (digest != shipped).then(|| format!("{slug}: {digest}"))
    });
    let changed: Vec<_> = changed.into_iter().flatten().collect();
    assert!(
        changed.is_empty(),
        "train the models anew, then record in SHIPPED:\n{}",
        changed.join("\n")
    );
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
    /// What the lesson permits, and what it needed.
    reads_max: usize,
    reads_most: usize,
    /// What is to be written by what stands before it, which is the prompt and, with reads, what
    /// was written and appended already; with the place that it was first seen at.
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

    /// Tests a reference trace: its beginning, ever fewer of its later steps, and of each form of
    /// action enough.
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
        // Whether every wrong line was one that no invariant finds.
        let mut unnoticed = true;
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
