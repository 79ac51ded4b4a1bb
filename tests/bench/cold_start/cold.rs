//! From exec to the first `/next`.

use std::fs;

use crate::figures::Figures;
use crate::process::Resident;
use crate::programs::World;

/// The times of a program's starts.
#[derive(Debug)]
pub(crate) struct Cold {
    /// The program.
    pub(crate) program: &'static str,
    /// From exec to the first `/next`.
    pub(crate) to_next: Figures,
    /// Of the program's file.
    pub(crate) file_bytes: u64,
    /// At the first `/next`, of the last start.
    pub(crate) resident: Resident,
}

/// Starts the programs in turn, so that what else the machine does is shared by all.
pub(crate) fn measure(world: &World, programs: &[&'static str], starts: usize) -> Vec<Cold> {
    let mut took = vec![Vec::new(); programs.len()];
    let mut resident = Vec::new();
    for _ in 0..starts {
        resident.clear();
        for (program, took) in programs.iter().zip(&mut took) {
            let (api, process) = world.start(program);
            let next = api.first_next();
            resident.push(process.resident());
            took.push(next.duration_since(process.began));
        }
    }
    let rows = programs.iter().zip(took).zip(resident);
    rows.map(|((program, took), resident)| Cold {
        program,
        to_next: Figures::new(took),
        file_bytes: fs::metadata(world.file(program))
            .expect("the program was built")
            .len(),
        resident,
    })
    .collect()
}
