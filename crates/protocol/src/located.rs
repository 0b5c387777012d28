//! What a locator says: where the fault of a refuted trajectory lies.

use serde::{Deserialize, Serialize};

/// What a locator found in the steps before a refuted end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Located {
    /// Steps that it judged at this turn. It judges no step twice.
    pub judged: u64,
    /// Committed steps, from the first, that it has found clean so far.
    pub clean: usize,
    /// The step after these, if it is wrong: the search goes back to the state before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<Fault>,
}

/// A committed step that a locator rejects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Fault {
    /// The committed line.
    pub action: String,
    /// Its feedback, or the names of the broken constraints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl std::fmt::Display for Located {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let judged = match self.judged {
            1 => "1 step".to_owned(),
            several => format!("{several} steps"),
        };
        let Some(Fault { action, reason }) = &self.fault else {
            return write!(f, "the locator judged {judged} and found no fault");
        };

        write!(f, "the locator judged {judged} and found the fault at depth {}", self.clean)?;
        write!(f, ": `{action}`")?;
        reason.as_ref().map_or(Ok(()), |reason| write!(f, " ({reason})"))
    }
}
