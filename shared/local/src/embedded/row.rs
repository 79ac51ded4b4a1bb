//! Rows of the database as they travel from a snapshot to a new file: a table, a key and a value,
//! with their lengths, and at the end how many there were.

use std::io::{self, Read, Write};

/// Longest key, in bytes. Keys of objects have at most 1,024.
const KEY_BYTES_MAX: u32 = 4096;

/// Largest value, in bytes. The largest is a state object, of 256 MiB at most.
const VALUE_BYTES_MAX: u32 = 512 << 20;

/// The number in front of the end.
const END: u8 = 0;

/// The contents of a copied database.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CopyCounts {
    /// Messages of all queues.
    pub messages: u64,
    /// State objects.
    pub objects: u64,
}

/// The table of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowTable {
    Folder = 1,
    Messages = 2,
    Objects = 3,
    ObjectBytes = 4,
    ObjectDigests = 5,
}

/// A row that was read, or the end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum CopyRow {
    Of {
        table: RowTable,
        key: Vec<u8>,
        value: Vec<u8>,
    },
    End(CopyCounts),
}

impl RowTable {
    const ALL: [Self; 5] = [
        Self::Folder,
        Self::Messages,
        Self::Objects,
        Self::ObjectBytes,
        Self::ObjectDigests,
    ];
}

pub(super) fn write_row(
    out: &mut impl Write,
    table: RowTable,
    key: &[u8],
    value: &[u8],
) -> io::Result<()> {
    out.write_all(&[table as u8])?;
    for part in [key, value] {
        let length = u32::try_from(part.len()).map_err(io::Error::other)?;
        out.write_all(&length.to_le_bytes())?;
        out.write_all(part)?;
    }
    Ok(())
}

pub(super) fn write_end(out: &mut impl Write, copied: CopyCounts) -> io::Result<()> {
    out.write_all(&[END])?;
    out.write_all(&copied.messages.to_le_bytes())?;
    out.write_all(&copied.objects.to_le_bytes())
}

/// Reads a row. Bytes that end before the end of the rows are an error, and so are bytes that are
/// not rows.
pub(super) fn read_row(input: &mut impl Read) -> io::Result<CopyRow> {
    let [number] = read_exactly(input)?;
    if number == END {
        let messages = u64::from_le_bytes(read_exactly(input)?);
        let objects = u64::from_le_bytes(read_exactly(input)?);
        return Ok(CopyRow::End(CopyCounts { messages, objects }));
    }
    let mut tables = RowTable::ALL.into_iter();
    let table = tables.find(|table| *table as u8 == number);
    let table = table.ok_or(io::ErrorKind::InvalidData)?;
    let key = read_part(input, KEY_BYTES_MAX)?;
    let value = read_part(input, VALUE_BYTES_MAX)?;
    Ok(CopyRow::Of { table, key, value })
}

fn read_exactly<const N: usize>(input: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    input.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Reads a part. Room is made for what comes, and not for what is announced.
fn read_part(input: &mut impl Read, bytes_max: u32) -> io::Result<Vec<u8>> {
    let length = u32::from_le_bytes(read_exactly(input)?);
    if length > bytes_max {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut part = Vec::new();
    input.take(u64::from(length)).read_to_end(&mut part)?;
    if part.len() as u64 == u64::from(length) {
        Ok(part)
    } else {
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_as_they_were_written() {
        let copied = CopyCounts {
            messages: 3,
            objects: 1 << 40,
        };
        let mut written = Vec::new();
        write_row(&mut written, RowTable::Objects, b"a/b", b"").unwrap();
        write_row(&mut written, RowTable::Folder, b"", &[7; 300]).unwrap();
        write_end(&mut written, copied).unwrap();
        let mut input = &written[..];
        let row = |table, key: &[u8], value: &[u8]| CopyRow::Of {
            table,
            key: key.to_vec(),
            value: value.to_vec(),
        };
        assert_eq!(
            read_row(&mut input).unwrap(),
            row(RowTable::Objects, b"a/b", b"")
        );
        assert_eq!(
            read_row(&mut input).unwrap(),
            row(RowTable::Folder, b"", &[7; 300])
        );
        assert_eq!(read_row(&mut input).unwrap(), CopyRow::End(copied));
        assert!(input.is_empty());
    }

    #[test]
    fn bytes_that_are_no_rows_are_refused() {
        let check = |mut input: &[u8], expected| {
            assert_eq!(read_row(&mut input).unwrap_err().kind(), expected);
        };
        let mut whole = Vec::new();
        write_row(&mut whole, RowTable::Messages, &[1; 8], b"body").unwrap();
        for end in 0..whole.len() {
            check(&whole[..end], io::ErrorKind::UnexpectedEof);
        }
        check(&[9], io::ErrorKind::InvalidData);
        check(&[2, 255, 255, 255, 255], io::ErrorKind::InvalidData);
        // A length that is announced and does not come takes no memory.
        check(
            &[2, 0, 0, 0, 0, 0, 0, 0, 0x10],
            io::ErrorKind::UnexpectedEof,
        );
    }
}
