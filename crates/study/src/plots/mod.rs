//! Charts as SVG, drawn by plotters; this is the only module that knows the library. The colours
//! are those of a light page, and the legend is in the drawing, so that a file stands alone; the
//! page replaces the colours on a dark screen.

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
