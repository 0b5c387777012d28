//! The weights that a training keeps, ready for decoding.

use super::layout::Layout;
use super::model_view::ModelView;
use super::network::ModelWeights;

/// Weights to decode with.
pub enum Kept<'a> {
    /// The training's own.
    Present(&'a dyn ModelWeights),
    Prepared(Box<dyn ModelWeights>),
}

impl Kept<'_> {
    pub fn view(&self, layout: &Layout) -> ModelView<'_> {
        match self {
            Self::Present(weights) => ModelView::new(layout, *weights),
            Self::Prepared(weights) => ModelView::new(layout, &**weights),
        }
    }
}
