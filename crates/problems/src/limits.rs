//! Limits of a client's problem, with reasons. Sizes are in bytes of UTF-8.

/// Bytes of the statement, which is part of every prompt.
pub const STATEMENT_BYTES_MAX: usize = 32 << 10;

/// Bytes of the input as compact JSON, which is part of every prompt.
pub const INPUT_BYTES_MAX: usize = 256 << 10;

/// Nesting depth of the input and of an answer: both are walked by recursion, on stacks of 2 MiB.
pub const JSON_DEPTH_MAX: usize = 32;

/// Number of constraints: a set of violations has 32 bits, and `format` has the first.
pub const CONSTRAINTS_MAX: usize = 31;

/// Bytes of the name of a constraint, which is part of every verdict.
pub const NAME_BYTES_MAX: usize = 64;

/// Bytes of a constraint in words.
pub const TEXT_BYTES_MAX: usize = 4 << 10;

/// Bytes of the expression of a check: parsing takes up to 20 µs a byte.
pub const EXPRESSION_BYTES_MAX: usize = 1_000;

/// Characters of a value that a check had read, in the reason of what it refuses.
pub const READING_CHARS_MAX: usize = 60;

/// Values in such a reason: it is part of the next prompt.
pub const READINGS_MAX: usize = 6;

/// Nesting depth of brackets and calls in an expression: the parser recurses.
pub const PARSE_DEPTH_MAX: u16 = 24;

/// Depth of an expression's tree: evaluation recurses on stacks of 2 MiB and takes 40 KiB per level
/// unoptimised.
pub const TREE_DEPTH_MAX: usize = 24;

/// Total work of all checks of a kind after a step, in units of 20 to 150 ns: about 50 ms. More
/// would hold up the other runs of the cell, whose agents share a thread.
pub const WORK_MAX: u64 = 400_000;

/// Number of steps that a check must be able to process. Longer traces are bounded again at
/// evaluation.
pub const ORDINARY_STEPS: u64 = 100;

/// Bytes of such a step.
pub const ORDINARY_STEP_BYTES: u64 = 64;

/// Parts (numbers, elements, pieces of text) of an answer that a check must be able to process.
pub const ORDINARY_ANSWER_PARTS: u64 = 16;

/// Parts of a step's value that a check must be able to process.
pub const ORDINARY_STEP_PARTS: u64 = 16;

/// Numbers of a `range` in a check. Work is bounded by this where the numbers are not known.
pub const RANGE_MAX: u64 = 10_000;

/// Bytes of the pattern of an answer or of `matches`.
pub const PATTERN_BYTES_MAX: usize = 1_000;

/// Bytes of a compiled pattern. Matching takes time proportional to its size times the text's: at
/// this size up to about 10 µs per byte.
pub const PATTERN_SIZE_MAX: usize = 128 << 10;

/// Bytes of the compiled pattern of a step with named groups: finding what they match takes several
/// times as long as a plain match.
pub const GROUPS_SIZE_MAX: usize = 16 << 10;

/// Bytes of the JSON Schema of an answer, as compact JSON.
pub const SCHEMA_BYTES_MAX: usize = 64 << 10;

/// Number of values in a JSON Schema after inlining its references: small definitions can expand to
/// huge schemas.
pub const SCHEMA_NODES_MAX: usize = 4_000;

/// Nesting depth of a JSON Schema after inlining its references. Recursive schemas exceed it.
pub const SCHEMA_DEPTH_MAX: usize = 32;

/// Bytes of a proposed line.
pub const LINE_BYTES_MAX: usize = 4 << 10;

/// Most proposals that `max_proposals` may allow. More would be no limit beside a run's budget.
pub const MAX_PROPOSALS_MAX: u64 = 1_000_000;

/// Number of steps of a trace, its T_max.
pub const STEPS_MAX: u64 = 10_000;

/// Bytes of all steps of a trace: bounds a trajectory's memory and the input of checks.
pub const STEPS_BYTES_MAX: usize = 1 << 20;

/// Parts of the values of all steps of a trace, up to 80 bytes each: for the same reason.
pub const STEPS_PARTS_MAX: u64 = 100_000;

/// Bytes of a quote from a value or from a library's message in a reason.
pub const QUOTE_BYTES_MAX: usize = 300;
