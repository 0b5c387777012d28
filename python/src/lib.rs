//! The native half of the Python package `prime_bench`: tasks, step environments and the judge,
//! without I/O. `prime_bench/` has the rest: data classes, data sets, adapters. No panic and no
//! foreign type crosses into Python.

mod dataset;
mod env;
mod episode;
mod errors;
mod instance;
mod judging;
mod parallel;
mod recent;
mod step_rewards;
mod tasks;
mod values;
mod vector;

use pyo3::prelude::*;

/// The native half of prime_bench.
#[pymodule(gil_used = false)]
mod _native {
    use pyo3::prelude::*;
    use pyo3::types::PyTuple;

    #[pymodule_export]
    use crate::dataset::{Source, instance, scores};
    #[pymodule_export]
    use crate::env::{StepEnv, restore_env};
    #[pymodule_export]
    use crate::instance::{Instance, restore_instance};
    #[pymodule_export]
    use crate::judging::{composite_reward, judge, judge_many};
    #[pymodule_export]
    use crate::step_rewards::Rewards;
    #[pymodule_export]
    use crate::tasks::{grammar, page, phases, slugs};
    #[pymodule_export]
    use crate::vector::{VectorStepEnv, restore_vector_env};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("EpisodeOver", module.py().get_type::<crate::errors::EpisodeOver>())?;
        let words = prime_protocol::Assurance::ALL.map(prime_protocol::Assurance::name);
        module.add("ASSURANCES", PyTuple::new(module.py(), words)?)?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
