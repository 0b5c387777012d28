//! Register Machine: counts register and line up or down, digit by digit.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::automata::register_machine::{
    Instance, Instruction, RegisterMachine, State,
};

use crate::Lesson;
use crate::numbers::{decremented, incremented, low_first};

pub struct RegisterMachineLesson;

/// Width of the values of registers.
const VALUE: usize = 4;
/// Width of the numbers of lines.
const LINE: usize = 2;

impl Lesson for RegisterMachineLesson {
    type Task = RegisterMachine;

    fn view(instance: &Instance, state: &State) -> String {
        let value = |register: usize| {
            let value =
                state.registers.get(register).and_then(|value| usize::try_from(*value).ok());
            value.map_or_else(|| "-".to_owned(), |value| low_first(value, VALUE))
        };
        let line = low_first(state.pc, LINE);

        if state.halted {
            return "halted".to_owned();
        }

        match instance.program.get(state.pc).copied() {
            Some(Instruction::Inc(register)) => {
                format!("inc r{register} {} {line}", value(register))
            }
            Some(Instruction::Dec(register)) => {
                format!("dec r{register} {} {line}", value(register))
            }
            Some(Instruction::Jz(register, address)) => {
                format!("jz {} {line} else {address}", value(register))
            }
            Some(Instruction::Jmp(address)) => format!("jmp {address}"),
            Some(Instruction::Halt) => "halt".to_owned(),
            None => "-".to_owned(),
        }
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        RegisterMachine::reference(instance, state)?;
        let value = |register: usize| usize::try_from(state.registers[register]).ok();
        let next = incremented(state.pc, LINE);

        Some(match instance.program[state.pc] {
            Instruction::Inc(register) => {
                format!("{}, {next}", incremented(value(register)?, VALUE))
            }
            Instruction::Dec(register) if value(register)? == 0 => format!("zero, {next}"),
            Instruction::Dec(register) => {
                format!("{}, {next}", decremented(value(register)?, VALUE))
            }
            Instruction::Jz(register, _) if value(register)? == 0 => "zero".to_owned(),
            Instruction::Jz(..) => format!("more, {next}"),
            Instruction::Jmp(_) | Instruction::Halt => String::new(),
        })
    }
}
