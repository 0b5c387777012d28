//! Rewrites a model that this trainer exported, with matrices of another element type.

use std::path::Path;

use prime_engine::gguf::{self, TASKS_KEY};

use super::{
    TrainError,
    checkpoint::replace,
    element::Precision,
    gguf::{About, encode},
    initial::policy_of,
    layout::Layout,
    recipe::Architecture,
    vocabulary::Vocabulary,
};

/// The contents of a file that this trainer exported.
pub(crate) struct Exported {
    pub model: Architecture,
    pub layout: Layout,
    pub vocabulary: Vocabulary,
    pub weights: Vec<f32>,
    /// The tasks it was trained on; none if the file does not say.
    pub tasks: Vec<String>,
}

impl Exported {
    /// Reads a file whose matrices are to be written as `matrices`.
    ///
    /// # Errors
    /// If the file cannot be read or is not an export of this trainer, or its sizes do not fit
    /// `matrices`.
    pub fn read(path: &Path, matrices: Precision) -> Result<Self, TrainError> {
        let refuse = |reason: String| TrainError::Model { path: path.to_owned(), reason };
        let bytes = std::fs::read(path).map_err(|source| TrainError::Io {
            action: "read",
            path: path.to_owned(),
            source,
        })?;

        let model = architecture(&bytes).map_err(refuse)?;
        matrices.check(model).map_err(|reason| refuse(reason.to_owned()))?;
        let (layout, vocabulary, weights) = policy_of(&bytes, model, refuse)?;

        let tasks = gguf::parse(&bytes)
            .ok()
            .and_then(|mut header| header.strings.remove(TASKS_KEY))
            .unwrap_or_default();
        Ok(Self { model, layout, vocabulary, weights, tasks })
    }

    /// Writes the model to the file `out`.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, name: &str, matrices: Precision, out: &Path) -> Result<(), TrainError> {
        let about = About { name, tasks: &self.tasks };
        replace(out, &encode(about, &self.layout, &self.vocabulary, &self.weights, matrices))
    }
}

/// Writes the model of the file `path` to the file `out`, with matrices of the type `matrices`.
///
/// # Errors
/// If the file cannot be read, is not an export of this trainer, or has sizes that do not fit the
/// type; or if `out` cannot be written.
pub fn convert(path: &Path, matrices: Precision, out: &Path) -> Result<(), TrainError> {
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    Exported::read(path, matrices)?.write(&name, matrices, out)
}

/// The sizes that a file states.
///
/// # Errors
/// The reason why the file is not an export of this trainer.
fn architecture(bytes: &[u8]) -> Result<Architecture, String> {
    let header = gguf::parse(bytes).map_err(|error| error.to_string())?;
    let size = |key: &str| match header.numbers(key) {
        Some([size]) => usize::try_from(*size).map_err(|_| format!("its `{key}` is {size}")),
        _ => Err(format!("it has no `{key}`: only a file that this trainer exported can be used")),
    };

    let sizes = Architecture {
        d_model: size("llama.embedding_length")?,
        layers: size("llama.block_count")?,
        heads: size("llama.attention.head_count")?,
        ff: size("llama.feed_forward_length")?,
        context: size(super::gguf::CONTEXT_KEY)?,
    };

    // A file that states more weights than it has bytes must not make this program ask for their
    // memory.
    let matrix =
        sizes.d_model.checked_mul(sizes.ff).and_then(|matrix| matrix.checked_mul(sizes.layers));

    let is_sound = sizes.heads > 0 && sizes.d_model.is_multiple_of(2 * sizes.heads);
    if !is_sound || matrix.is_none_or(|weights| weights > bytes.len()) {
        return Err("its sizes are not those of a model of this trainer".to_owned());
    }
    Ok(sizes)
}

#[cfg(test)]
mod tests {
    use super::super::initial::weights;
    use super::*;

    const SMALL: Architecture =
        Architecture { d_model: 32, layers: 2, heads: 4, ff: 64, context: 128 };

    /// Writes a model of these sizes, and returns its folder and its weights.
    fn exported(model: Architecture) -> (tempfile::TempDir, Vec<f32>) {
        let folder = tempfile::tempdir().unwrap();
        let (layout, vocabulary) = (Layout::new(model, 259), Vocabulary::default());
        let weights = layout.initialize(3);
        std::fs::write(
            folder.path().join("a.gguf"),
            encode("a", &layout, &vocabulary, &weights, Precision::F32),
        )
        .unwrap();
        (folder, weights)
    }

    #[test]
    fn eight_bits_take_a_quarter_and_change_each_weight_by_half_a_scale_at_most() {
        let (folder, before) = exported(SMALL);
        let [from, to] = ["a.gguf", "b.gguf"].map(|name| folder.path().join(name));
        convert(&from, Precision::Q8_0, &to).unwrap();

        let [f32_bytes, q8_bytes] = [&from, &to].map(|path| std::fs::metadata(path).unwrap().len());
        assert!(q8_bytes * 3 < f32_bytes, "{f32_bytes} bytes, then {q8_bytes}");

        let (layout, vocabulary) = (Layout::new(SMALL, 259), Vocabulary::default());
        let after = weights(&std::fs::read(&to).unwrap(), &layout, &vocabulary).unwrap();
        let largest = before.iter().fold(0.0, |largest: f32, weight| largest.max(weight.abs()));
        let difference = before.iter().zip(&after).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);

        // The scale itself is rounded to 11 bits.
        assert!(
            difference > 0.0 && difference <= largest / 127.0 * 0.57,
            "{difference} of {largest}"
        );

        let again = folder.path().join("c.gguf");
        convert(&to, Precision::F32, &again).unwrap();
        assert_eq!(weights(&std::fs::read(&again).unwrap(), &layout, &vocabulary).unwrap(), after);
    }

    #[test]
    fn a_file_states_what_its_model_was_trained_on() {
        let folder = tempfile::tempdir().unwrap();
        let [from, to] = ["a.gguf", "b.gguf"].map(|name| folder.path().join(name));
        let (layout, vocabulary) = (Layout::new(SMALL, 259), Vocabulary::default());
        let tasks = ["n-queens", "a-star"].map(str::to_owned);

        let about = About { name: "a", tasks: &tasks };
        std::fs::write(
            &from,
            encode(about, &layout, &vocabulary, &layout.initialize(3), Precision::F32),
        )
        .unwrap();

        convert(&from, Precision::Q8_0, &to).unwrap();
        for path in [from, to] {
            assert_eq!(gguf::read(&path).unwrap().strings[TASKS_KEY], tasks);
            let bytes = std::fs::read(&path).unwrap();
            assert!(weights(&bytes, &layout, &vocabulary).is_ok(), "training may begin from it");
        }
    }

    #[test]
    fn what_cannot_be_converted_is_refused_with_the_reason() {
        let (folder, _) = exported(Architecture { ff: 48, ..SMALL });
        let [from, to] = ["a.gguf", "b.gguf"].map(|name| folder.path().join(name));

        let message = |path: &Path| convert(path, Precision::Q8_0, &to).unwrap_err().to_string();
        assert!(
            message(&from).ends_with("q8_0 needs d_model and ff in multiples of 32"),
            "{}",
            message(&from)
        );

        let foreign = folder.path().join("c.gguf");
        std::fs::write(&foreign, b"PK").unwrap();
        assert!(message(&foreign).contains("not a GGUF file"), "{}", message(&foreign));

        let missing = folder.path().join("d.gguf");
        assert!(message(&missing).contains("cannot read"), "{}", message(&missing));

        assert!(!to.exists());
    }
}
