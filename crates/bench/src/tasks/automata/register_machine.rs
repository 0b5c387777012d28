//! Register Machine: run a program of increments, decrements and jumps until it halts.
//!
//! A step is one executed instruction; its line names the register's new value, if one changes, and
//! the next line.

use std::fmt;

use crate::tasks::pages::register_machine as page;
use crate::tasks::pattern::{self, NUMBER_LIMIT};
use crate::tasks::prelude::*;

/// The task `register-machine`.
pub struct RegisterMachine;

const REGISTERS_MAX: usize = 64;
const VALUE_MAX: u64 = 100_000;
const INSTRUCTIONS_MAX: usize = 500;

/// An instruction; registers and addresses are counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Instruction {
    /// Add 1 to this register.
    Inc(usize),
    /// Subtract 1 from this register; 0 stays 0.
    Dec(usize),
    /// Jump if the register is 0.
    Jz(usize, usize),
    /// Jump to this address.
    Jmp(usize),
    /// Stop.
    Halt,
}

impl Instruction {
    fn address(self) -> Option<usize> {
        match self {
            Self::Jz(_, address) | Self::Jmp(address) => Some(address),
            _ => None,
        }
    }

    fn register(self) -> Option<usize> {
        match self {
            Self::Inc(register) | Self::Dec(register) | Self::Jz(register, _) => Some(register),
            _ => None,
        }
    }
}

impl fmt::Display for Instruction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inc(register) => write!(f, "inc {register}"),
            Self::Dec(register) => write!(f, "dec {register}"),
            Self::Jz(register, address) => write!(f, "jz {register} {address}"),
            Self::Jmp(address) => write!(f, "jmp {address}"),
            Self::Halt => f.write_str("halt"),
        }
    }
}

impl TryFrom<String> for Instruction {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let read = || {
            let (form, fields) = pattern::parse(
                &["inc <nat>", "dec <nat>", "jz <nat> <nat>", "jmp <nat>", "halt"],
                &text,
            )?;
            Some(match form {
                0 => Self::Inc(fields.nat(0)?),
                1 => Self::Dec(fields.nat(0)?),
                2 => Self::Jz(fields.nat(0)?, fields.nat(1)?),
                3 => Self::Jmp(fields.nat(0)?),
                _ => Self::Halt,
            })
        };
        read().ok_or_else(|| {
            format!(
                "{text:?} is not an instruction, such as \"inc 0\", \"dec 0\", \"jz 0 5\", \
                 \"jmp 0\", \"halt\""
            )
        })
    }
}

impl From<Instruction> for String {
    fn from(instruction: Instruction) -> Self {
        instruction.to_string()
    }
}

/// An input of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// Values of the registers at the start.
    pub registers: Vec<u64>,
    /// The program; it starts at its first instruction.
    pub program: Vec<Instruction>,
}

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Address of the next instruction.
    pub pc: usize,
    /// Values of the registers.
    pub registers: Vec<u64>,
    /// Number of `inc` executed.
    pub incs: u64,
    /// Number of `dec` executed, those of a register at 0 included.
    pub decs: u64,
    /// Number of jumps taken: each `jmp`, and each `jz` whose register was 0.
    pub jumps: u64,
    /// True once `halt` has been executed.
    pub halted: bool,
    /// The last action; none at the start.
    pub last: Last<Action>,
}

line_actions! {
    /// An action line; the page explains its forms.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Action {
        /// An increment or decrement.
        Set {
            /// The register changed, from 0.
            register: usize,
            /// Its new value.
            value: u64,
            /// Address of the next instruction.
            pc: usize,
        } = "r<nat>=<nat> <nat>", "r{register}={value} {pc}";
        /// A jump, taken or not, after which this is the next address.
        Go(pc: usize) = "- <nat>", "- {pc}";
        /// Executes `halt`.
        Halt = "halt", "halt";
    }
}

impl Instance {
    /// What the instruction at pc does; `None` if its value is too large for a line.
    fn executed(&self, state: &State) -> Option<Action> {
        let next = state.pc + 1;
        match self.program[state.pc] {
            Instruction::Inc(register) => {
                let value = state.registers[register] + 1;
                // A wrong line can bring a register to the largest number that a line can hold.
                (value < NUMBER_LIMIT).then_some(Action::Set { register, value, pc: next })
            }
            Instruction::Dec(register) => Some(Action::Set {
                register,
                value: state.registers[register].saturating_sub(1),
                pc: next,
            }),
            Instruction::Jz(register, address) => {
                Some(Action::Go(if state.registers[register] == 0 { address } else { next }))
            }
            Instruction::Jmp(address) => Some(Action::Go(address)),
            Instruction::Halt => Some(Action::Halt),
        }
    }
}

fn sum(registers: &[u64]) -> i128 {
    registers.iter().map(|value| i128::from(*value)).sum()
}

/// Adds a block of `room` instructions. `free` are the registers that are not the counter of an
/// enclosing loop.
fn draw_block(
    program: &mut Vec<Instruction>,
    mut room: usize,
    depth: usize,
    free: &[usize],
    rng: &mut TaskRng,
) {
    while room > 0 {
        // A loop takes two free registers: one for its counter, another for its body.
        if room >= 5 && depth < 2 && free.len() >= 2 && rng.chance(1, 2) {
            let size = rng.size(5, room.min(15));
            let counter = rng.one_of(free);
            // The body may not change the counter, or the loop might never end.
            let rest: Vec<usize> =
                free.iter().copied().filter(|register| *register != counter).collect();

            let begin = program.len();
            program.push(Instruction::Jz(counter, begin + size));
            program.push(Instruction::Dec(counter));
            draw_block(program, size - 3, depth + 1, &rest, rng);
            program.push(Instruction::Jmp(begin));
            room -= size;
        } else {
            let register = rng.one_of(free);
            program.push(if rng.chance(3, 4) {
                Instruction::Inc(register)
            } else {
                Instruction::Dec(register)
            });
            room -= 1;
        }
    }
}

impl Task for RegisterMachine {
    task_items!(Instance, State, Action, page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Instance {
        let longest = page::size::STEPS.range(difficulty).1.unsigned_abs();
        loop {
            let count = page::size::REGISTERS.draw(difficulty, rng);
            let instructions = page::size::INSTRUCTIONS.draw(difficulty, rng);
            let registers = (0..count).map(|_| rng.below(10)).collect();
            let mut program = Vec::with_capacity(instructions);
            let free: Vec<usize> = (0..count).collect();
            draw_block(&mut program, instructions - 1, 0, &free, rng);
            program.push(Instruction::Halt);

            let instance = Instance { registers, program };
            // Longer runs are rejected anyway: counting stops at the bound.
            let steps = reference_steps::<Self>(&instance, longest);
            if steps.is_some_and(|steps| page::size::STEPS.accepts(difficulty, steps)) {
                return instance;
            }
        }
    }

    fn validate(instance: &Instance) -> Result<(), InvalidInput> {
        let count = instance.registers.len();
        let range = format!("has {count} values; give 1 to {REGISTERS_MAX}");
        InvalidInput::unless((1..=REGISTERS_MAX).contains(&count), "registers", range)?;

        let small = instance.registers.iter().all(|value| *value <= VALUE_MAX);
        InvalidInput::unless(
            small,
            "registers",
            format!("every value must be at most {VALUE_MAX}"),
        )?;

        let lines = instance.program.len();
        let range = format!("has {lines} instructions; give 1 to {INSTRUCTIONS_MAX}");
        InvalidInput::unless((1..=INSTRUCTIONS_MAX).contains(&lines), "program", range)?;

        let exist = instance.program.iter().all(|instruction| {
            instruction.register().is_none_or(|register| register < count)
                && instruction.address().is_none_or(|address| address < lines)
        });
        InvalidInput::unless(
            exist,
            "program",
            format!("must name registers below {count} and lines below {lines}"),
        )?;

        // Line `pc + 1` exists after every other instruction.
        let closed =
            matches!(instance.program.last(), Some(Instruction::Halt | Instruction::Jmp(_)));
        InvalidInput::unless(closed, "program", "must end in halt or jmp")?;

        let longest = Self::steps_max(instance);
        let halts = reference_steps::<Self>(instance, longest).is_some();
        InvalidInput::unless(halts, "program", format!("must halt within {longest} steps"))
    }

    fn start(instance: &Instance) -> State {
        let registers = instance.registers.clone();
        State { pc: 0, registers, incs: 0, decs: 0, jumps: 0, halted: false, last: Last(None) }
    }

    fn check_state(instance: &Instance, state: &State) -> Result<(), InvalidInput> {
        limits::below("pc", [state.pc], instance.program.len())?;
        limits::length("registers", state.registers.len(), instance.registers.len())?;
        limits::sayable("registers", state.registers.iter().copied())
    }

    fn apply(instance: &Instance, state: &mut State, action: &Action) -> Result<(), Illegal> {
        if let Action::Set { pc, .. } | Action::Go(pc) = *action
            && pc >= instance.program.len()
        {
            return Err(Illegal("there is no such line"));
        }

        match (*action, instance.program[state.pc]) {
            (
                Action::Set { register, value, pc },
                instruction @ (Instruction::Inc(_) | Instruction::Dec(_)),
            ) => {
                let place = state
                    .registers
                    .get_mut(register)
                    .ok_or(Illegal("there is no such register"))?;
                *place = value;

                // The value comes from the line, but the program says which count grows.
                if matches!(instruction, Instruction::Inc(_)) {
                    state.incs += 1;
                } else {
                    state.decs += 1;
                }
                state.pc = pc;
            }
            (Action::Go(pc), Instruction::Jz(register, _)) => {
                // Counted by the register, wherever the line claims to go.
                state.jumps += u64::from(state.registers[register] == 0);
                state.pc = pc;
            }
            (Action::Go(pc), Instruction::Jmp(_)) => {
                state.jumps += 1;
                state.pc = pc;
            }
            (Action::Halt, Instruction::Halt) if !state.halted => state.halted = true,
            _ => return Err(Illegal("the instruction at pc does something else")),
        }

        Ok(())
    }

    fn reference(instance: &Instance, state: &State) -> Option<Action> {
        if state.halted { None } else { instance.executed(state) }
    }

    fn violations(
        instance: &Instance,
        before: &State,
        action: &Action,
        after: &State,
        found: &mut Violations,
    ) {
        let mut changes =
            before.registers.iter().zip(&after.registers).filter(|(old, new)| old != new);
        let small = changes.next().is_none_or(|(old, new)| old.abs_diff(*new) == 1)
            && changes.next().is_none();
        found.require(page::SMALL_CHANGE, small);

        let natural = after
            .registers
            .iter()
            .zip(&instance.registers)
            .all(|(now, start)| *now <= start + after.incs);
        found.require(page::NATURAL, natural);

        let gained = sum(&after.registers) - sum(&instance.registers);
        let (incs, decs) = (i128::from(after.incs), i128::from(after.decs));
        found.require(page::BALANCE, (incs - decs..=incs).contains(&gained));

        let control = if *action == Action::Halt {
            after.pc == before.pc
        } else {
            let named = || {
                instance.program.iter().any(|instruction| instruction.address() == Some(after.pc))
            };
            after.pc == before.pc + 1 || named()
        };
        found.require(page::CONTROL, control);

        // What makes a trace sound: every instruction does one thing in a state, `apply` does the
        // counting, and the trace ends only at a halt.
        found.require(page::EXECUTED, instance.executed(before) == Some(*action));

        if Self::ended(instance, after) {
            let at_halt = instance.program[after.pc] == Instruction::Halt;
            found.require(page::HALTED, at_halt && after.last.0 == Some(Action::Halt));
        }
    }

    fn ended(_: &Instance, state: &State) -> bool {
        state.halted
    }

    fn steps_max(instance: &Instance) -> u64 {
        // The size of a program does not bound its steps. Inputs must halt within this bound, which
        // exceeds the steps that the benchmark draws at every level: for 36 lines it is 20,736 or
        // more, and runs have at most 20,000 steps.
        let lines = instance.program.len() as u64;
        let values: u64 = instance.registers.iter().sum();
        (lines * (16 * lines + values)).min(1 << 20)
    }

    fn answer(_: &Instance, state: &State) -> Value {
        json!({
            "registers": state.registers,
            "halted_at": state.pc,
            "incs": state.incs,
            "decs": state.decs,
            "jumps": state.jumps,
        })
    }
}
