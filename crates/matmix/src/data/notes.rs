//! What was decided for whoever opened the data, so that nobody has to guess it.

use std::fmt;

use crate::error::sides;

/// A choice that was made while data was opened. The library prints none of them: they are in
/// [`DataSet::notes`](super::DataSet::notes).
///
/// ```
/// use matmix::data::{Note, OpenOptions, open};
///
/// let folder = tempfile::tempdir().unwrap();
/// let path = folder.path().join("x.csv");
/// std::fs::write(&path, "width,height\n1,2\n3,4\n").unwrap();
/// let data = open(path.to_str().unwrap(), &OpenOptions::default())?;
/// assert_eq!(data.notes, [Note::Heading { line: "width,height".into() }]);
/// assert!(data.notes[0].to_string().contains("is taken for the names of the columns"));
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Note {
    /// Images in colour are read as shades of grey.
    Grey {
        /// How many of them.
        images: usize,
        /// The first one.
        first: String,
    },
    /// The transparency of images is not read.
    Transparency {
        /// How many have any.
        images: usize,
        /// The first one.
        first: String,
    },
    /// Transparent places were to be missing cells, but no image has any transparency.
    Opaque,
    /// Images were turned or mirrored as the camera noted.
    Upright {
        /// How many of them.
        images: usize,
        /// The first one.
        first: String,
    },
    /// Images of different depth are in one set, each with the values it has.
    Depths {
        /// How many have 8 bits per value.
        eight: usize,
        /// The first one with 8 bits.
        first_eight: String,
        /// How many have more.
        more: usize,
        /// The first one with more.
        first_more: String,
    },
    /// Values that single precision cannot hold exactly were rounded to it.
    Rounded {
        /// How many images.
        images: usize,
        /// The first one.
        first: String,
    },
    /// Pages that a TIFF file calls thumbnails or masks of others are not samples.
    Pages {
        /// How many of them.
        pages: usize,
        /// The first file with some.
        first: String,
    },
    /// Links to folders that are read anyway, or were already, were not followed.
    Links {
        /// How many of them.
        links: usize,
        /// The first one.
        first: String,
    },
    /// One array of several was taken for the samples.
    Array {
        /// Its name.
        chosen: String,
        /// The names of the others that could have been.
        others: Vec<String>,
    },
    /// Labels were found, and nobody gave others.
    Labels {
        /// Where: an array, a file, the names of the sub-folders.
        from: String,
    },
    /// Labels that are there but not one per sample were not taken.
    OtherLabels {
        /// Where: an array, a file.
        from: String,
        /// The number of labels.
        labels: usize,
        /// The number of samples.
        samples: usize,
    },
    /// The samples were taken along another axis than usual, because the number of labels or the shape said so.
    Axis {
        /// The axis, counted from 0.
        axis: usize,
        /// The axes of the array.
        shape: Vec<usize>,
    },
    /// Vectors were taken for square images.
    Square {
        /// The shape of a sample.
        shape: Vec<usize>,
    },
    /// The first line of a table was taken for the names of its columns.
    Heading {
        /// The beginning of it.
        line: String,
    },
    /// The first column of a table has no name in the heading: an index, not data.
    Index,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counted = |images: &usize, first: &String, one: &str, more: &str| match images {
            1 => format!("the image {first} {one}"),
            _ => format!("{images} images, {first} for one, {more}"),
        };
        match self {
            Note::Grey { images, first } => f.write_str(&counted(
                images,
                first,
                "is in colour and is read as shades of grey",
                "are in colour and are read as shades of grey",
            )),
            Note::Transparency { images, first } => f.write_str(&counted(
                images,
                first,
                "has transparent places, which are read like any other",
                "have transparent places, which are read like any other",
            )),
            Note::Opaque => f.write_str("no image has an alpha channel, so no cell of them is missing"),
            Note::Upright { images, first } => f.write_str(&counted(
                images,
                first,
                "was turned upright, as its camera noted",
                "were turned upright, as their cameras noted",
            )),
            Note::Depths { eight, first_eight, more, first_more } => write!(
                f,
                "{eight} of the images have 8 bits ({first_eight}) and {more} have more ({first_more}); the values of each \
                 are taken as they are"
            ),
            Note::Rounded { images, first } => f.write_str(&counted(
                images,
                first,
                "is rounded to single precision",
                "are rounded to single precision",
            )),
            Note::Pages { pages, first } => {
                write!(f, "{pages} pages that are thumbnails or masks of others were left out ({first})")
            }
            Note::Links { links, first } => {
                write!(f, "{links} links to folders that are read anyway were not followed ({first})")
            }
            Note::Array { chosen, others } => {
                let others: Vec<String> = others.iter().map(|name| format!("`{name}`")).collect();
                write!(f, "the samples are `{chosen}`; there are also {}", others.join(", "))
            }
            Note::Labels { from } => write!(f, "the labels are {from}"),
            Note::OtherLabels { from, labels, samples } => {
                write!(f, "{from} has {labels} labels for {samples} samples and was not taken")
            }
            Note::Axis { axis, shape } => {
                write!(f, "the samples are along axis {axis} of an array of {}", sides(shape))
            }
            Note::Square { shape } => write!(f, "the samples are taken for images of {}", sides(shape)),
            Note::Heading { line } => {
                write!(f, "the first line (`{line}`) is taken for the names of the columns")
            }
            Note::Index => f.write_str("the first column has no name; it is read as an index, not as data"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_image_and_several_are_told_in_their_number() {
        let note = |images| Note::Grey { images, first: "a.png".into() }.to_string();
        assert_eq!(note(1), "the image a.png is in colour and is read as shades of grey");
        assert_eq!(note(3), "3 images, a.png for one, are in colour and are read as shades of grey");
    }
}
