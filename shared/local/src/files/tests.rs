//! Particulars of files; the conformance suite tests the promises of every object store.

use std::collections::BTreeSet;
use std::os::unix::fs::symlink;

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

fn store() -> (TempDir, FileStore) {
    let folder = tempfile::tempdir().unwrap();
    let store = FileStore::open(&folder.path().join("dead-letters")).unwrap();
    (folder, store)
}

async fn put(store: &FileStore, key: &str, bytes: &'static str) -> Result<ETag, ErrorKind> {
    store
        .put(key, Bytes::from(bytes), PutCondition::Always)
        .await
        .map_err(|e| e.kind)
}

async fn keys(store: &FileStore, prefix: &str) -> Vec<String> {
    let page = store.list(prefix, None, 1000).await.unwrap();
    page.objects.into_iter().map(|object| object.key).collect()
}

#[tokio::test]
async fn an_object_is_a_plain_file_where_its_key_says() {
    let (folder, store) = store();
    let key = "ORDERS/BILLING/2026/11/21/7/0b.json";
    let tag = put(&store, key, "[1]").await.unwrap();
    assert_eq!(
        std::fs::read(folder.path().join("dead-letters").join(key)).unwrap(),
        b"[1]"
    );
    assert_eq!(
        tag.0,
        "080a9ed428559ef602668b4c00f114f1a11c3f6b02a435f0bdc154578e4d7f22"
    );
}

/// A store that keeps its disk free writes nothing more there, and still deletes.
#[tokio::test]
async fn store_without_free_disk_refuses_writes_but_deletes() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("log");
    put(
        &FileStore::open_keeping_free(&root, 1).unwrap(),
        "a/b",
        "old",
    )
    .await
    .unwrap();
    let store = FileStore::open_keeping_free(&root, u64::MAX).unwrap();
    assert_eq!(put(&store, "a/c", "new").await, Err(ErrorKind::Full));
    assert_eq!(keys(&store, "").await, ["a/b"]);
    store.delete("a/b").await.unwrap();
    assert_eq!(keys(&store, "").await.len(), 0);
}

#[tokio::test]
async fn a_range_of_a_file_is_read_without_the_rest_of_it() {
    let (folder, store) = store();
    let key = "a/sparse";
    put(&store, key, "first").await.unwrap();
    // More than there is memory for: its last bytes alone are read.
    let length = 1 << 42;
    let file = std::fs::File::options()
        .write(true)
        .open(folder.path().join("dead-letters").join(key));
    file.and_then(|file| file.set_len(length)).unwrap();
    assert_eq!(store.get_range(key, 3..6).await.unwrap(), "st\0");
    assert_eq!(
        store.get_range(key, length - 2..length).await.unwrap(),
        "\0\0"
    );
    let beyond = store.get_range(key, 0..length + 1).await;
    assert_eq!(beyond.map_err(|e| e.kind), Err(ErrorKind::Damaged));
}

/// Files that a crash left half written are removed at the start, and never listed.
#[tokio::test]
async fn half_written_files_are_removed_at_start_and_never_listed() {
    let (folder, store) = store();
    put(&store, "a/b", "kept").await.unwrap();
    drop(store);
    let root = folder.path().join("dead-letters");
    std::fs::write(root.join(TEMPORARY_FOLDER).join("0"), "half").unwrap();
    let store = FileStore::open(&root).unwrap();
    assert_eq!(keys(&store, "").await, ["a/b"]);
    assert_eq!(
        std::fs::read_dir(root.join(TEMPORARY_FOLDER))
            .unwrap()
            .count(),
        0
    );
    put(&store, "a/c", "new").await.unwrap();
    assert_eq!(
        std::fs::read_dir(root.join(TEMPORARY_FOLDER))
            .unwrap()
            .count(),
        0
    );
}

/// Leftovers of the script in the guide of 0.1, which linked the files of the log there, are
/// removed.
#[tokio::test]
async fn backup_links_in_the_folder_are_never_listed() {
    let (folder, store) = store();
    put(&store, "a/b", "x").await.unwrap();
    let root = folder.path().join("dead-letters");
    let beside = root.join(".posthaste-backup.1Xy2Zz");
    std::fs::create_dir_all(beside.join("a")).unwrap();
    std::fs::hard_link(root.join("a/b"), beside.join("a/b")).unwrap();
    assert_eq!(keys(&store, "").await, ["a/b"]);
}

#[tokio::test]
async fn a_refused_put_leaves_nothing_behind() {
    let (folder, store) = store();
    put(&store, "a", "1").await.unwrap();
    let lost = store
        .put("a", Bytes::from("2"), PutCondition::IfAbsent)
        .await
        .unwrap_err();
    assert_eq!(lost.kind, ErrorKind::PreconditionFailed);
    let temporaries = folder.path().join("dead-letters").join(TEMPORARY_FOLDER);
    assert_eq!(std::fs::read_dir(temporaries).unwrap().count(), 0);
}

#[tokio::test]
async fn the_stores_own_names_are_no_keys() {
    let (_folder, store) = store();
    for key in [".posthaste-tmp/0", "a/.posthaste-x", ".posthaste-"] {
        assert_eq!(
            put(&store, key, "x").await,
            Err(ErrorKind::Invalid),
            "{key}"
        );
        assert_eq!(
            store.get(key).await.unwrap_err().kind,
            ErrorKind::Invalid,
            "{key}"
        );
    }
    assert_eq!(keys(&store, ".posthaste-tmp/").await, [""; 0]);
}

#[tokio::test]
async fn a_key_that_is_the_folder_of_another_is_refused() {
    let (_folder, store) = store();
    put(&store, "a/b", "x").await.unwrap();
    assert_eq!(put(&store, "a", "x").await, Err(ErrorKind::Invalid));
    assert_eq!(put(&store, "a/b/c", "x").await, Err(ErrorKind::Invalid));
    let absent = store
        .put("a", Bytes::from("x"), PutCondition::IfAbsent)
        .await
        .unwrap_err();
    assert_eq!(absent.kind, ErrorKind::Invalid);
    assert!(store.get("a").await.unwrap().is_none());
    assert!(store.get("a/b/c").await.unwrap().is_none());
    store.delete("a").await.unwrap();
    assert_eq!(keys(&store, "").await, ["a/b"]);
}

#[tokio::test]
async fn a_segment_longer_than_a_file_name_is_refused_and_absent() {
    let (_folder, store) = store();
    let key = "k".repeat(256);
    assert_eq!(put(&store, &key, "x").await, Err(ErrorKind::Invalid));
    assert!(store.get(&key).await.unwrap().is_none());
    store.delete(&key).await.unwrap();
}

#[tokio::test]
async fn empty_folders_go_with_their_last_object() {
    let (folder, store) = store();
    put(&store, "a/b/c", "x").await.unwrap();
    put(&store, "a/d", "x").await.unwrap();
    store.delete("a/b/c").await.unwrap();
    let root = folder.path().join("dead-letters");
    assert!(!root.join("a/b").exists() && root.join("a").exists());
    store.delete("a/d").await.unwrap();
    assert!(!root.join("a").exists() && root.exists());
    put(&store, "a/b/c", "again").await.unwrap();
    assert_eq!(keys(&store, "").await, ["a/b/c"]);
}

#[tokio::test]
async fn a_folder_that_a_person_removed_is_made_again() {
    let (folder, store) = store();
    put(&store, "a/b", "x").await.unwrap();
    std::fs::remove_dir_all(folder.path().join("dead-letters")).unwrap();
    assert_eq!(keys(&store, "").await, [""; 0]);
    put(&store, "a/b", "y").await.unwrap();
    assert_eq!(keys(&store, "").await, ["a/b"]);
}

#[tokio::test]
async fn folder_of_another_is_told_once_and_used_from_then_on() {
    let (folder, store) = store();
    let look = || {
        store
            .check_path()
            .map_err(|displaced| displaced.to_string())
    };
    let root = folder.path().join("dead-letters");
    put(&store, "a/b", "x").await.unwrap();
    assert_eq!(look(), Ok(()));
    std::fs::rename(&root, folder.path().join("aside")).unwrap();
    assert_eq!(look(), Err("nothing has its name".to_owned()));
    // What the store makes itself is its own.
    put(&store, "a/c", "y").await.unwrap();
    assert_eq!(
        (look(), keys(&store, "").await),
        (Ok(()), vec!["a/c".to_owned()])
    );
    std::fs::remove_dir_all(&root).unwrap();
    std::fs::rename(folder.path().join("aside"), &root).unwrap();
    assert_eq!(look(), Err("another file has its name".to_owned()));
    assert_eq!(
        (look(), keys(&store, "").await),
        (Ok(()), vec!["a/b".to_owned()])
    );
}

/// A person who moved the data folder away can move it back: nothing has taken its place.
#[tokio::test]
async fn folder_above_is_not_made_again() {
    let root = tempfile::tempdir().unwrap();
    let store = FileStore::open(&root.path().join("data/dead-letters")).unwrap();
    put(&store, "a/b", "x").await.unwrap();
    std::fs::rename(root.path().join("data"), root.path().join("aside")).unwrap();
    for key in ["a/b", "c"] {
        assert_eq!(put(&store, key, "y").await, Err(ErrorKind::NotFound));
    }
    assert!(!root.path().join("data").exists());
    std::fs::rename(root.path().join("aside"), root.path().join("data")).unwrap();
    put(&store, "c", "y").await.unwrap();
    assert_eq!(keys(&store, "").await, ["a/b", "c"]);
}

#[tokio::test]
async fn links_and_names_that_are_no_text_are_not_listed() {
    use std::os::unix::ffi::OsStrExt;
    let (folder, store) = store();
    let root = folder.path().join("dead-letters");
    put(&store, "a", "x").await.unwrap();
    symlink("/etc", root.join("etc")).unwrap();
    std::fs::write(root.join(std::ffi::OsStr::from_bytes(b"\xff")), "x").unwrap();
    assert_eq!(keys(&store, "").await, ["a"]);
}

#[tokio::test]
async fn a_prefix_cannot_lead_out_of_the_folder() {
    let (folder, store) = store();
    std::fs::write(folder.path().join("secret"), "x").unwrap();
    put(&store, "a", "x").await.unwrap();
    for prefix in ["../", "../s", "/", "/etc/", "a//", "./", "//"] {
        assert_eq!(keys(&store, prefix).await, [""; 0], "{prefix}");
    }
}

#[test]
fn errors_of_the_disk_are_told_apart_by_meaning() {
    let check =
        |code, kind| assert_eq!(disk::port_error("x", std::io::Error::from(code)).kind, kind);
    check(std::io::ErrorKind::StorageFull, ErrorKind::Full);
    check(std::io::ErrorKind::QuotaExceeded, ErrorKind::Full);
    check(std::io::ErrorKind::NotFound, ErrorKind::NotFound);
    check(std::io::ErrorKind::PermissionDenied, ErrorKind::Denied);
    check(std::io::ErrorKind::ReadOnlyFilesystem, ErrorKind::Denied);
    check(std::io::ErrorKind::InvalidFilename, ErrorKind::Invalid);
    check(std::io::ErrorKind::Interrupted, ErrorKind::Other);
}

/// Missing folders above the root are made, and an empty path is refused.
#[test]
fn missing_parents_are_made_and_an_empty_path_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    FileStore::open(&folder.path().join("a/b/c")).unwrap();
    FileStore::open(&folder.path().join("a/b/c")).unwrap();
    assert!(folder.path().join("a/b/c").is_dir());
    let open = FileStore::open(Path::new(""))
        .map(|_| ())
        .map_err(|e| e.kind);
    assert_eq!(open, Err(ErrorKind::Invalid));
}

#[test]
fn a_folder_that_is_a_file_is_not_opened() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("f"), "x").unwrap();
    assert_eq!(
        FileStore::open(&folder.path().join("f")).unwrap_err().kind,
        ErrorKind::Invalid
    );
}

/// Whether others follow is left open, since only the whole folder could tell.
#[tokio::test]
async fn object_is_found_by_its_key_without_listing_its_folder() {
    let (_folder, store) = store();
    for key in ["a/b", "a/b-c", "a/d", "e/f"] {
        put(&store, key, "x").await.unwrap();
    }
    let check = async |prefix: &str, after: &str, found: &[&str], next_after: Option<&str>| {
        let page = store.list(prefix, Some(after), 1).await.unwrap();
        let listed: Vec<_> = page.objects.iter().map(|it| it.key.as_str()).collect();
        assert_eq!(
            (listed.as_slice(), page.next_after.as_deref()),
            (found, next_after),
            "{prefix:?} after {after:?}"
        );
    };
    check("a/d", "", &["a/d"], Some("a/d")).await;
    check("a/d", "a/d", &[], None).await;
    check("a/b", "a", &["a/b"], Some("a/b")).await;
    check("a/b", "a/b", &["a/b-c"], None).await;
    // A folder, nothing, and the store's own.
    check("e", "", &["e/f"], None).await;
    check("a/c", "", &[], None).await;
    check(".posthaste-tmp", "", &[], None).await;
}

/// Keys of few letters and shallow folders, so that neighbours, prefixes and page ends meet often.
fn some_keys() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(
        prop::collection::vec("[a0.-]{1,2}x", 1..4).prop_map(|s| s.join("/")),
        0..25,
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn pages_are_what_a_sorted_set_would_give(
        keys in some_keys(),
        prefix in "([a0.-]{1,2}x?/?){0,2}",
        after in "([a0.-]{1,2}x?/?){0,2}",
        max in 1..6_usize,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let (_folder, store) = store();
            let mut model = BTreeSet::new();
            for key in keys {
                if put(&store, &key, "x").await.is_ok() {
                    model.insert(key);
                }
            }
            let expected: Vec<String> =
                model.into_iter().filter(|k| k.starts_with(&prefix) && *k > after).collect();
            let (mut seen, mut from) = (Vec::new(), Some(after));
            while let Some(after) = from {
                let page = store.list(&prefix, Some(&after), max).await.unwrap();
                assert!(page.objects.len() <= max);
                assert!(page.next_after.is_none() || page.objects.len() == max);
                seen.extend(page.objects.into_iter().map(|object| object.key));
                from = page.next_after;
            }
            assert_eq!(seen, expected);
        });
    }
}
