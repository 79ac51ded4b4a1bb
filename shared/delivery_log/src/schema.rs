//! Columns as Parquet has them: types, and the properties they are written with.

use std::sync::Arc;

use parquet::basic::{
    Compression, Encoding as ParquetEncoding, LogicalType, Repetition, TimeUnit, Type, ZstdLevel,
};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, KeyValue, SortingColumn};
use parquet::file::properties::{
    BloomFilterPosition, EnabledStatistics, WriterProperties, WriterPropertiesBuilder,
    WriterPropertiesPtr,
};
use parquet::schema::types::{ColumnDescriptor, ColumnPath, Type as SchemaType, TypePtr};
use posthaste_core::delivery_log::{COLUMNS, ColumnEncoding, ColumnType, LogColumn};

use crate::error::broken_bytes;

/// Chance that a bloom filter says yes to a value that is not there.
const BLOOM_FALSE_POSITIVES: f64 = 0.001;

/// Bytes of a page before the next one is begun.
const PAGE_BYTES: usize = 64 * 1024;

/// Rows of a page before the next one is begun.
const PAGE_ROWS: usize = 2_000;

/// Values between two looks at the size of a page.
pub(crate) const WRITE_BATCH: usize = 256;

/// A higher level saves next to nothing (measured: 3 against 1).
const ZSTD_LEVEL: i32 = 1;

/// The columns by which a file is sorted, and whether from the greatest down.
const SORTED_BY: [(&str, bool); 3] = [("topic", false), ("subscription", false), ("time", true)];

/// A column of a file that is written.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StoredColumn {
    pub(crate) name: String,
    pub(crate) column_type: ColumnType,
    pub(crate) required: bool,
    pub(crate) encoding: ColumnEncoding,
}

impl From<&LogColumn> for StoredColumn {
    fn from(column: &LogColumn) -> Self {
        let LogColumn {
            name,
            column_type,
            required,
            encoding,
            ..
        } = *column;
        Self {
            name: name.to_owned(),
            column_type,
            required,
            encoding,
        }
    }
}

/// The columns that this program writes.
pub(crate) fn own_columns() -> Vec<StoredColumn> {
    COLUMNS.iter().map(StoredColumn::from).collect()
}

/// The type of a column of a file. `None` if the log has no such type.
pub(crate) fn column_type(column: &ColumnDescriptor) -> Option<ColumnType> {
    if column.path().parts().len() != 1 || column.max_rep_level() != 0 || column.max_def_level() > 1
    {
        return None;
    }
    [ColumnType::Text, ColumnType::Int, ColumnType::Time]
        .into_iter()
        .find(|column_type| {
            physical_type(*column_type) == column.physical_type()
                && logical_type(*column_type).as_ref() == column.logical_type_ref()
        })
}

/// The schema of a file with these columns.
pub(crate) fn file_schema(columns: &[StoredColumn]) -> Result<TypePtr, ParquetError> {
    let fields = columns
        .iter()
        .map(|column| schema_field(column).map(Arc::new))
        .collect::<Result<_, _>>()?;
    SchemaType::group_type_builder("record")
        .with_fields(fields)
        .build()
        .map(Arc::new)
}

fn schema_field(column: &StoredColumn) -> Result<SchemaType, ParquetError> {
    let repetition = if column.required {
        Repetition::REQUIRED
    } else {
        Repetition::OPTIONAL
    };
    SchemaType::primitive_type_builder(&column.name, physical_type(column.column_type))
        .with_repetition(repetition)
        .with_logical_type(logical_type(column.column_type))
        .build()
}

fn physical_type(column_type: ColumnType) -> Type {
    match column_type {
        ColumnType::Text => Type::BYTE_ARRAY,
        ColumnType::Int => Type::INT32,
        ColumnType::Time => Type::INT64,
    }
}

fn logical_type(column_type: ColumnType) -> Option<LogicalType> {
    match column_type {
        ColumnType::Text => Some(LogicalType::String),
        ColumnType::Int => None,
        ColumnType::Time => Some(LogicalType::timestamp(true, TimeUnit::MILLIS)),
    }
}

/// The properties of a file with these columns. A row group has at most this number of records.
pub(crate) fn writer_properties(
    columns: &[StoredColumn],
    group_records: usize,
    notes: Vec<KeyValue>,
) -> Result<WriterPropertiesPtr, ParquetError> {
    let mut properties = WriterProperties::builder()
        .set_created_by(concat!("posthaste ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_dictionary_enabled(false)
        .set_statistics_enabled(EnabledStatistics::None)
        .set_write_batch_size(WRITE_BATCH)
        .set_data_page_size_limit(PAGE_BYTES)
        .set_data_page_row_count_limit(PAGE_ROWS)
        .set_bloom_filter_position(BloomFilterPosition::End)
        .set_sorting_columns(sorting_columns(columns))
        .set_key_value_metadata(Some(notes));
    let zstd = Compression::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL)?);
    for column in columns {
        let compression = column_compression(column.encoding, zstd);
        properties = with_column(properties, column, group_records)
            .set_column_compression(column_path(column), compression);
    }
    Ok(Arc::new(properties.build()))
}

/// Numbers of words, and differences of numbers, are small already: zstd takes 1 % off them, and a
/// quarter of the time.
fn column_compression(encoding: ColumnEncoding, zstd: Compression) -> Compression {
    match encoding {
        ColumnEncoding::Words | ColumnEncoding::Repeated | ColumnEncoding::Ordered => {
            Compression::UNCOMPRESSED
        }
        ColumnEncoding::Distinct | ColumnEncoding::LookedUp => zstd,
    }
}

fn column_path(column: &StoredColumn) -> ColumnPath {
    ColumnPath::from(column.name.clone())
}

fn with_column(
    base: WriterPropertiesBuilder,
    column: &StoredColumn,
    group_records: usize,
) -> WriterPropertiesBuilder {
    let path = column_path(column);
    let encoding = column.encoding;
    let mut base = base.set_column_dictionary_enabled(path.clone(), encoding.has_dictionary());
    if encoding == ColumnEncoding::Ordered {
        base = base.set_column_encoding(path.clone(), ParquetEncoding::DELTA_BINARY_PACKED);
    }
    if encoding.has_statistics() {
        base = base.set_column_statistics_enabled(path.clone(), EnabledStatistics::Chunk);
    }
    if encoding.has_bloom_filter() {
        base = base
            .set_column_bloom_filter_max_ndv(path.clone(), group_records as u64)
            .set_column_bloom_filter_fpp(path, BLOOM_FALSE_POSITIVES);
    }
    base
}

fn sorting_columns(columns: &[StoredColumn]) -> Option<Vec<SortingColumn>> {
    let sorting = SORTED_BY.iter().map(|(name, descending)| {
        let position = columns.iter().position(|column| column.name == *name)?;
        let column_idx = i32::try_from(position).ok()?;
        Some(SortingColumn {
            column_idx,
            descending: *descending,
            nulls_first: false,
        })
    });
    sorting.collect()
}

/// The way a column that this program does not know is stored, as far as its file shows it.
pub(crate) fn stored_encoding(chunk: &ColumnChunkMetaData) -> ColumnEncoding {
    let has_dictionary = chunk.dictionary_page_offset().is_some();
    match (has_dictionary, chunk.statistics().is_some()) {
        _ if chunk.bloom_filter_offset().is_some() => ColumnEncoding::LookedUp,
        (true, false) => ColumnEncoding::Repeated,
        (false, true) if chunk.column_type() != Type::BYTE_ARRAY => ColumnEncoding::Ordered,
        (_, true) => ColumnEncoding::Words,
        (false, false) => ColumnEncoding::Distinct,
    }
}

/// Returns an error if a column of a file has the name of one of ours and another type.
pub(crate) fn check_types<'a>(
    columns: impl Iterator<Item = &'a ColumnDescriptor>,
) -> Result<(), ParquetError> {
    for column in columns {
        let own = posthaste_core::delivery_log::find_column(column.name());
        if own.is_some_and(|own| column_type(column) != Some(own.column_type)) {
            return Err(broken_bytes(&format!(
                "column {} is of another type",
                column.name()
            )));
        }
    }
    Ok(())
}
