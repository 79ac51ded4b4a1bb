//! An error and its causes in one line.

use std::error::Error;
use std::iter;

/// Most causes of one error that are told. It ends a chain with a loop.
const CAUSES_MAX: usize = 16;

/// The error's text and those of its causes, outermost first. A cause whose text the error above it
/// contains is left out.
pub fn with_causes(error: &(dyn Error + 'static)) -> String {
    let causes = iter::successors(Some(error), |&error| error.source());
    let mut texts: Vec<_> = causes.take(CAUSES_MAX).map(ToString::to_string).collect();
    texts.dedup();
    texts.join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt;

    #[derive(Debug)]
    struct Caused(&'static str, Option<Box<Self>>);

    impl fmt::Display for Caused {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl Error for Caused {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            self.1.as_deref().map(|cause| cause as _)
        }
    }

    fn chain(texts: &[&'static str]) -> Caused {
        let mut texts = texts.iter().rev();
        let last = Caused(texts.next().unwrap(), None);
        texts.fold(last, |cause, text| Caused(text, Some(Box::new(cause))))
    }

    #[test]
    fn causes_follow_the_error_and_none_is_told_twice() {
        let told = |texts: &[&'static str]| with_causes(&chain(texts));
        assert_eq!(told(&["failed"]), "failed");
        assert_eq!(told(&["failed", "sent", "denied"]), "failed: sent: denied");
        assert_eq!(told(&["failed", "denied", "denied"]), "failed: denied");
    }

    #[test]
    fn chain_without_an_end_is_cut() {
        let texts = ["even", "odd"].repeat(CAUSES_MAX);
        let told = with_causes(&chain(&texts));
        assert_eq!(told.split(": ").count(), CAUSES_MAX);
    }
}
