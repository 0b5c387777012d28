//! Empty: its manifest is what counts.
