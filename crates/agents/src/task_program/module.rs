//! A task that is a WebAssembly module: the same lines as a program's, in a sandbox. A module
//! imports nothing, exports its `memory`, `alloc(length) -> address` and
//! `answer(address, length) -> address << 32 | length`, and is instantiated anew for each request:
//! nothing is left of earlier requests, so that the same question gets the same answer.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use wasmi::{
    Config, EnforcedLimits, Engine, Error, Linker, Module, Store, StoreLimits, StoreLimitsBuilder,
    TrapCode,
};

use super::limits::MODULE_BYTES_MAX;
use super::workers::{Job, Workers};
use crate::{AgentError, Failure};

/// What a module may use for one answer.
#[derive(Clone, Copy, Debug)]
pub struct ModuleLimits {
    /// Maximum fuel, about one unit per instruction.
    pub fuel_max: u64,
    /// Maximum bytes of its memory.
    pub memory_bytes_max: u64,
    /// Maximum bytes of its answer.
    pub line_bytes_max: u64,
    /// True if a client uploaded it: its structure is then limited too, so that compiling it takes
    /// no more time and memory than its size suggests.
    pub is_foreign: bool,
}

/// Maximum elements of a module's tables, which hold its functions and use memory of this process.
const TABLE_ELEMENTS_MAX: usize = 100_000;

/// Version of the protocol.
const VERSION: u32 = 1;

/// Why there is no answer.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    pub failure: Failure,
    pub reason: String,
}

impl Fault {
    pub fn new(failure: Failure, reason: impl Into<String>) -> Self {
        Self { failure, reason: reason.into() }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Hello {
    prime: u32,
    task: Value,
}

/// A module that answers requests on threads that it may share with others.
pub(super) struct ModulePool {
    agent: Arc<str>,
    compiled: Arc<Compiled>,
    workers: Arc<Workers>,
    /// Its number among the modules of these workers.
    number: u64,
    declared: Value,
}

/// A compiled module with its limits.
pub(super) struct Compiled {
    engine: Engine,
    module: Module,
    limits: ModuleLimits,
}

fn invalid(error: &Error) -> Fault {
    // Some errors have several lines.
    let reason = error.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
    Fault::new(Failure::Refused, format!("it is not a usable module: {reason}"))
}

/// What ended a call. The same call would end in the same way: no such fault is transient.
fn ended(error: &Error, limits: &ModuleLimits) -> Fault {
    let reason = match error.as_trap_code() {
        Some(TrapCode::OutOfFuel) => format!(
            "it used up the fuel of an answer ({} units): it loops, or `fuel_max` is too small",
            limits.fuel_max
        ),
        Some(TrapCode::StackOverflow) => "its calls are nested too deep".to_owned(),
        Some(trap) => format!("it trapped: {trap}"),
        None => format!("it failed: {error}"),
    };
    Fault::new(Failure::Unsupported, reason)
}

impl Compiled {
    pub fn new(bytes: &[u8], limits: ModuleLimits) -> Result<Self, Fault> {
        if bytes.len() > MODULE_BYTES_MAX {
            let reason =
                format!("it has {} bytes; a module has at most {MODULE_BYTES_MAX}", bytes.len());
            return Err(Fault::new(Failure::Refused, reason));
        }

        let mut config = Config::default();
        config.consume_fuel(true);
        if limits.is_foreign {
            config.enforced_limits(EnforcedLimits::strict());
        }
        let engine = Engine::new(&config);
        let module = Module::new(&engine, bytes).map_err(|error| invalid(&error))?;
        if let Some(import) = module.imports().next() {
            let name = format!("{}.{}", import.module(), import.name());
            let reason = format!(
                "it imports `{}`; a task's module imports nothing, and exports its `memory`",
                prime_printable::printable_line(&name)
            );
            return Err(Fault::new(Failure::Refused, reason));
        }
        Ok(Self { engine, module, limits })
    }

    /// The answer to a request.
    pub fn answer(&self, request: &[u8]) -> Result<Vec<u8>, Fault> {
        let limits = &self.limits;
        let memory_max = usize::try_from(limits.memory_bytes_max).unwrap_or(usize::MAX);
        let held: StoreLimits = StoreLimitsBuilder::new()
            .memory_size(memory_max)
            .table_elements(TABLE_ELEMENTS_MAX)
            .instances(1)
            .memories(1)
            .tables(16)
            .build();
        let mut store = Store::new(&self.engine, held);
        store.limiter(|held| held);

        let failed = |error: &Error| ended(error, limits);
        store.set_fuel(limits.fuel_max).map_err(|error| failed(&error))?;
        let linker = Linker::new(&self.engine);
        let instance = linker
            .instantiate_and_start(&mut store, &self.module)
            .map_err(|error| failed(&error))?;

        let missing = |what: &str| {
            Fault::new(Failure::Refused, format!("it exports no {what} of the right type"))
        };
        let memory =
            instance.get_memory(&store, "memory").ok_or_else(|| missing("memory `memory`"))?;
        let alloc = instance
            .get_typed_func::<u32, u32>(&store, "alloc")
            .map_err(|_| missing("function `alloc(i32) -> i32`"))?;
        let answer = instance
            .get_typed_func::<(u32, u32), u64>(&store, "answer")
            .map_err(|_| missing("function `answer(i32, i32) -> i64`"))?;

        let length = u32::try_from(request.len())
            .map_err(|_| Fault::new(Failure::TooLong, "the request is longer than 4 GiB"))?;
        let at = alloc.call(&mut store, length).map_err(|error| failed(&error))?;
        let outside =
            || Fault::new(Failure::Malformed, "it gave an address that is outside of its memory");
        memory.write(&mut store, at as usize, request).map_err(|_| outside())?;
        let packed = answer.call(&mut store, (at, length)).map_err(|error| failed(&error))?;

        let (at, length) = (packed >> 32, packed & u64::from(u32::MAX));
        if length > limits.line_bytes_max {
            let reason = format!(
                "its answer has {length} bytes; `line_bytes_max` is {}",
                limits.line_bytes_max
            );
            return Err(Fault::new(Failure::TooLong, reason));
        }
        let end = usize::try_from(at + length).unwrap_or(usize::MAX);
        let start = usize::try_from(at).unwrap_or(usize::MAX);
        let written = memory.data(&store).get(start..end);
        let written = written.ok_or_else(outside)?;
        Ok(written.trim_ascii_end().to_vec())
    }

    /// What it declares of its task.
    pub fn declared(&self, name: &str) -> Result<Value, Fault> {
        let hello = json!({"prime": VERSION, "role": "task", "name": name}).to_string();
        let line = self.answer(hello.as_bytes())?;
        let Hello { prime, task } = serde_json::from_slice(&line).map_err(|error| {
            let reason = format!("it answered the handshake with something else: {error}");
            Fault::new(Failure::Malformed, reason)
        })?;
        if prime == VERSION {
            Ok(task)
        } else {
            let reason = format!("it speaks version {prime} of the protocol; {VERSION} is needed");
            Err(Fault::new(Failure::Refused, reason))
        }
    }
}

impl ModulePool {
    /// Compiles a module, and asks it for its declaration. Blocks for as long as the fuel of an
    /// answer lasts.
    ///
    /// # Errors
    /// The bytes are not a module, or it imports something, or does not declare a task.
    pub fn start(
        name: &str,
        bytes: &[u8],
        limits: ModuleLimits,
        workers: Arc<Workers>,
    ) -> Result<Self, AgentError> {
        let agent: Arc<str> = format!("task `{name}`").into();
        let of = |fault: Fault| AgentError::new(&*agent, fault.failure, fault.reason);

        let compiled = Compiled::new(bytes, limits).map_err(of)?;
        let declared = compiled.declared(name).map_err(of)?;
        let number = workers.next_number();
        Ok(Self { agent, compiled: Arc::new(compiled), workers, number, declared })
    }

    /// The answer to a request, on behalf of this owner.
    pub async fn ask(&self, owner: &Arc<str>, request: Vec<u8>) -> Result<Vec<u8>, AgentError> {
        let compiled = Arc::clone(&self.compiled);
        let (job, answered) = Job::new(move || compiled.answer(&request));
        self.workers.add(owner, self.number, job);
        match answered.await {
            // The same call would end in the same way.
            Ok(answer) => answer.map_err(|fault| AgentError {
                is_transient: false,
                ..self.error(fault.failure, fault.reason)
            }),
            Err(_) => Err(self.error(Failure::Panicked, "the thread that computes it has ended")),
        }
    }

    pub fn declared(&self) -> &Value {
        &self.declared
    }

    /// True if a client has uploaded it.
    pub fn is_foreign(&self) -> bool {
        self.compiled.limits.is_foreign
    }

    pub fn error(&self, failure: Failure, reason: impl Into<String>) -> AgentError {
        AgentError::new(&*self.agent, failure, reason)
    }
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;

    use super::*;

    const LIMITS: ModuleLimits = ModuleLimits {
        fuel_max: 1_000_000,
        memory_bytes_max: 1 << 20,
        line_bytes_max: 1_000,
        is_foreign: true,
    };

    const HELLO: &str = r#"{"prime":1,"task":{"name":"m","statement":"s"}}"#;

    /// A module that answers the handshake, and everything else with `body`, which leaves an `i64`.
    fn module(body: &str, more: &str) -> Vec<u8> {
        let data = HELLO.replace('"', "\\22");
        let text = format!(
            r#"(module
                (memory (export "memory") 1)
                (global $count (mut i64) (i64.const 0))
                (data (i32.const 0) "{data}")
                {more}
                (func (export "alloc") (param i32) (result i32) (i32.const 1024))
                (func (export "answer") (param $at i32) (param $len i32) (result i64)
                    (if (i32.eq (i32.load8_u offset=2 (local.get $at)) (i32.const 112))
                        (then (return (i64.const {}))))
                    {body}))"#,
            HELLO.len()
        );
        wat::parse_str(text).expect("WebAssembly text")
    }

    fn start(bytes: &[u8]) -> Result<ModulePool, AgentError> {
        ModulePool::start("m", bytes, LIMITS, Arc::new(Workers::start("m", 1, 1)))
    }

    /// The answer of such a module to a request.
    fn answer(body: &str, more: &str) -> Result<Vec<u8>, AgentError> {
        let pool = start(&module(body, more)).expect("a module");
        assert_eq!(pool.declared()["statement"], "s");
        block_on(pool.ask(&"".into(), br#"{"id":1}"#.to_vec()))
    }

    fn reason(result: Result<Vec<u8>, AgentError>) -> String {
        result.expect_err("no answer").to_string()
    }

    #[test]
    fn a_module_answers_and_nothing_is_left_of_a_request() {
        // The request itself, from where it was written.
        let echo = "(i64.or (i64.shl (i64.extend_i32_u (local.get $at)) (i64.const 32))
                            (i64.extend_i32_u (local.get $len)))";
        assert_eq!(answer(echo, "").expect("an answer"), br#"{"id":1}"#);

        // Counts its calls, and answers with as many bytes.
        let counts = "(global.set $count (i64.add (global.get $count) (i64.const 1)))
                      (global.get $count)";
        let pool = start(&module(counts, "")).expect("a module");
        for _ in 0..3 {
            assert_eq!(
                block_on(pool.ask(&"".into(), b"{\"i\"}".to_vec())).expect("an answer"),
                b"{"
            );
        }
    }

    #[test]
    fn a_module_that_loops_traps_or_takes_memory_fails_its_turn_alone() {
        let looped = reason(answer("(loop $l (br $l)) (i64.const 0)", ""));
        assert!(looped.contains("it used up the fuel of an answer (1000000 units)"), "{looped}");
        let trapped = reason(answer("unreachable", ""));
        assert!(trapped.contains("it trapped"), "{trapped}");
        // Each of these would overflow the stack, if an instruction were a call.
        for grow in ["memory.grow (i32.const 0)", "memory.grow (i32.const 1)"] {
            let grown =
                reason(answer(&format!("(loop $l (drop ({grow})) (br $l)) (i64.const 0)"), ""));
            assert!(grown.contains("fuel"), "{grown}");
        }
        let table =
            "(loop $l (drop (table.grow (ref.null func) (i32.const 1))) (br $l)) (i64.const 0)";
        let grown = reason(answer(table, "(table 1 funcref)"));
        assert!(grown.contains("fuel"), "{grown}");
        let nested = reason(answer("(call $f) (i64.const 0)", "(func $f (call $f))"));
        assert!(nested.contains("too deep") || nested.contains("fuel"), "{nested}");

        // 1 MiB is the most: growing by 16 pages more is refused (−1), which it sees.
        let grown = "(drop (i32.const 0))
            (if (i32.ne (memory.grow (i32.const 16)) (i32.const -1)) (then unreachable))
            (i64.const 1)";
        assert_eq!(answer(grown, "").expect("an answer"), b"{");

        let long = reason(answer("(i64.const 1001)", ""));
        assert!(long.contains("its answer has 1001 bytes"), "{long}");
        // The last byte of its memory is at 65535.
        let outside = reason(answer("(i64.const 281470681743370)", ""));
        assert!(outside.contains("outside of its memory"), "{outside}");
    }

    #[test]
    fn what_is_no_module_of_a_task_is_refused_with_the_reason() {
        let refused = |bytes: &[u8]| start(bytes).err().expect("refused").to_string();
        let wat = |text: &str| wat::parse_str(text).expect("WebAssembly text");

        assert!(refused(b"no module").contains("it is not a usable module"));
        assert!(refused(&vec![0; MODULE_BYTES_MAX + 1]).contains("a module has at most"));
        let imports = wat(r#"(module (import "env" "clock" (func)))"#);
        assert!(refused(&imports).contains("it imports `env.clock`"));
        assert!(refused(&wat("(module)")).contains("it exports no memory"));
        let memory = r#"(module (memory (export "memory") 1))"#;
        assert!(refused(&wat(memory)).contains("no function `alloc"));
        let wrong = r#"(module (memory (export "memory") 1)
            (func (export "alloc") (param i32) (result i32) (i32.const 0))
            (func (export "answer") (param i32) (result i64) (i64.const 0)))"#;
        assert!(refused(&wat(wrong)).contains("no function `answer"));
        let silent = wrong.replace("(param i32) (result i64)", "(param i32 i32) (result i64)");
        assert!(refused(&wat(&silent)).contains("it answered the handshake with something else"));
        let large = wat(r#"(module (memory (export "memory") 17))"#);
        assert!(start(&large).is_err(), "more memory than it may have");
        let endless =
            wat(r#"(module (memory (export "memory") 1) (func $s (loop $l (br $l))) (start $s))"#);
        assert!(refused(&endless).contains("fuel"));
    }
}
