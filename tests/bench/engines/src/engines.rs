//! The candidates behind one face: store messages, delete messages, one fsync for all of it.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

use fjall::{Database, Keyspace, KeyspaceCreateOptions, KvSeparationOptions, PersistMode};
use redb::{ReadableDatabase, ReadableTable, TableDefinition};

pub type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// A key (the message's sequence number) and its body.
pub type Row = (u64, Vec<u8>);

pub trait Engine: Send + Sized {
    const NAME: &'static str;
    fn open(dir: &Path) -> Result<Self, AnyError>;
    /// One durable transaction.
    fn commit(&mut self, puts: &[Row], deletes: &[u64]) -> Result<(), AnyError>;
    fn get(&self, key: u64) -> Result<Option<Vec<u8>>, AnyError>;
    /// Counts the rows, and visits each of them.
    fn scan(&self) -> Result<u64, AnyError>;
}

const CACHE_BYTES: usize = 64 << 20;

/// The floor: what appending and one fdatasync cost here. Not a candidate, it keeps nothing apart.
pub struct Append(File);

impl Engine for Append {
    const NAME: &'static str = "append (floor)";
    fn open(dir: &Path) -> Result<Self, AnyError> {
        Ok(Self(
            OpenOptions::new()
                .create(true)
                .append(true)
                .open(dir.join("log"))?,
        ))
    }
    fn commit(&mut self, puts: &[Row], _deletes: &[u64]) -> Result<(), AnyError> {
        let all: Vec<u8> = puts
            .iter()
            .flat_map(|(_, body)| body.iter().copied())
            .collect();
        self.0.write_all(&all)?;
        Ok(self.0.sync_data()?)
    }
    fn get(&self, _key: u64) -> Result<Option<Vec<u8>>, AnyError> {
        Ok(None)
    }
    fn scan(&self) -> Result<u64, AnyError> {
        Ok(0)
    }
}

pub struct Redb(redb::Database);

const TABLE: TableDefinition<u64, &[u8]> = TableDefinition::new("messages");

impl Engine for Redb {
    const NAME: &'static str = "redb 4.4";
    fn open(dir: &Path) -> Result<Self, AnyError> {
        let db = redb::Database::builder()
            .set_cache_size(CACHE_BYTES)
            .create(dir.join("redb"))?;
        let tx = db.begin_write()?;
        tx.open_table(TABLE)?;
        tx.commit()?;
        Ok(Self(db))
    }
    fn commit(&mut self, puts: &[Row], deletes: &[u64]) -> Result<(), AnyError> {
        let tx = self.0.begin_write()?;
        {
            let mut table = tx.open_table(TABLE)?;
            for key in deletes {
                table.remove(key)?;
            }
            for (key, body) in puts {
                table.insert(key, body.as_slice())?;
            }
        }
        Ok(tx.commit()?)
    }
    fn get(&self, key: u64) -> Result<Option<Vec<u8>>, AnyError> {
        let table = self.0.begin_read()?.open_table(TABLE)?;
        Ok(table.get(key)?.map(|value| value.value().to_vec()))
    }
    fn scan(&self) -> Result<u64, AnyError> {
        let table = self.0.begin_read()?.open_table(TABLE)?;
        let mut rows = 0;
        for row in table.iter()? {
            rows += u64::from(!row?.1.value().is_empty());
        }
        Ok(rows)
    }
}

pub struct Fjall<const SEPARATED: bool> {
    db: Database,
    messages: Keyspace,
}

impl<const SEPARATED: bool> Engine for Fjall<SEPARATED> {
    const NAME: &'static str = if SEPARATED {
        "fjall 3.1 (kv sep)"
    } else {
        "fjall 3.1"
    };
    fn open(dir: &Path) -> Result<Self, AnyError> {
        let db = Database::builder(dir.join("fjall"))
            .cache_size(CACHE_BYTES as u64)
            .open()?;
        let messages = db.keyspace("messages", || {
            let options = KeyspaceCreateOptions::default();
            if SEPARATED {
                options.with_kv_separation(Some(KvSeparationOptions::default()))
            } else {
                options
            }
        })?;
        Ok(Self { db, messages })
    }
    fn commit(&mut self, puts: &[Row], deletes: &[u64]) -> Result<(), AnyError> {
        let mut batch = self.db.batch().durability(Some(PersistMode::SyncData));
        for key in deletes {
            batch.remove(&self.messages, key.to_be_bytes());
        }
        for (key, body) in puts {
            batch.insert(&self.messages, key.to_be_bytes(), body.as_slice());
        }
        Ok(batch.commit()?)
    }
    fn get(&self, key: u64) -> Result<Option<Vec<u8>>, AnyError> {
        Ok(self
            .messages
            .get(key.to_be_bytes())?
            .map(|value| value.to_vec()))
    }
    fn scan(&self) -> Result<u64, AnyError> {
        let mut rows = 0;
        for row in self.messages.iter() {
            rows += u64::from(!row.value()?.is_empty());
        }
        Ok(rows)
    }
}

pub struct Sqlite(rusqlite::Connection);

impl Engine for Sqlite {
    const NAME: &'static str = "SQLite 3 (rusqlite)";
    fn open(dir: &Path) -> Result<Self, AnyError> {
        let db = rusqlite::Connection::open(dir.join("sqlite"))?;
        db.execute_batch(
            "pragma journal_mode=wal; pragma synchronous=full; pragma cache_size=-65536;
             create table if not exists messages (key integer primary key, body blob not null);",
        )?;
        Ok(Self(db))
    }
    fn commit(&mut self, puts: &[Row], deletes: &[u64]) -> Result<(), AnyError> {
        let tx = self.0.transaction()?;
        {
            let mut delete = tx.prepare_cached("delete from messages where key = ?1")?;
            for key in deletes {
                delete.execute([key.cast_signed()])?;
            }
            let mut insert =
                tx.prepare_cached("insert into messages (key, body) values (?1, ?2)")?;
            for (key, body) in puts {
                insert.execute((key.cast_signed(), body))?;
            }
        }
        Ok(tx.commit()?)
    }
    fn get(&self, key: u64) -> Result<Option<Vec<u8>>, AnyError> {
        let mut query = self
            .0
            .prepare_cached("select body from messages where key = ?1")?;
        Ok(query
            .query_map([key.cast_signed()], |row| row.get(0))?
            .next()
            .transpose()?)
    }
    fn scan(&self) -> Result<u64, AnyError> {
        let count = "select count(*) from messages where length(body) > 0";
        let rows: i64 = self.0.query_row(count, [], |row| row.get(0))?;
        Ok(rows.cast_unsigned())
    }
}
