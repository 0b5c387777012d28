//! Passes whose loss the caller defines: it gets the logits, and returns their gradient.

use cudarc::driver::{CudaSlice, DeviceRepr};
use half::bf16;

use crate::device::GpuError;
use crate::network::Network;
use crate::shape::Input;

impl Network {
    /// Calls `slope` with the index of each target and its logits, one per token, which it replaces
    /// by the gradient of the sum of the losses with respect to them. The weights' gradient is
    /// added to the accumulated one.
    ///
    /// # Errors
    /// If the GPU fails.
    ///
    /// # Panics
    /// If the lengths do not add up to the tokens.
    pub fn minimise(
        &mut self,
        input: Input<'_>,
        slope: &mut dyn FnMut(usize, &mut [f32]),
    ) -> Result<(), GpuError> {
        let (batch, mut buffers) = self.run(&input)?;
        let (tokens, stride) = (self.shape.tokens, self.shape.vocabulary());

        let mut logits = self.read(&buffers.logits, batch.targets * stride)?;

        // Padding, of targets and of the vocabulary, has no part in the loss.
        let mut slopes = vec![0; batch.targets * stride];
        let rows = logits
            .chunks_exact_mut(stride)
            .zip(slopes.chunks_exact_mut(stride))
            .take(input.targets.len());

        for (place, (row, to)) in rows.enumerate() {
            slope(place, &mut row[..tokens]);
            to.iter_mut()
                .zip(&row[..tokens])
                .for_each(|(to, slope)| *to = bf16::from_f32(*slope).to_bits());
        }

        self.device.stream.memcpy_htod(&slopes, &mut buffers.slopes.slice_mut(..slopes.len()))?;
        self.backward(&batch, &mut buffers)?;

        // The copy is asynchronous, and reads `slopes` until it is done.

        self.device.stream.synchronize()?;
        self.buffers = Some(buffers);
        Ok(())
    }

    /// Calls `see` with the index of each target and its logits, one per token, which it may
    /// change.
    ///
    /// # Errors
    /// If the GPU fails.
    ///
    /// # Panics
    /// If the lengths do not add up to the tokens.
    pub fn each_logits(
        &mut self,
        input: Input<'_>,
        see: &mut dyn FnMut(usize, &mut [f32]),
    ) -> Result<(), GpuError> {
        let (batch, buffers) = self.run(&input)?;
        let (tokens, stride) = (self.shape.tokens, self.shape.vocabulary());
        let mut logits = self.read(&buffers.logits, batch.targets * stride)?;
        self.buffers = Some(buffers);

        let rows = logits.chunks_exact_mut(stride).take(input.targets.len());
        rows.enumerate().for_each(|(place, row)| see(place, &mut row[..tokens]));
        Ok(())
    }

    /// The normed last hidden state at each target, [targets, d_model].
    ///
    /// # Errors
    /// If the GPU fails.
    ///
    /// # Panics
    /// If the lengths do not add up to the tokens.
    pub fn features(&mut self, input: Input<'_>) -> Result<Vec<f32>, GpuError> {
        let (batch, buffers) = self.run(&input)?;
        let width = self.shape.d_model;
        let states = self.read(&buffers.last_normed, batch.targets * width)?;
        self.buffers = Some(buffers);

        let states = states.into_iter().take(input.targets.len() * width);
        Ok(states.map(|state| bf16::from_bits(state).to_f32()).collect())
    }

    /// The first `count` values.
    fn read<T: DeviceRepr>(&self, from: &CudaSlice<T>, count: usize) -> Result<Vec<T>, GpuError> {
        let values = self.device.stream.clone_dtoh(&from.slice(..count))?;
        self.device.stream.synchronize()?;
        Ok(values)
    }
}
