//! The average of two models' weights. If the second model is the first one after further training
//! on fewer tasks, the average keeps what the first knows and gains most of what the second learnt
//! (WiSE-FT, Wortsman et al. 2022).

use std::path::Path;

use super::{TrainError, convert::Exported, element::Precision};

/// Writes (1 − share) · `from` + share · `towards`, weight by weight, to the file `out`, with
/// matrices of the type `matrices`. The file lists the tasks of both models.
///
/// # Errors
/// If a file cannot be read or is not an export of this trainer, the two differ in sizes or words,
/// `share` is not from 0 to 1, or `out` cannot be written.
pub fn average(
    [from, towards]: [&Path; 2],
    share: f64,
    matrices: Precision,
    out: &Path,
) -> Result<(), TrainError> {
    let refuse = |reason: String| Err(TrainError::Model { path: towards.to_owned(), reason });
    if !(0.0..=1.0).contains(&share) {
        return refuse(format!("its share is {share}, not from 0 to 1"));
    }

    let mut average = Exported::read(from, matrices)?;
    let other = Exported::read(towards, matrices)?;
    if other.model != average.model || other.vocabulary.words() != average.vocabulary.words() {
        return refuse(format!("its sizes or words are not those of {}", from.display()));
    }

    let mixed = |a: f32, b: f32| ((1.0 - share) * f64::from(a) + share * f64::from(b)) as f32;
    average.weights.iter_mut().zip(&other.weights).for_each(|(a, b)| *a = mixed(*a, *b));

    for task in other.tasks {
        if !average.tasks.contains(&task) {
            average.tasks.push(task);
        }
    }

    let name = out.file_stem().unwrap_or_default().to_string_lossy();
    average.write(&name, matrices, out)
}

#[cfg(test)]
mod tests {
    use prime_engine::gguf::{self, TASKS_KEY};

    use super::*;
    use crate::gguf::{About, encode};
    use crate::initial::weights;
    use crate::layout::Layout;
    use crate::recipe::Architecture;
    use crate::vocabulary::Vocabulary;

    const SMALL: Architecture =
        Architecture { d_model: 32, layers: 2, heads: 4, ff: 64, context: 128 };

    /// Writes a model whose weights all have one value.
    fn write(path: &Path, model: Architecture, words: &[&str], value: f32, tasks: &[&str]) {
        let vocabulary =
            Vocabulary::new(words.iter().map(|word| (*word).to_owned()).collect()).unwrap();
        let layout = Layout::new(model, vocabulary.size());
        let tasks: Vec<String> = tasks.iter().map(|task| (*task).to_owned()).collect();
        let about = About { name: "a", tasks: &tasks };
        let weights = vec![value; layout.len];
        std::fs::write(path, encode(about, &layout, &vocabulary, &weights, Precision::F32))
            .unwrap();
    }

    #[test]
    fn each_weight_is_between_those_of_both_by_the_share() {
        let folder = tempfile::tempdir().unwrap();
        let [from, towards, out] =
            ["a", "b", "c"].map(|name| folder.path().join(format!("{name}.gguf")));
        write(&from, SMALL, &["cmp "], 1.0, &["logic-grid", "24-game"]);
        write(&towards, SMALL, &["cmp "], 5.0, &["24-game", "sudoku"]);

        average([&from, &towards], 0.75, Precision::F32, &out).unwrap();
        let vocabulary = Vocabulary::new(vec!["cmp ".to_owned()]).unwrap();
        let layout = Layout::new(SMALL, vocabulary.size());
        let found = weights(&std::fs::read(&out).unwrap(), &layout, &vocabulary).unwrap();
        assert!(found.iter().all(|weight| *weight == 4.0), "{:?}", &found[..3]);

        assert_eq!(
            gguf::read(&out).unwrap().strings[TASKS_KEY],
            ["logic-grid", "24-game", "sudoku"]
        );
    }

    #[test]
    fn models_that_differ_in_shape_and_shares_beyond_one_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let [from, towards, out] =
            ["a", "b", "c"].map(|name| folder.path().join(format!("{name}.gguf")));
        write(&from, SMALL, &["cmp "], 1.0, &[]);

        let message = |share| {
            average([&from, &towards], share, Precision::F32, &out).unwrap_err().to_string()
        };

        for (model, words) in [(Architecture { ff: 96, ..SMALL }, "cmp "), (SMALL, "mid ")] {
            write(&towards, model, &[words], 5.0, &[]);
            assert!(message(0.5).contains("sizes or words are not those of"), "{}", message(0.5));
        }
        assert!(message(1.5).contains("its share is 1.5"), "{}", message(1.5));
        assert!(!out.exists());
    }
}
