//! The number that members of wire formats leave out.

/// Whether a number is zero, as `skip_serializing_if` asks it.
pub(crate) fn is_zero<T: Default + PartialEq>(number: &T) -> bool {
    *number == T::default()
}
