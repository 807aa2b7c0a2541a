//! What errors name where a caller may want to tell one from another: what was tried, what a file should have been, what was counted.

use std::fmt;

/// Names that errors show: a variant and its words, nothing to be parsed.
macro_rules! named {
    ($(#[$about:meta])* pub enum $name:ident { $($(#[$doc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$doc])* $variant,)*
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $(Self::$variant => $text,)*
                })
            }
        }
    };
}

named! {
    /// What was tried with a file.
    ///
    /// ```
    /// use matmix::error::Action;
    /// use matmix::{Error, ModelFile};
    ///
    /// let error = ModelFile::load("nowhere.mm").unwrap_err();
    /// assert!(matches!(error, Error::Io { action: Action::Open, .. }));
    /// assert!(error.to_string().starts_with("nowhere.mm: cannot open: "));
    /// ```
    pub enum Action {
        /// A file.
        Open = "open",
        /// A file that was opened, or a folder.
        Read = "read",
        /// A file, into the memory of the process.
        Map = "map",
        /// A file.
        Write = "write",
        /// A folder.
        Make = "make",
    }
}

named! {
    /// What a file was taken for.
    ///
    /// ```
    /// use matmix::error::FileKind;
    /// use matmix::{Error, ModelFile};
    ///
    /// let error = ModelFile::from_bytes("x.mm", b"no model").unwrap_err();
    /// assert!(matches!(error, Error::Format { format: FileKind::Model, .. }));
    /// assert!(error.to_string().starts_with("x.mm: not a readable model file: "));
    /// ```
    pub enum FileKind {
        /// One array.
        Npy = ".npy file",
        /// An archive of arrays.
        Npz = ".npz file",
        /// The format of MNIST.
        Idx = "IDX file",
        /// MATLAB's.
        Mat = "MATLAB .mat file",
        /// A picture, or several.
        Image = "image",
        /// One label per sample.
        Labels = "label file",
        /// What [`ModelFile`](crate::ModelFile) writes.
        Model = "model file",
        /// What a fit keeps to go on from.
        Checkpoint = "checkpoint",
    }
}

named! {
    /// Of what there is another number than there should be.
    ///
    /// ```
    /// use matmix::error::Counted;
    /// use matmix::{Error, Samples};
    ///
    /// let samples = Samples::from_vec(&[1], vec![1.0, 2.0, 3.0])?;
    /// let error = samples.with_weights(vec![1.0; 2]).unwrap_err();
    /// assert_eq!(error, Error::Count { what: Counted::Weights, expected: 3, found: 2 });
    /// assert_eq!(error.to_string(), "2 sample weights for 3 samples; exactly one per sample is needed");
    /// # Ok::<(), Error>(())
    /// ```
    pub enum Counted {
        /// How much each sample counts.
        Weights = "sample weights",
        /// What each sample is called by.
        Labels = "labels",
        /// The class of each sample, as far as it is known.
        Classes = "classes",
        /// The class of each component.
        ComponentClasses = "classes of components",
        /// Which cells of each sample were observed.
        Masks = "masks",
        /// Names of samples or of classes.
        Names = "names",
        /// A core for each sample.
        Cores = "cores",
    }
}

named! {
    /// An option that makes sense for images only.
    ///
    /// ```
    /// use matmix::Error;
    /// use matmix::data::{OpenOptions, open};
    /// use matmix::error::ForImages;
    ///
    /// let error = open("demo:mnist", &OpenOptions { colour: true, ..OpenOptions::default() }).unwrap_err();
    /// assert!(matches!(error, Error::OnlyImages { option: ForImages::Colour, .. }));
    /// ```
    pub enum ForImages {
        /// [`OpenOptions::colour`](crate::data::OpenOptions::colour).
        Colour = "colour",
        /// [`OpenOptions::resize`](crate::data::OpenOptions::resize).
        Resize = "resize",
        /// [`Unobserved::Alpha`](crate::data::Unobserved::Alpha).
        Alpha = "missing=alpha",
    }
}

/// Why a GPU does not compute.
///
/// ```
/// use matmix::error::NoGpu;
/// use matmix::{Device, Error};
///
/// match Device::gpus() {
///     Ok(gpus) => println!("{} of them", gpus.len()),
///     Err(Error::Device { why: NoGpu::NotBuilt, .. }) => println!("the feature `cuda` is needed"),
///     Err(Error::Device { why: NoGpu::Absent, problem }) => println!("none: {problem}"),
///     Err(other) => println!("{other}"),
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoGpu {
    /// The library was built without the feature `cuda`.
    NotBuilt,
    /// There is no such GPU, or no driver or library for it that works.
    Absent,
    /// The samples are not for it, or not where it can use them.
    Refused,
    /// It failed in the middle of something; it may be tried again.
    Failed,
    /// It failed, and this process cannot use it any longer.
    Lost,
}
