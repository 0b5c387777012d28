//! Attestations: signed statements of a daemon about a run that is over, which anybody can check
//! without it. The envelope is DSSE's (Dead Simple Signing Envelope), the signature Ed25519.

use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::{fmt, fs};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::rand::SystemRandom;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject as _;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::runs::RunRecord;

/// The type of an attestation's payload: the JSON of an [`Attestation`].
pub const PAYLOAD_TYPE: &str = "application/vnd.prime-agents.run.v1+json";

/// The scheme that public keys begin with.
const SCHEME: &str = "ed25519:";
const PEM_BEGIN: &str = "-----BEGIN PRIVATE KEY-----\n";
const PEM_END: &str = "-----END PRIVATE KEY-----\n";

/// What a daemon says about a run that is over.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Attestation {
    /// When it was signed: RFC 3339, UTC.
    pub issued_at: String,
    /// What the run was accepted with, word for word: its SHA-256 begins the chain.
    pub spec: String,
    /// How the run ended: answer, verdict, agents, models with their digests, and the chain over
    /// spec and events.
    pub record: RunRecord,
}

/// A signed payload.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Envelope {
    /// The payload's type: `application/vnd.prime-agents.run.v1+json`.
    #[serde(rename = "payloadType")]
    pub payload_type: String,
    /// The payload in base64: JSON with `issued_at`, `spec` (text) and `record`.
    pub payload: String,
    /// One signature.
    pub signatures: Vec<Signature>,
}

/// A signature of an envelope.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Signature {
    /// The public key: `ed25519:` and its 32 bytes in base64.
    pub keyid: String,
    /// The Ed25519 signature in base64, over DSSE's pre-authentication encoding of type and payload.
    pub sig: String,
}

/// Why a key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file cannot be read or written.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's message.
        reason: io::Error,
    },
    /// The file holds no such key.
    #[error(
        "{}: it is no Ed25519 key in PEM (PKCS #8): make one with `prime-agents attest key FILE`, or \
         with `openssl genpkey -algorithm ed25519`", path.display()
    )]
    Form {
        /// The file.
        path: PathBuf,
    },
    /// The system has no randomness.
    #[error("the system gives no random bytes for a key")]
    NoRandomness,
}

/// A text that is not a public key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a public key is `ed25519:` and 32 bytes in base64, as `prime-agents attest key` prints it"
)]
pub struct NoPublicKey;

/// Why an envelope is not what a key's owner has signed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAttested {
    /// It is of something else.
    #[error("its type is `{0}`, not that of an attestation (`{PAYLOAD_TYPE}`)")]
    OtherType(String),
    /// Another key signed it.
    #[error("it is signed by {0}, not by this key")]
    OtherKey(String),
    /// The signature is not one of this content.
    #[error("the signature does not belong to the content: one of them was changed")]
    Changed,
    /// The signed content cannot be read.
    #[error("the signature is right, but the content cannot be read: {0}")]
    Unreadable(String),
}

/// The key that a daemon signs with.
pub struct AttestationKey(Ed25519KeyPair);

/// The key that its signatures are checked by.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PublicKey([u8; 32]);

/// What is signed: type and payload, so that neither can pass for the other.
fn encoded(payload_type: &str, payload: &[u8]) -> Vec<u8> {
    let head = format!("DSSEv1 {} {payload_type} {} ", payload_type.len(), payload.len());
    [head.as_bytes(), payload].concat()
}

impl AttestationKey {
    /// Makes a key and writes it to a file that did not exist, readable by its owner alone.
    ///
    /// # Errors
    /// [`KeyError::File`], also where the file exists.
    pub fn create(path: &Path) -> Result<Self, KeyError> {
        let failed = |reason| KeyError::File { path: path.to_owned(), reason };
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new())
            .map_err(|_| KeyError::NoRandomness)?;

        let mut file = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
            .map_err(failed)?;
        let body = STANDARD.encode(document.as_ref());
        // RFC 7468: lines of 64 characters.
        let lines = body.as_bytes().chunks(64).flat_map(|line| [line, b"\n"]);
        let text = [PEM_BEGIN.as_bytes(), &lines.collect::<Vec<_>>().concat(), PEM_END.as_bytes()];
        file.write_all(&text.concat()).and_then(|()| file.sync_all()).map_err(failed)?;
        Self::read(path)
    }

    /// Reads a key.
    ///
    /// # Errors
    /// [`KeyError::File`] and [`KeyError::Form`].
    pub fn read(path: &Path) -> Result<Self, KeyError> {
        let pem =
            fs::read(path).map_err(|reason| KeyError::File { path: path.to_owned(), reason })?;
        let no_key = || KeyError::Form { path: path.to_owned() };
        let der = PrivatePkcs8KeyDer::from_pem_slice(&pem).map_err(|_| no_key())?;
        // Other programs write keys without their public half.
        Ed25519KeyPair::from_pkcs8_maybe_unchecked(der.secret_pkcs8_der())
            .map(Self)
            .map_err(|_| no_key())
    }

    /// The key that others check its signatures by.
    pub fn public(&self) -> PublicKey {
        let bytes = self.0.public_key().as_ref().try_into();
        PublicKey(bytes.expect("invariant: a public key has 32 bytes"))
    }

    /// Signs an attestation.
    pub fn sign(&self, attestation: &Attestation) -> Envelope {
        let payload =
            serde_json::to_vec(attestation).expect("invariant: an attestation serialises");
        let signature = self.0.sign(&encoded(PAYLOAD_TYPE, &payload));
        Envelope {
            payload_type: PAYLOAD_TYPE.to_owned(),
            payload: STANDARD.encode(payload),
            signatures: vec![Signature {
                keyid: self.public().to_string(),
                sig: STANDARD.encode(signature),
            }],
        }
    }
}

impl Envelope {
    /// The attestation in it, if the owner of this key has signed it.
    ///
    /// # Errors
    /// [`NotAttested`].
    pub fn open(&self, key: PublicKey) -> Result<Attestation, NotAttested> {
        if self.payload_type != PAYLOAD_TYPE {
            return Err(NotAttested::OtherType(self.payload_type.clone()));
        }
        let payload = STANDARD.decode(&self.payload).map_err(|_| NotAttested::Changed)?;

        let content = encoded(&self.payload_type, &payload);
        let is_signature = |signature: &Signature| {
            STANDARD.decode(&signature.sig).is_ok_and(|signature| {
                UnparsedPublicKey::new(&ED25519, key.0).verify(&content, &signature).is_ok()
            })
        };
        // The name of a key is a hint only: the signature decides.
        if !self.signatures.iter().any(is_signature) {
            let others: Vec<_> = self.signatures.iter().map(|other| other.keyid.as_str()).collect();
            return Err(if others.contains(&key.to_string().as_str()) {
                NotAttested::Changed
            } else {
                NotAttested::OtherKey(others.join(", "))
            });
        }
        serde_json::from_slice(&payload).map_err(|error| NotAttested::Unreadable(error.to_string()))
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}", STANDARD.encode(self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for PublicKey {
    type Err = NoPublicKey;

    fn from_str(text: &str) -> Result<Self, NoPublicKey> {
        let key = text.trim().strip_prefix(SCHEME).and_then(|key| STANDARD.decode(key).ok());
        let bytes = key.and_then(|key| key.try_into().ok());
        bytes.map(Self).ok_or(NoPublicKey)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use serde_json::json;

    use super::*;

    /// The first test vector of RFC 8032, section 7.1, as `openssl` writes keys: without the public
    /// half.
    const VECTOR: &str = "-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g
-----END PRIVATE KEY-----
";

    fn attestation() -> Attestation {
        let record = json!({
            "id": "run_1", "status": "verified", "resumed": 0, "created_at": "", "updated_at": "",
            "events": 3, "chain": "ab", "task": "n-queens", "instance": "input",
            "answer": {"queens": [1, 3, 0, 2]}, "verified": true, "verifier": "rules",
            "checked_kinds": [], "outcome": "agreed", "steps": 4, "proposals": 4, "retries": 0,
            "backtracks": 0, "pops": 0, "rounds": 1, "trajectories": 1, "votes": [],
            "agreement": 1.0, "tokens": {"prompt": 0, "completion": 0}, "wall_ms": 5, "seed": 7,
            "strategy": "iterative", "config_hash": "ab", "notes": [],
            "agents": {"executor": "scripted", "verifier": "rules", "coordinator": "threshold"},
        });
        Attestation {
            issued_at: "2026-02-03T04:05:06.000Z".to_owned(),
            spec: "{\"task\":\"n-queens\"}".to_owned(),
            record: serde_json::from_value(record).unwrap(),
        }
    }

    fn created() -> (tempfile::TempDir, AttestationKey) {
        let folder = tempfile::tempdir().unwrap();
        let key = AttestationKey::create(&folder.path().join("key.pem")).unwrap();
        (folder, key)
    }

    #[test]
    fn a_key_is_private_is_read_again_and_is_never_overwritten() {
        let (folder, key) = created();
        let path = folder.path().join("key.pem");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(AttestationKey::read(&path).unwrap().public(), key.public());
        assert!(matches!(AttestationKey::create(&path), Err(KeyError::File { .. })));

        let text = key.public().to_string();
        assert_eq!(text.parse(), Ok(key.public()));
        assert_eq!(text[SCHEME.len()..].parse::<PublicKey>(), Err(NoPublicKey));
    }

    #[test]
    fn keys_of_other_programs_are_read_and_sign_as_rfc_8032_says() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key.pem");
        fs::write(&path, VECTOR).unwrap();
        let key = AttestationKey::read(&path).unwrap();
        // d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a
        let public = "ed25519:11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";
        assert_eq!(key.public().to_string(), public);

        for other in ["", "key", &VECTOR.replace("K2Vw", "K2Vx")] {
            fs::write(&path, other).unwrap();
            assert!(matches!(AttestationKey::read(&path), Err(KeyError::Form { .. })), "{other}");
        }
    }

    #[test]
    fn only_what_the_key_has_signed_is_opened() {
        let (_folder, key) = created();
        let envelope = key.sign(&attestation());
        let opened = envelope.open(key.public()).unwrap();
        assert_eq!(opened.spec, attestation().spec);
        assert_eq!(opened.record.result.answer, attestation().record.result.answer);

        let (_other_folder, other) = created();
        let expected = NotAttested::OtherKey(key.public().to_string());
        assert_eq!(envelope.open(other.public()).unwrap_err(), expected);

        let wrong = |envelope: Envelope| envelope.open(key.public()).unwrap_err();
        let payload = STANDARD.decode(&envelope.payload).unwrap();
        let lie = String::from_utf8(payload).unwrap().replace("[1,3,0,2]", "[0,1,2,3]");
        let changed = Envelope { payload: STANDARD.encode(lie), ..envelope.clone() };
        assert_eq!(wrong(changed), NotAttested::Changed);

        let unsigned = Envelope { signatures: Vec::new(), ..envelope.clone() };
        assert_eq!(wrong(unsigned), NotAttested::OtherKey(String::new()));
        // The signature of another key under this one's name.
        let mut forged = other.sign(&attestation());
        forged.signatures[0].keyid = key.public().to_string();
        assert_eq!(wrong(forged), NotAttested::Changed);

        let typed = Envelope { payload_type: "text/plain".to_owned(), ..envelope };
        assert_eq!(wrong(typed), NotAttested::OtherType("text/plain".to_owned()));
    }

    #[test]
    fn what_is_signed_is_encoded_as_dsse_says() {
        // The example of the protocol's document.
        let expected = b"DSSEv1 29 http://example.com/HelloWorld 11 hello world";
        assert_eq!(encoded("http://example.com/HelloWorld", b"hello world"), expected);
    }
}
