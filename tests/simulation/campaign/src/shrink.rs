//! Leaves out of a course that fails what it fails without.

use crate::{Course, run};

/// The same course with as few steps as it still fails with. It is played once for each step that
/// is tried.
pub async fn shrunk(course: &Course) -> Course {
    let mut least = course.clone();
    let mut length = (least.steps.len() / 2).max(1);
    loop {
        let mut is_shorter = false;
        let mut place = 0;
        while place < least.steps.len() {
            let mut shorter = least.clone();
            let end = (place + length).min(shorter.steps.len());
            shorter.steps.drain(place..end);
            if run(&shorter).await.faults.is_empty() {
                place += length;
            } else {
                least = shorter;
                is_shorter = true;
            }
        }
        if length == 1 && !is_shorter {
            return least;
        }
        length = (length / 2).max(1);
    }
}
