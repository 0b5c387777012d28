//! Charts as SVG, by plotters; the one module that knows the library. Colours are those of a light
//! page, with a legend in the drawing, so that a file stands alone; the page replaces them on a
//! dark one.

mod boxes;
mod canvas;
mod heat_map;
mod histogram;
mod intervals;
mod lines;
mod marker;
mod radar;
mod scatter;

pub use boxes::{BoxChart, BoxGroup};
pub use heat_map::HeatMap;
pub use histogram::Histogram;
pub use intervals::{IntervalChart, IntervalRow, Measured};
pub use lines::{LineChart, LinePoint};
pub use radar::Radar;
pub use scatter::{Point, Scatter};

#[cfg(test)]
mod tests;
