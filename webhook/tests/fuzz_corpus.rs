//! What the fuzz targets have found once is walked through the same properties by every test run.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, missing_docs, reason = "a test")]

#[path = "../../tests/fuzz/src/properties.rs"]
#[allow(unreachable_pub)] // the fuzz targets are crates of their own
mod properties;

use std::path::Path;

use shared::validation::Kind;

/// Hands every input of a target's corpus to `target`.
fn walk(name: &str, target: impl Fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fuzz/corpus").join(name);
    let files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(!files.is_empty(), "{} is empty", folder.display());
    for file in files {
        println!("{}", file.display());
        target(&std::fs::read(&file).unwrap());
    }
}

#[test]
fn the_corpus_of_objects_holds() {
    for kind in Kind::ALL {
        walk(&kind.as_str().to_ascii_lowercase(), |input| properties::object(kind, input));
    }
}

#[test]
fn the_corpus_of_reviews_holds() {
    walk("review", properties::review);
}

#[test]
fn the_corpus_of_manifests_holds() {
    walk("check", properties::check);
}
