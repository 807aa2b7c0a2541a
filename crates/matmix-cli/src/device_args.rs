//! Where passes are computed, for the commands that compute.

use matmix::{Backend, Device, Samples};

use crate::error::hinted;
use crate::fit_args::choice;

/// The option itself.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct DeviceArgs {
    /// Where passes are computed: the processor, an NVIDIA GPU, or a GPU where there is one and the work is worth the upload.
    #[arg(long, value_parser = choice(Device::ALL), default_value_t, value_name = "DEVICE", help_heading = "Compute")]
    pub(crate) device: Device,
}

impl DeviceArgs {
    /// What computes passes over these samples.
    pub(crate) fn backend(
        &self,
        samples: &Samples<'_>,
        components: usize,
    ) -> anyhow::Result<Box<dyn Backend>> {
        self.device.backend(samples, components).map_err(|error| {
            hinted(
                error.to_string(),
                "`matmix info --devices` tells what is there; --device cpu needs nothing",
            )
        })
    }
}
