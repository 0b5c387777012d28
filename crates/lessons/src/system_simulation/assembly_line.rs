//! Assembly Line: checks whether the stage reaches the unit, then writes the types after adding,
//! spreading and repairing.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::system_simulation::assembly_line::{AssemblyLine, Instance, State, Types};

use crate::Lesson;
use crate::numbers::compared;

pub struct AssemblyLineLesson;

impl Lesson for AssemblyLineLesson {
    type Task = AssemblyLine;

    fn view(instance: &Instance, state: &State) -> String {
        let Some(stage) = instance.stages.get(state.stage).filter(|_| state.unit < instance.units)
        else {
            return "-".to_owned();
        };

        let or_none = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
        let adds = match stage.adds.as_str() {
            "" => "-".to_owned(),
            adds => format!("{adds} {:02} {:02} {:02}", stage.from, state.unit, stage.to),
        };

        let (repairs, scraps) = (or_none(&stage.repairs), or_none(&stage.scraps));
        let has = slots(state.defects.types());

        format!(
            "{has} adds {adds} spreads {} repairs {repairs} scraps {scraps}",
            or_none(&stage.spreads)
        )
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        AssemblyLine::reference(instance, state)?;
        let stage = instance.stages.get(state.stage)?;
        let mut types = state.defects.types();
        let mut line = String::new();

        if !stage.adds.is_empty() {
            line += &compared(stage.from, state.unit, 2);
            if stage.from <= state.unit {
                line += &format!(" {}", compared(state.unit, stage.to, 2));
            }
            line += if stage.reaches(state.unit) { " in " } else { " out " };
            types = Types(types.0 | if stage.reaches(state.unit) { set(&stage.adds) } else { 0 });
        }

        line += &slots(types);
        // The first letter of the list is the type that spreads to the others.
        let spreads = stage.spreads.get(..1).is_some_and(|from| types.0 & set(from) != 0);
        types = Types(types.0 | if spreads { set(&stage.spreads) } else { 0 });
        line += &format!(" {}", slots(types));

        types = Types(types.0 & !set(&stage.repairs));
        Some(format!("{line} {}", slots(types)))
    }
}

/// The bits of the types that a text names.
fn set(text: &str) -> u8 {
    text.bytes().fold(0, |set, letter| set | 1 << (letter - b'A'))
}

/// Each type in its slot, a dot where it is absent: `A.C.`.
fn slots(types: Types) -> String {
    "ABCD"
        .chars()
        .enumerate()
        .map(|(defect, letter)| if types.contains(defect) { letter } else { '.' })
        .collect()
}
