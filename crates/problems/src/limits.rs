//! Limits of a client's problem, with reasons. Sizes are in bytes of UTF-8.

/// The statement, which is part of every prompt.
pub const STATEMENT_BYTES_MAX: usize = 32 << 10;

/// The input as compact JSON, which is part of every prompt.
pub const INPUT_BYTES_MAX: usize = 256 << 10;

/// Nesting of the input and of an answer: both are walked by recursion, on stacks of 2 MiB.
pub const JSON_DEPTH_MAX: usize = 32;

/// Constraints: a set of violations has 32 bits, and `format` has the first.
pub const CONSTRAINTS_MAX: usize = 31;

/// The name of a constraint, which is part of every verdict.
pub const NAME_BYTES_MAX: usize = 64;

/// Text of a constraint for a reader.
pub const TEXT_BYTES_MAX: usize = 4 << 10;

/// Expression of a check: parsing takes up to 20 µs a byte.
pub const EXPRESSION_BYTES_MAX: usize = 1_000;

/// Nesting of brackets and calls in an expression: the parser recurses.
pub const PARSE_DEPTH_MAX: u16 = 24;

/// Depth of an expression's tree: evaluation recurses on stacks of 2 MiB and takes 40 KiB per level
/// unoptimised.
pub const TREE_DEPTH_MAX: usize = 24;

/// Total work of all checks of a kind after a step, in units of 20 to 150 ns: about 50 ms. The
/// agents of a cell share a thread.
pub const WORK_MAX: u64 = 400_000;

/// Steps that a check must be able to process. Longer traces are bounded again at evaluation.
pub const ORDINARY_STEPS: u64 = 100;

/// Bytes of such a step.
pub const ORDINARY_STEP_BYTES: u64 = 64;

/// Parts (numbers, elements, pieces of text) of an answer that a check must be able to process.
pub const ORDINARY_ANSWER_PARTS: u64 = 16;

/// Pattern of an answer or of `matches`.
pub const PATTERN_BYTES_MAX: usize = 1_000;

/// A compiled pattern. Matching takes time proportional to its size times the text's: at this size
/// up to about 10 µs per byte.
pub const PATTERN_SIZE_MAX: usize = 128 << 10;

/// JSON Schema of an answer, as compact JSON.
pub const SCHEMA_BYTES_MAX: usize = 64 << 10;

/// Values in a JSON Schema after inlining its references: small definitions can expand to huge
/// schemas.
pub const SCHEMA_NODES_MAX: usize = 4_000;

/// Nesting of a JSON Schema after inlining its references. Recursive schemas exceed it.
pub const SCHEMA_DEPTH_MAX: usize = 32;

/// A proposed line.
pub const LINE_BYTES_MAX: usize = 4 << 10;

/// Steps of a trace, its T_max.
pub const STEPS_MAX: u64 = 10_000;

/// Total size of a trace's steps: bounds a trajectory's memory and the input of checks.
pub const STEPS_BYTES_MAX: usize = 1 << 20;

/// Length of quotes from values and library messages in reasons.
pub const QUOTE_BYTES_MAX: usize = 300;
