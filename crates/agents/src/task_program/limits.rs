//! Limits of a task that is a program, with reasons. Sizes are in bytes of UTF-8. The longest line
//! that a program may write is `line_bytes_max` of its configuration.

/// Bytes of the statement, which is part of every prompt.
pub const STATEMENT_BYTES_MAX: usize = 32 << 10;

/// Bytes of the title, and of the other short texts of a declaration.
pub const TEXT_BYTES_MAX: usize = 4 << 10;

/// Number of forms of an action line. A grammar is made of all of them.
pub const ACTIONS_MAX: usize = 64;

/// Fields of a form: as many as a parsed line holds without an allocation.
pub const FIELDS_MAX: usize = 6;

/// Characters that a field of a form may count up to: a grammar counts them one by one.
pub const CLASS_COUNT_MAX: usize = 256;

/// Number of declared constraints: a set of violations has 32 bits, of which `format` and `step`
/// have one each.
pub const CONSTRAINTS_MAX: usize = 30;

/// Violations of one step: the 32 bits without that of `format`.
pub const VIOLATIONS_MAX: usize = 31;

/// Bytes of the name of a constraint, which is part of every verdict.
pub const NAME_BYTES_MAX: usize = 64;

/// Bytes of an action line.
pub const LINE_BYTES_MAX: usize = 4 << 10;

/// Bytes of the input of an instance, which travels with every request.
pub const INPUT_BYTES_MAX: usize = 1 << 20;

/// Bytes of the states of a trajectory, each of which is kept for a pop.
pub const STATES_BYTES_MAX: usize = 256 << 20;

/// Bytes of the states of a trajectory, for a module that a client has uploaded.
pub const UPLOADED_STATES_BYTES_MAX: usize = 64 << 20;

/// Divisor of these bytes: the states that one state's proposals lead to, which are kept until one
/// is taken, may have this part of them.
pub const SUCCESSORS_SHARE: usize = 4;

/// T_max of a start that does not give `steps_max`.
pub const STEPS_MAX_DEFAULT: u64 = 1_000;

/// The largest `steps_max`.
pub const STEPS_MAX: u64 = 1_000_000;

/// One in this many steps is asked twice, to see whether the program gives the same answer; so is
/// each start, and each step that ends a trace.
pub const ASKED_TWICE_EVERY: u64 = 16;

/// Bytes of a WebAssembly module, which is compiled when its task is first asked for.
pub const MODULE_BYTES_MAX: usize = 16 << 20;

/// Bytes of an uploaded module's declaration, which is kept as long as the process.
pub const UPLOADED_DECLARATION_BYTES_MAX: usize = 64 << 10;

/// Bytes of all declarations that a process has seen: it keeps them, because runs refer to them.
pub const DECLARATIONS_BYTES_MAX: usize = 256 << 20;

/// Number of uploaded modules that stay compiled while they are not in use.
pub const COMPILED_KEPT_MAX: usize = 32;
/// Bytes of all these modules together, before compilation.
pub const COMPILED_KEPT_BYTES_MAX: usize = 64 << 20;
