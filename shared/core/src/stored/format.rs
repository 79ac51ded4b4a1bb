//! Reading and writing that persistent formats share which are one versioned object each.

/// Gives a type that has no version of its own the functions that read and write it as an object
/// of this version.
macro_rules! versioned_object {
    ($object:ty, $newest:literal, $name:literal) => {
        impl $object {
            /// Reads an object.
            pub fn parse(bytes: &[u8]) -> Result<Self, $crate::model::FormatError> {
                Self::FORMAT.read(bytes)
            }

            /// Writes the object.
            pub fn render(&self) -> bytes::Bytes {
                Self::FORMAT.render(self)
            }

            const FORMAT: $crate::model::StoredFormat = $crate::model::StoredFormat {
                name: $name,
                newest: $newest,
            };
        }
    };
}

pub(super) use versioned_object;
