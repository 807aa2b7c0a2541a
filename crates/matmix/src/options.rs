//! Options once: every choice among a few has one name, which the program, Python, files and checkpoints use alike.

/// An enumeration whose variants have names: `Display`, serde and the list of all follow from them.
macro_rules! named {
    (
        $(#[$about:meta])*
        pub enum $type:ident { $( $(#[$doc:meta])* $variant:ident = $name:literal, )+ }
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
        #[non_exhaustive]
        pub enum $type { $( $(#[$doc])* #[serde(rename = $name)] $variant, )+ }

        impl $type {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// The name as it is typed and written.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }
        }

        impl From<$type> for &'static str {
            fn from(choice: $type) -> Self {
                choice.name()
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

/// Such an enumeration with a default, and `FromStr` by these names alone.
macro_rules! choices {
    ($(#[$about:meta])* pub enum $type:ident { $($variants:tt)+ }) => {
        $crate::options::named! { $(#[$about])* #[derive(Default)] pub enum $type { $($variants)+ } }

        impl std::str::FromStr for $type {
            type Err = $crate::Error;

            fn from_str(name: &str) -> $crate::Result<Self> {
                Self::ALL.iter().copied().find(|choice| choice.name() == name).ok_or_else(|| {
                    let expected = Self::ALL.iter().map(|choice| choice.name()).collect();
                    $crate::Error::Choice { what: stringify!($type), name: name.into(), expected }
                })
            }
        }
    };
}

/// Serde for what has data beside its name: as the text that `Display` writes and `FromStr` reads.
macro_rules! as_text {
    ($type:ty) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
                to.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
                let text = <String as serde::Deserialize>::deserialize(from)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

pub(crate) use {as_text, choices, named};
