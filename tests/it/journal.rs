//! The journal when its process is killed or its disk is full, with real processes, signals and
//! file systems.
#![allow(clippy::disallowed_methods, reason = "a child learns from its environment what to do")]

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use prime_journal::{
    ChainVerifier, Head, Journal, JournalError, Retention, ReviewCounts, RunRow, Segment,
    SqliteJournal, SqliteOptions, Write,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

const ROLE: &str = "PRIME_TEST_JOURNAL_ROLE";
const FOLDER: &str = "PRIME_TEST_JOURNAL_FOLDER";
/// Prefix of a child's output, because the test harness prints too.
const SAYS: &str = "child: ";
const RUNS: usize = 8;

fn row(id: &str) -> RunRow {
    let spec = format!("{{\"id\":\"{id}\"}}");
    let text = str::to_owned;
    RunRow {
        id: text(id),
        owner: String::new(),
        created_ms: 1,
        updated_ms: 1,
        task: text("edit_distance"),
        status: text("running"),
        is_over: false,
        resumed: 0,
        summary: text("{}"),
        split: None,
        reviews: ReviewCounts::default(),
        head: Head::genesis(&spec),
        spec,
    }
}

fn id(run: usize) -> String {
    format!("r{run}")
}

fn open(folder: &Path) -> Result<SqliteJournal, JournalError> {
    SqliteJournal::open(&folder.join("runs.db"), SqliteOptions::default())
}

/// A segment of three following events of noise.
fn next(head: Head, bytes: u64) -> Segment {
    let number = |at: u64| at.wrapping_mul(at).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_string();
    let line = |seq: u64| (0..bytes / 20).map(|at| number(seq * bytes + at)).collect::<String>();
    Segment::following(head, (1..=3).map(|at| line(head.seq + at)))
}

/// Verifies every chain; returns the head of each run.
fn verified(journal: &dyn Journal) -> Vec<Head> {
    let rows = (0..RUNS).map_while(|run| journal.run(&id(run)).unwrap());
    let check = |row: RunRow| {
        let mut verifier = ChainVerifier::new(&row.id, &row.spec);
        loop {
            let segments = journal.segments(&row.id, verifier.head().seq, 1 << 16).unwrap();
            if segments.is_empty() {
                assert_eq!(verifier.head(), row.head);
                return row.head;
            }
            segments.iter().for_each(|segment| verifier.follow(segment).unwrap());
        }
    };
    rows.map(check).collect()
}

fn say(text: &str) {
    println!("{SAYS}{text}");
    #[expect(clippy::disallowed_methods, reason = "for the test that reads it")]
    std::io::stdout().flush().unwrap();
}

/// Run as a child by the other tests; does nothing on its own.
#[test]
fn child() {
    let (Ok(role), Ok(folder)) = (std::env::var(ROLE), std::env::var(FOLDER)) else { return };
    let folder = PathBuf::from(folder);
    match role.as_str() {
        "write" => write_forever(&folder, |_, _| {}),
        "write and fold" => write_forever(&folder, |journal, commits| {
            if commits % 3 == 0 {
                journal.fold(true).unwrap();
            }
        }),
        "fill a disk" => fill(&folder, &|| fs::remove_file(folder.join("ballast")).unwrap()),
        "fill to a limit" => fill(&folder, &|| {
            let Rlimit { maximum, .. } = getrlimit(Resource::Fsize);
            setrlimit(Resource::Fsize, Rlimit { current: maximum, maximum }).unwrap();
        }),
        "open" => match open(&folder) {
            Ok(journal) => say(&format!("opened, {} runs", verified(&journal).len())),
            Err(error) => say(&error.to_string()),
        },
        other => panic!("{other}"),
    }
}

/// Appends to all runs in each commit, and prints the last event number after it; then does more.
fn write_forever(folder: &Path, then: impl Fn(&dyn Journal, usize)) {
    let journal = open(folder).unwrap();
    let mut heads = verified(&journal);
    if heads.is_empty() {
        let rows: Vec<RunRow> = (0..RUNS).map(|run| row(&id(run))).collect();
        heads = rows.iter().map(|row| row.head).collect();
        journal
            .commit(
                &rows.into_iter().map(|row| Write::Accept { row, key: None }).collect::<Vec<_>>(),
            )
            .unwrap();
    }

    for commits in 1.. {
        let mut writes = Vec::new();
        for (run, head) in heads.iter_mut().enumerate() {
            let segment = next(*head, 600);
            *head = segment.head();
            writes.push(Write::Append { id: id(run), segment });
        }

        journal.commit(&writes).unwrap();
        say(&heads[0].seq.to_string());
        then(&journal, commits);
    }
}

/// Appends to the run `r0`; returns its new head.
fn append(journal: &dyn Journal, head: Head) -> Result<Head, JournalError> {
    let segment = next(head, 10_000);
    let after = segment.head();
    journal.commit(&[Write::Append { id: id(0), segment }])?;
    Ok(after)
}

/// Writes until the disk is full, checks the content, makes room, and continues with the same
/// journal.
fn fill(folder: &Path, make_room: &dyn Fn()) {
    let journal = open(folder).unwrap();
    journal.commit(&[Write::Accept { row: row("r0"), key: None }]).unwrap();
    let mut head = row("r0").head;
    let error = loop {
        match append(&journal, head) {
            Ok(next) => head = next,
            Err(error) => break error,
        }
    };

    assert!(matches!(error, JournalError::NotWritable(_)), "{error}");
    assert!(head.seq > 12, "{head:?}");

    for _ in 0..3 {
        assert_eq!(verified(&journal), [head]);
        let again = append(&journal, head);
        assert!(matches!(again, Err(JournalError::NotWritable(_))), "{again:?}");
    }

    // It opens all the same, without room to write.
    drop(journal);
    let journal = open(folder).unwrap();
    assert_eq!(verified(&journal), [head]);

    make_room();
    for _ in 0..3 {
        head = append(&journal, head).unwrap();
    }
    journal.probe().unwrap();

    drop(journal);
    let journal = open(folder).unwrap();
    assert_eq!(verified(&journal), [head]);

    let end = Write::Update {
        id: "r0".to_owned(),
        updated_ms: 2,
        status: "done".to_owned(),
        is_over: true,
        resumed: 0,
        summary: String::new(),
    };
    journal.commit(&[end]).unwrap();

    while journal
        .collect(&Retention { updated_before_ms: Some(3), ..Retention::default() })
        .unwrap()
        .has_more
    {}

    assert_eq!(journal.size().unwrap().runs, 0);
    say(&format!("filled: {error}"));
}

/// This executable as a child with a role; `shell` runs before it, in the same process.
fn spawn(role: &str, folder: &Path, shell: &str) -> Child {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{shell}\nexec \"$0\" --exact journal::child --nocapture")]);
    command.arg(std::env::current_exe().unwrap()).env(ROLE, role).env(FOLDER, folder);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap()
}

/// The output of a child, which must succeed.
fn said(mut child: Child) -> Vec<String> {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    // The harness writes the name of the test in front of the first.
    let said =
        lines.filter_map(|line| Some(line.unwrap().split_once(SAYS)?.1.to_owned())).collect();
    assert!(child.wait().unwrap().success());
    said
}

/// Kills a child after `commits` commits; returns the last event number that it acknowledged.
fn killed(role: &str, folder: &Path, commits: usize) -> u64 {
    let mut child = spawn(role, folder, "");
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut acknowledged =
        lines.filter_map(|line| line.unwrap().split_once(SAYS)?.1.parse::<u64>().ok());
    let seen = acknowledged.by_ref().nth(commits - 1).unwrap();

    child.kill().unwrap();
    child.wait().unwrap();
    // It may have said more before it was killed.
    acknowledged.last().unwrap_or(seen)
}

/// Rows of batches, before the journal is opened.
fn batches(folder: &Path) -> i64 {
    let file = rusqlite::Connection::open(folder.join("runs.db")).unwrap();
    file.query_row("SELECT count(*) FROM batch", [], |row| row.get(0)).unwrap()
}

#[test]
fn kills_between_commits_and_folding_lose_nothing() {
    let mut left = 0;
    for (role, all_commits) in [("write", [1, 3, 30]), ("write and fold", [3, 4, 11])] {
        let folder = tempfile::tempdir().unwrap();
        for commits in all_commits {
            let last = killed(role, folder.path(), commits);
            left += batches(folder.path());

            let journal = open(folder.path()).unwrap();
            let heads = verified(&journal);
            assert!(
                heads.len() == RUNS && heads.iter().all(|head| head.seq == heads[0].seq),
                "half a batch: {heads:?}"
            );
            assert!(
                heads[0].seq == last || heads[0].seq == last + 3,
                "{} after {last}",
                heads[0].seq
            );

            drop(journal);
            assert_eq!(batches(folder.path()), 0, "opening folds");
            assert_eq!(verified(&open(folder.path()).unwrap()), heads);
        }
    }

    // Without folding, all commits of a child.
    assert!(left >= 34, "{left}");
}

#[test]
fn what_was_acknowledged_survives_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let mut before = 0;
    // Killed after the first commit, amid later ones, and after checkpoints.
    for commits in [1, 2, 10, 40, 7, 23] {
        let last = killed("write", folder.path(), commits);
        let journal = open(folder.path()).expect("the lock ended with the process");
        let heads = verified(&journal);
        assert_eq!(heads.len(), RUNS);
        assert!(heads.iter().all(|head| head.seq == heads[0].seq), "half a batch: {heads:?}");

        // The commit that it was killed in may have come through.
        assert!(heads[0].seq == last || heads[0].seq == last + 3, "{} after {last}", heads[0].seq);
        assert!(heads[0].seq >= before + 3 * commits as u64);
        before = heads[0].seq;
    }
}

#[test]
fn a_second_process_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let journal = open(folder.path()).unwrap();
    let heard = said(spawn("open", folder.path(), ""));
    assert!(heard.len() == 1 && heard[0].contains("another process uses it"), "{heard:?}");

    journal.commit(&[Write::Accept { row: row("r0"), key: None }]).unwrap();
    drop(journal);
    assert_eq!(said(spawn("open", folder.path(), "")), ["opened, 1 runs"]);
}

/// True if this user may mount in a new namespace.
fn may_mount() -> bool {
    let mount =
        Command::new("unshare").args(["-rm", "mount", "-t", "tmpfs", "tmpfs", "/tmp"]).output();
    mount.is_ok_and(|output| output.status.success())
}

/// Shell that enters a namespace in which the folder is a file system of 1 MiB, and then continues
/// with `then`.
fn on_a_small_disk(folder: &Path, then: &str) -> String {
    let folder = folder.display();
    // `$0` is this executable; the inner shell gets it as its own `$0`.
    format!(
        "exec unshare -rm sh -c 'set -e; mount -t tmpfs -o size=1m tmpfs {folder}; {then} exec \
         \"$0\" --exact journal::child --nocapture' \"$0\""
    )
}

#[test]
fn a_full_disk_refuses_writes_until_there_is_room() {
    if !may_mount() {
        eprintln!(
            "skipped: this user may not mount; `a_limit_of_the_system_is_like_a_full_disk` covers \
             the rest"
        );
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let ballast = format!("head -c 600000 /dev/zero > {}/ballast;", folder.path().display());
    let heard =
        said(spawn("fill a disk", folder.path(), &on_a_small_disk(folder.path(), &ballast)));
    assert!(
        heard.len() == 1 && heard[0].contains("filled: the journal cannot be written: "),
        "{heard:?}"
    );
}

#[test]
fn a_limit_of_the_system_is_like_a_full_disk() {
    let folder = tempfile::tempdir().unwrap();
    // Without the signal that comes with the error. In blocks of 512 bytes.
    let heard = said(spawn("fill to a limit", folder.path(), "trap '' XFSZ; ulimit -S -f 1024"));
    assert!(
        heard.len() == 1 && heard[0].contains("filled: the journal cannot be written: "),
        "{heard:?}"
    );
}

#[test]
fn a_read_only_disk_is_named() {
    if !may_mount() {
        eprintln!("skipped: this user may not mount");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    drop(open(folder.path()).unwrap());
    let folder = folder.path();

    let mount = format!("mount --bind {0} {0}; mount -o remount,ro,bind {0};", folder.display());
    let shell = on_a_small_disk(&folder.join("no"), "")
        .replace(&format!("mount -t tmpfs -o size=1m tmpfs {}/no;", folder.display()), &mount);

    let heard = said(spawn("open", folder, &shell));
    assert!(
        heard.len() == 1 && heard[0].contains("cannot be locked: Read-only file system"),
        "{heard:?}"
    );
}

#[test]
fn a_file_without_write_permission_is_named() {
    let folder = tempfile::tempdir().unwrap();
    drop(open(folder.path()).unwrap());
    let path = folder.path().join("runs.db");
    let mut permissions = fs::metadata(&path).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&path, permissions).unwrap();

    if fs::File::options().write(true).open(&path).is_ok() {
        return; // The superuser may write all the same.
    }

    let error = open(folder.path()).err().expect("it is refused");
    assert!(error.to_string().contains("no right to write"), "{error}");
}
