//! A device in memory whose power can be cut, which then loses what was not synced, and which can
//! be full or broken.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use posthaste_ports::Entropy;
use redb::StorageBackend;

use super::super::disk::EngineDisk;
use posthaste_testkit::SeededEntropy;

/// The unit that a device writes whole or not at all.
const SECTOR_BYTES: usize = 512;

/// A fault of a device's next operations.
#[derive(Debug, Clone, Copy)]
pub(super) enum Fault {
    /// After this many more operations the power is gone: nothing is written any more.
    PowerCut { after: u32 },
    /// After `after` more writes, the next `times` fail with this kind.
    Writes {
        after: u32,
        times: u32,
        kind: io::ErrorKind,
    },
    /// The next sync panics, as the engine does over a damaged page.
    EnginePanic,
    /// The next look at the free bytes panics, which is outside the engine.
    Panic,
    /// After `after` more syncs, the next `times` fail with this kind.
    Syncs {
        after: u32,
        times: u32,
        kind: io::ErrorKind,
    },
    /// The next sync fails, and after `reads` more reads one of those.
    SyncThenRead { reads: u32 },
    /// After `after` more reads, the next fails.
    Read { after: u32, times: u32 },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Read,
    Write,
    Sync,
}

#[derive(Debug, Default)]
struct State {
    /// Bytes that reads see.
    bytes: Vec<u8>,
    /// Bytes that the last sync kept.
    synced: Vec<u8>,
    /// Pieces of at most a sector written since, in order.
    unsynced: Vec<(usize, Vec<u8>)>,
    fault: Option<Fault>,
    free_bytes: Option<u64>,
    /// Place of the last byte ever written; a file takes no room for bytes that were never
    /// written.
    written_to: usize,
    syncs: u32,
}

/// The device; clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Device(Arc<Mutex<State>>);

impl Device {
    /// A device with these bytes, all of them synced.
    fn holding(bytes: Vec<u8>) -> Self {
        let device = Self::default();
        device.state().synced.clone_from(&bytes);
        device.state().bytes = bytes;
        device
    }

    pub(super) fn arm(&self, fault: Option<Fault>) {
        self.state().fault = fault;
    }

    pub(super) fn set_free_bytes(&self, free_bytes: Option<u64>) {
        self.state().free_bytes = free_bytes;
    }

    pub(super) fn syncs(&self) -> u32 {
        self.state().syncs
    }

    /// The bytes after a power cut: those that were synced, and of every sector written since, by
    /// chance, or nothing.
    pub(super) fn after_power_cut(&self, seed: u64) -> Self {
        let state = self.state();
        let mut bytes = state.synced.clone();
        let chance = SeededEntropy::new(seed);
        // From nothing over some to all that was not synced.
        let kept = chance.fraction().mul_add(1.5, -0.25);
        for (offset, piece) in &state.unsynced {
            if chance.fraction() < kept {
                bytes.resize(bytes.len().max(offset + piece.len()), 0);
                bytes[*offset..offset + piece.len()].copy_from_slice(piece);
            }
        }
        Self::holding(bytes)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic that was asked for happens under this lock.
        self.0.lock()
    }
}

impl State {
    /// True if the operation may happen.
    fn pass(&mut self, operation: Operation) -> io::Result<()> {
        match &mut self.fault {
            Some(Fault::PowerCut { after }) if *after == 0 => Err(io::Error::other("no power")),
            Some(Fault::PowerCut { after }) => {
                *after -= 1;
                Ok(())
            }
            Some(Fault::Writes { after, times, kind }) if operation == Operation::Write => {
                step(after, times, *kind)
            }
            Some(Fault::Syncs { after, times, kind }) if operation == Operation::Sync => {
                step(after, times, *kind)
            }
            Some(Fault::SyncThenRead { reads }) if operation == Operation::Sync => {
                self.fault = Some(Fault::Read {
                    after: *reads,
                    times: 1,
                });
                Err(io::ErrorKind::Other.into())
            }
            Some(Fault::Read { after, times }) if operation == Operation::Read => {
                step(after, times, io::ErrorKind::Other)
            }
            Some(Fault::EnginePanic) if operation == Operation::Sync => {
                self.fault = None;
                panic!("a fault of the engine")
            }
            _ => Ok(()),
        }
    }
}

fn step(after: &mut u32, times: &mut u32, kind: io::ErrorKind) -> io::Result<()> {
    match (*after, *times) {
        (0, 0) => Ok(()),
        (0, _) => {
            *times -= 1;
            Err(kind.into())
        }
        _ => {
            *after -= 1;
            Ok(())
        }
    }
}

impl StorageBackend for Device {
    fn len(&self) -> io::Result<u64> {
        Ok(self.state().bytes.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let mut state = self.state();
        state.pass(Operation::Read)?;
        let start = usize::try_from(offset).unwrap();
        let bytes = state.bytes.get(start..start + out.len());
        out.copy_from_slice(bytes.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))?);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.state();
        state.pass(Operation::Write)?;
        // Like a file system with a journal: a new length is kept before the bytes that are written
        // into it.
        let len = usize::try_from(len).unwrap();
        state.bytes.resize(len, 0);
        state.synced.resize(len, 0);
        state
            .unsynced
            .retain(|(offset, piece)| offset + piece.len() <= len);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.state();
        state.pass(Operation::Sync)?;
        let state = &mut *state;
        for (offset, piece) in state.unsynced.drain(..) {
            state.synced[offset..offset + piece.len()].copy_from_slice(&piece);
        }
        state.syncs += 1;
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut state = self.state();
        state.pass(Operation::Write)?;
        let start = usize::try_from(offset).unwrap();
        state.bytes[start..start + data.len()].copy_from_slice(data);
        state.written_to = state.written_to.max(start + data.len());
        let mut at = start;
        while at < start + data.len() {
            let end = ((at / SECTOR_BYTES + 1) * SECTOR_BYTES).min(start + data.len());
            state
                .unsynced
                .push((at, data[at - start..end - start].to_vec()));
            at = end;
        }
        Ok(())
    }
}

impl EngineDisk for Device {
    fn open(&self) -> io::Result<Box<dyn StorageBackend>> {
        Ok(Box::new(self.clone()))
    }

    fn free_bytes(&self) -> io::Result<u64> {
        assert!(
            self.state()
                .fault
                .take_if(|fault| matches!(fault, Fault::Panic))
                .is_none()
        );
        Ok(self.state().free_bytes.unwrap_or(u64::MAX))
    }

    fn used_bytes(&self) -> io::Result<u64> {
        Ok(self.state().written_to as u64)
    }

    fn retry_pause(&self) -> Duration {
        Duration::ZERO
    }
}

#[test]
fn a_power_cut_loses_what_was_not_synced() {
    let device = Device::default();
    device.set_len(2048).unwrap();
    device.write(0, &[1; 1024]).unwrap();
    device.sync_data().unwrap();
    device.write(100, &[2; 1500]).unwrap();
    let images: Vec<_> = (0..50)
        .map(|seed| device.after_power_cut(seed).state().bytes.clone())
        .collect();
    let expected = |kept: [bool; 4]| {
        let mut bytes = [vec![1; 1024], vec![0; 1024]].concat();
        for (sector, (start, end)) in [(100, 512), (512, 1024), (1024, 1536), (1536, 1600)]
            .iter()
            .enumerate()
        {
            if kept[sector] {
                bytes[*start..*end].fill(2);
            }
        }
        bytes
    };
    let every = (0..16).map(|n| expected([n & 1 > 0, n & 2 > 0, n & 4 > 0, n & 8 > 0]));
    let every: Vec<_> = every.collect();
    assert!(images.iter().all(|image| every.contains(image)));
    assert!(
        images.contains(&every[0])
            && images.contains(&every[15])
            && images.iter().any(|i| *i != every[0] && *i != every[15])
    );
}
