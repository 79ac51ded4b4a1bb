//! Bounds on what may be released at a time, and counts of what was.

use super::speed::ReleaseAmount;

/// Deliveries and objects that were released together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReleasedCounts {
    /// Deliveries that were sent.
    pub sent: usize,
    /// Objects that some were sent of.
    pub objects: usize,
    /// Objects that are tried again in the next run.
    pub left: usize,
    /// True if the queue did not take something, or not in time.
    pub is_refused: bool,
}

/// Most that may be released.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReleaseQuota {
    /// Most deliveries, and most objects that they are taken of.
    pub max: ReleaseAmount,
    /// Most objects that are read at once.
    pub at_once: usize,
}

impl ReleasedCounts {
    /// Deliveries, and the objects that they were of.
    pub fn amount(&self) -> ReleaseAmount {
        ReleaseAmount {
            deliveries: self.sent,
            objects: self.objects,
        }
    }

    /// Counts more that was released.
    pub fn add_released(&mut self, more: Self) {
        self.sent += more.sent;
        self.objects += more.objects;
        self.left += more.left;
        self.is_refused |= more.is_refused;
    }
}

impl ReleaseQuota {
    /// The same quota for no more deliveries than this.
    #[must_use]
    pub fn capped_at(self, deliveries: usize) -> Self {
        let deliveries = deliveries.min(self.max.deliveries);
        Self {
            max: ReleaseAmount {
                deliveries,
                ..self.max
            },
            ..self
        }
    }

    /// The rest when so much was released.
    #[must_use]
    pub fn rest_after(self, released: &ReleasedCounts) -> Self {
        Self {
            max: self.max.minus(released.amount()),
            ..self
        }
    }

    /// Tells whether more may be released after this.
    pub fn is_open(self, released: &ReleasedCounts) -> bool {
        !self.rest_after(released).max.is_nothing() && !released.is_refused
    }

    /// The number of objects to read next, at least one, by the messages in the last ones.
    pub fn objects_to_read(self, objects: usize, messages: usize) -> usize {
        let per_object = messages.div_ceil(objects.max(1)).max(1);
        let most = self.at_once.min(self.max.objects).max(1);
        (self.max.deliveries / per_object).clamp(1, most)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn as_many_objects_are_read_as_are_likely_to_fit() {
        let check = |deliveries, max_objects, (objects, messages), expected| {
            let quota = ReleaseQuota {
                max: ReleaseAmount {
                    deliveries,
                    objects: max_objects,
                },
                at_once: 8,
            };
            assert_eq!(
                quota.objects_to_read(objects, messages),
                expected,
                "{deliveries} {objects} {messages}"
            );
        };
        check(100, usize::MAX, (1, 10), 8);
        check(50, usize::MAX, (1, 10), 5);
        check(50, 3, (1, 10), 3);
        check(5, usize::MAX, (2, 21), 1);
        // Objects that could not be read tell nothing.
        check(5, usize::MAX, (0, 0), 5);
        check(0, 0, (1, 1), 1);
    }

    proptest! {
        #[test]
        fn a_quota_is_used_up_by_what_was_released_and_by_nothing_else(
            max in 0_usize..1_000,
            parts in prop::collection::vec((0_usize..300, 0_usize..4), 0..12),
        ) {
            let quota = ReleaseQuota { max: ReleaseAmount { deliveries: max, objects: 20 }, at_once: 8 };
            let mut all = ReleasedCounts::default();
            for (sent, objects) in parts {
                all.add_released(ReleasedCounts { sent, objects, ..ReleasedCounts::default() });
                let rest = quota.rest_after(&all);
                prop_assert_eq!(rest.max.deliveries, max.saturating_sub(all.sent));
                prop_assert_eq!(rest.max.objects, 20_usize.saturating_sub(all.objects));
                prop_assert_eq!(quota.is_open(&all), all.sent < max && all.objects < 20);
                prop_assert!((1..=8).contains(&rest.objects_to_read(objects, sent)));
                prop_assert!(rest.capped_at(5).max.deliveries <= 5);
            }
            all.add_released(ReleasedCounts { is_refused: true, ..ReleasedCounts::default() });
            prop_assert!(!quota.is_open(&all));
        }
    }
}
