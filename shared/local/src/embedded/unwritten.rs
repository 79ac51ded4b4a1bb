//! A file whose writes stay in memory: the engine repairs a file that it opens, and a check must
//! not.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use parking_lot::Mutex;
use redb::StorageBackend;

/// Bytes of a block. A block is kept in memory once a part of it was written.
const BLOCK_BYTES: usize = 4096;

/// The file, with what was written over it.
#[derive(Debug)]
pub(super) struct UnwrittenFile {
    file: File,
    written: Mutex<WrittenBlocks>,
}

#[derive(Debug)]
struct WrittenBlocks {
    len: u64,
    blocks: BTreeMap<u64, Box<[u8; BLOCK_BYTES]>>,
}

impl UnwrittenFile {
    pub(super) fn new(file: File) -> io::Result<Self> {
        let written = WrittenBlocks {
            len: file.metadata()?.len(),
            blocks: BTreeMap::new(),
        };
        Ok(Self {
            file,
            written: Mutex::new(written),
        })
    }

    /// A block as the file has it, with zeroes after its end.
    fn read_block(&self, number: u64) -> io::Result<Box<[u8; BLOCK_BYTES]>> {
        let mut block = Box::new([0; BLOCK_BYTES]);
        let mut filled = 0;
        while filled < BLOCK_BYTES {
            let read = self.file.read_at(
                &mut block[filled..],
                number * BLOCK_BYTES as u64 + filled as u64,
            )?;
            if read == 0 {
                break;
            }
            filled += read;
        }
        Ok(block)
    }
}

/// The parts of a range, one per block: the number of the block, the offset in it, and the length.
fn block_parts(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, usize)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = offset + done as u64;
        let from = usize::try_from(at % BLOCK_BYTES as u64).unwrap_or(0);
        let part = (BLOCK_BYTES - from).min(len - done);
        done += part;
        (part > 0).then_some((at / BLOCK_BYTES as u64, from, part))
    })
}

impl StorageBackend for UnwrittenFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.written.lock().len)
    }

    fn read(&self, offset: u64, mut out: &mut [u8]) -> io::Result<()> {
        let written = self.written.lock();
        if offset.saturating_add(out.len() as u64) > written.len {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        for (number, from, len) in block_parts(offset, out.len()) {
            let (part, rest) = out.split_at_mut(len);
            match written.blocks.get(&number) {
                Some(block) => part.copy_from_slice(&block[from..from + len]),
                None => part.copy_from_slice(&self.read_block(number)?[from..from + len]),
            }
            out = rest;
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.written.lock().len = len;
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, mut data: &[u8]) -> io::Result<()> {
        let mut written = self.written.lock();
        for (number, from, len) in block_parts(offset, data.len()) {
            let (part, rest) = data.split_at(len);
            let block = match written.blocks.entry(number) {
                Entry::Occupied(written) => written.into_mut(),
                Entry::Vacant(vacant) => vacant.insert(self.read_block(number)?),
            };
            block[from..from + len].copy_from_slice(part);
            data = rest;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that are written are read back, and the file itself stays as it is.
    #[test]
    fn overlaid_writes_are_read_back_and_the_file_is_unchanged() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, [7; 10_000]).unwrap();
        let unwritten = UnwrittenFile::new(File::open(&path).unwrap()).unwrap();
        unwritten.write(4000, &[1; 5000]).unwrap();
        unwritten.set_len(20_000).unwrap();
        let mut read = vec![9; 20_000];
        unwritten.read(0, &mut read).unwrap();
        let expected = [[7; 4000].as_slice(), &[1; 5000], &[7; 1000], &[0; 10_000]].concat();
        assert_eq!(read, expected);
        assert_eq!(
            unwritten.read(19_999, &mut [0; 2]).unwrap_err().kind(),
            io::ErrorKind::UnexpectedEof
        );
        assert_eq!(std::fs::read(&path).unwrap(), [7; 10_000]);
    }
}
