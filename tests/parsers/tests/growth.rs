//! The memory that a reader allocates grows as its input does. The allocator counts for the whole
//! process, so this is a program of its own with one test.

use std::alloc::System;

use posthaste_tests_parsers::{Draw, Shape, Target, takes, targets};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Bytes of an input, and of one that is longer.
const BYTES: usize = 4 * 1024;
const TIMES_LONGER: usize = 8;

/// The growth that is too much, where it comes to this number of bytes. A buffer that grows by
/// doubling takes up to twice as much; a square takes 64 times as much.
const TIMES_MORE: usize = 20;
const BYTES_MIN: usize = 1 << 20;

/// Shapes that a plain target is given.
const SHAPES: usize = 60;

/// The bytes that a target allocates for an input, and all that it frees again.
fn allocated(target: &Target, input: &[u8]) -> usize {
    let region = Region::new(ALLOCATOR);
    takes(target, input);
    let stats = region.change();
    stats.bytes_allocated + usize::try_from(stats.bytes_reallocated.max(0)).unwrap_or_default()
}

#[test]
fn long_inputs_allocate_no_more_than_their_share() {
    let mut draw = Draw::new(1);
    let mut too_much = Vec::new();
    let mut looked_at = 0;
    for target in targets() {
        let known = target.known();
        for _ in 0..SHAPES.div_ceil(target.weight) {
            let shape = Shape::draw(&mut draw, &known);
            let short = allocated(target, &shape.of(BYTES));
            let long = allocated(target, &shape.of(BYTES * TIMES_LONGER));
            looked_at += usize::from(long >= BYTES_MIN);
            if long >= BYTES_MIN && long > short * TIMES_MORE {
                too_much.push(format!(
                    "{}: {short}, {long} of {}",
                    target.name,
                    shape.shown()
                ));
            }
        }
    }
    assert!(too_much.is_empty(), "{too_much:#?}");
    println!("{looked_at} shapes allocate much");
    assert!(looked_at > 0, "nothing is counted");
}
