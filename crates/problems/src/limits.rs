//! Limits of a client's problem, each with its reason. Sizes are in bytes of UTF-8.

/// Statement of the problem: it stands in every prompt.
pub const STATEMENT_BYTES_MAX: usize = 32 << 10;

/// Input as compact JSON: it stands in every prompt, too.
pub const INPUT_BYTES_MAX: usize = 256 << 10;

/// Nesting of the input and of an answer: both are walked by recursion, on stacks of 2 MiB.
pub const JSON_DEPTH_MAX: usize = 32;

/// Constraints of a problem: a set of violations has 32 places, and `format` has the first.
pub const CONSTRAINTS_MAX: usize = 31;

/// Name of a constraint: it stands in every verdict.
pub const NAME_BYTES_MAX: usize = 64;

/// Text of a constraint for a reader.
pub const TEXT_BYTES_MAX: usize = 4 << 10;

/// Expression of a check: parsing takes up to 20 µs a byte.
pub const EXPRESSION_BYTES_MAX: usize = 1_000;

/// Brackets and calls that may stand in each other in an expression: the parser recurses.
pub const PARSE_DEPTH_MAX: u16 = 24;

/// Depth of an expression's tree: evaluation recurses, without optimisation in 40 KiB a level, on stacks of 2 MiB.
pub const TREE_DEPTH_MAX: usize = 24;

/// Work of all checks of a kind after a step together, in units of 20 to 150 ns, so that a step is judged within some
/// 50 ms. The agents of a cell share a thread.
pub const WORK_MAX: u64 = 400_000;

/// Steps that a check must at least be able to look at; more are counted when they are there.
pub const ORDINARY_STEPS: u64 = 100;

/// Bytes of such a step.
pub const ORDINARY_STEP_BYTES: u64 = 64;

/// Parts (numbers, elements, pieces of text) of an answer that a check must at least be able to look at.
pub const ORDINARY_ANSWER_PARTS: u64 = 16;

/// Pattern of an answer or of `matches`.
pub const PATTERN_BYTES_MAX: usize = 1_000;

/// A compiled pattern. The engine takes time in proportion to its size times that of the text: at this size up to
/// some 10 µs a byte.
pub const PATTERN_SIZE_MAX: usize = 128 << 10;

/// JSON Schema of an answer, as compact JSON.
pub const SCHEMA_BYTES_MAX: usize = 64 << 10;

/// Values in a JSON Schema after its references are written out: small definitions can stand for huge schemas.
pub const SCHEMA_NODES_MAX: usize = 4_000;

/// Nesting of a JSON Schema after its references are written out; recursive ones are deeper.
pub const SCHEMA_DEPTH_MAX: usize = 32;

/// A proposed line.
pub const LINE_BYTES_MAX: usize = 4 << 10;

/// Steps of a trace, its T_max.
pub const STEPS_MAX: u64 = 10_000;

/// All steps of a trace: a trajectory's memory, and what a check has to look at.
pub const STEPS_BYTES_MAX: usize = 1 << 20;

/// What a reason quotes of a value or of a library's message.
pub const QUOTE_BYTES_MAX: usize = 300;
