//! Which class each component of a mixture belongs to, where labels of samples were known when it was fitted.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// The classes of a mixture: their names, and the class of every component.
///
/// A sample whose class is known is a sample of the components of that class and of no others, so that
///
/// ```text
/// p(X, c) = Σ_{k in c} π_k p(X|k)        p(c|X) = Σ_{k in c} γ_k
/// ```
///
/// ```
/// use matmix::Classes;
///
/// let classes = Classes::even(vec!["cat".into(), "dog".into()], 2)?;
/// assert_eq!(classes.components(), [0, 0, 1, 1]);
/// assert_eq!(classes.sums(&[0.5, 0.25, 0.125, 0.125]), [0.75, 0.25]);
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Written")]
pub struct Classes {
    names: Vec<String>,
    components: Vec<usize>,
}

/// What was read and has not been checked.
#[derive(Deserialize)]
struct Written {
    names: Vec<String>,
    components: Vec<usize>,
}

impl TryFrom<Written> for Classes {
    type Error = Error;

    fn try_from(written: Written) -> Result<Self> {
        Self::new(written.names, written.components)
    }
}

impl Classes {
    /// Classes of these names; `components` has the class of every component.
    ///
    /// # Errors
    /// If two have the same name, or one has no component.
    pub fn new(names: Vec<String>, components: Vec<usize>) -> Result<Self> {
        let wrong = |problem: String| Err(Error::Model { problem });
        let mut sorted: Vec<&String> = names.iter().collect();
        sorted.sort_unstable();
        if let Some(twice) = sorted.windows(2).find(|two| two[0] == two[1]) {
            return wrong(format!("two of its classes are called {:?}", twice[0]));
        }
        let mut has_one = vec![false; names.len()];
        for &class in &components {
            match has_one.get_mut(class) {
                Some(has_one) => *has_one = true,
                None => return wrong(format!("a component is of class {class} of {}", names.len())),
            }
        }
        if let Some(class) = has_one.iter().position(|has_one| !has_one) {
            return wrong(format!("its class {:?} has no component", names[class]));
        }
        Ok(Self { names, components })
    }

    /// Classes with the same number of components each, those of the first class first.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn even(names: Vec<String>, per_class: usize) -> Result<Self> {
        let components = (0..names.len()).flat_map(|class| std::iter::repeat_n(class, per_class)).collect();
        Self::new(names, components)
    }

    /// Their names.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The class of every component.
    pub fn components(&self) -> &[usize] {
        &self.components
    }

    /// How many classes there are.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Never true: a model has components, and each of them a class.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The sums over the components of each class, row by row: from responsibilities to p(c|X).
    pub fn sums(&self, of_components: &[f64]) -> Vec<f64> {
        let mut sums = vec![0.0; of_components.len() / self.components.len() * self.len()];
        let rows = of_components.chunks_exact(self.components.len());
        for (row, to) in rows.zip(sums.chunks_exact_mut(self.len())) {
            row.iter().zip(&self.components).for_each(|(x, &class)| to[class] += x);
        }
        sums
    }

    /// The same with the components in another order.
    pub(crate) fn permuted(&self, order: &[usize]) -> Self {
        Self { names: self.names.clone(), components: order.iter().map(|&k| self.components[k]).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_without_components_and_equal_names_are_refused() {
        let names = |names: &[&str]| names.iter().map(|name| name.to_string()).collect::<Vec<_>>();
        let says = |result: Result<Classes>, expected: &str| {
            let message = result.unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        };
        says(Classes::new(names(&["a", "b", "a"]), vec![0, 1, 2]), "two of its classes are called \"a\"");
        says(Classes::new(names(&["a", "b"]), vec![0, 0]), "its class \"b\" has no component");
        says(Classes::new(names(&["a"]), vec![0, 1]), "a component is of class 1 of 1");
        let read: std::result::Result<Classes, _> =
            serde_json::from_str(r#"{"names": ["a", "b"], "components": [0]}"#);
        assert!(read.unwrap_err().to_string().contains("has no component"));
    }
}
