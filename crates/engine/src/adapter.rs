//! LoRA adapters of a context: small matrices that specialise a model, in a GGUF file of their own.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::EngineError;
use super::gguf::{self, AdapterFile};

/// Largest absolute scale: beyond it, an adapter drowns its model.
const SCALE_MAX: f32 = 100.0;

/// How strongly an adapter is applied: 1 as it was trained, 0 not at all.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "f32", into = "f32")]
pub struct Scale(f32);

// A scale is finite, so it equals itself.
impl Eq for Scale {}

impl Default for Scale {
    fn default() -> Self {
        Self(1.0)
    }
}

impl TryFrom<f32> for Scale {
    type Error = String;

    fn try_from(scale: f32) -> Result<Self, String> {
        if scale.is_finite() && scale.abs() <= SCALE_MAX {
            // Minus zero is zero.
            Ok(Self(scale + 0.0))
        } else {
            Err(format!("the scale of an adapter is {scale}, set it to -{SCALE_MAX}..={SCALE_MAX}"))
        }
    }
}

impl From<Scale> for f32 {
    fn from(Scale(scale): Scale) -> Self {
        scale
    }
}

impl fmt::Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// An adapter of a context.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Adapter {
    /// Its file.
    pub path: PathBuf,
    /// How strongly it is applied.
    pub scale: Scale,
    /// The SHA-256 that the file must have, in hexadecimal digits; none if any will do.
    pub digest: Option<String>,
}

impl Adapter {
    /// The adapter as the file is now, applied as it was trained.
    ///
    /// # Errors
    /// [`EngineError::AdapterMissing`].
    pub fn read(path: &Path) -> Result<Self, EngineError> {
        let digest = digest(path)?;
        Ok(Self { path: path.to_owned(), scale: Scale::default(), digest: Some(digest) })
    }

    /// A short name for log lines and metrics: the file's, its digest's first digits and the scale.
    pub(super) fn label(&self) -> String {
        let stem = self.path.file_stem().unwrap_or_default().to_string_lossy();
        let digest = self.digest.as_deref().and_then(|digest| digest.get(..8));
        let mut label = stem.into_owned();
        if let Some(part) = digest {
            label.push('-');
            label.push_str(part);
        }
        if self.scale != Scale::default() {
            label.push_str(&format!("*{}", self.scale));
        }
        label
    }

    /// Checks the file against the digest and against its model, whose header is `model`. Covers
    /// every fault at which llama.cpp would abort or stay silent.
    ///
    /// # Errors
    /// [`EngineError::AdapterMissing`], [`EngineError::AdapterChanged`] and
    /// [`EngineError::AdapterForeign`].
    pub fn check(
        &self,
        model_path: &Path,
        model: &gguf::Header,
    ) -> Result<AdapterFile, EngineError> {
        if let Some(wanted) = &self.digest {
            let found = digest(&self.path)?;
            if found != *wanted {
                return Err(EngineError::AdapterChanged {
                    path: self.path.clone(),
                    wanted: wanted.clone(),
                    found,
                });
            }
        }

        let file = gguf::read_adapter(&self.path)?;
        file.check(model).map_err(|detail| EngineError::AdapterForeign {
            path: self.path.clone(),
            model: model_path.to_owned(),
            detail,
        })?;
        Ok(file)
    }
}

/// The SHA-256 of an adapter's file.
fn digest(path: &Path) -> Result<String, EngineError> {
    let hashed = gguf::open_regular(path).and_then(|mut file| {
        let mut hash = Sha256::new();
        io::copy(&mut file, &mut hash)?;
        Ok(format!("{:x}", hash.finalize()))
    });
    hashed.map_err(|error| EngineError::AdapterMissing {
        path: path.to_owned(),
        detail: error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_is_finite_and_bounded() {
        for (scale, is_valid) in [
            (0.0, true),
            (-100.0, true),
            (100.0, true),
            (100.1, false),
            (f32::NAN, false),
            (f32::INFINITY, false),
        ] {
            assert_eq!(Scale::try_from(scale).is_ok(), is_valid, "{scale}");
        }
        assert_eq!(Scale::try_from(-0.0).unwrap().to_string(), "0");
    }

    #[test]
    fn a_label_tells_files_and_scales_apart() {
        let adapter = |digest: Option<&str>, scale: f32| Adapter {
            path: "/models/union-find.gguf".into(),
            scale: scale.try_into().unwrap(),
            digest: digest.map(str::to_owned),
        };
        assert_eq!(adapter(None, 1.0).label(), "union-find");
        assert_eq!(adapter(Some("0123456789"), 0.5).label(), "union-find-01234567*0.5");
    }

    #[test]
    fn another_content_under_the_same_name_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.gguf");
        std::fs::write(&path, "abc").unwrap();
        let adapter = Adapter::read(&path).unwrap();
        // The SHA-256 of "abc" in the standard.
        let of_abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(adapter.digest.as_deref(), Some(of_abc));

        std::fs::write(&path, "abd").unwrap();
        let error = adapter.check(Path::new("m.gguf"), &gguf::Header::default()).unwrap_err();
        assert!(matches!(error, EngineError::AdapterChanged { .. }), "{error}");

        std::fs::remove_file(&path).unwrap();
        let error = adapter.check(Path::new("m.gguf"), &gguf::Header::default()).unwrap_err();
        assert!(matches!(error, EngineError::AdapterMissing { .. }), "{error}");
    }
}
