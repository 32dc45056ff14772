//! PEM bundles of CA certificates: reading, and merging without taking anything from anybody else.

use crate::x509::Certificate;

const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
const END: &str = "-----END CERTIFICATE-----";

/// One certificate block of a bundle. Blocks that cannot be parsed are kept as they are: they are somebody's.
struct Block<'a> {
    text: &'a str,
    certificate: Option<Certificate>,
}

fn blocks(pem: &str) -> Vec<Block<'_>> {
    let mut found = Vec::new();
    let mut rest = pem;
    while let Some(start) = rest.find(BEGIN) {
        let from = rest.get(start..).unwrap_or_default();
        let Some(end) = from.find(END) else { break };
        let text = from.get(..end + END.len()).unwrap_or_default();
        found.push(Block { text, certificate: Certificate::from_pem(text.as_bytes()).ok() });
        rest = from.get(end + END.len()..).unwrap_or_default();
    }
    found
}

/// The certificates of a bundle that can be parsed, in order.
pub fn parse(pem: &[u8]) -> Vec<Certificate> {
    blocks(&String::from_utf8_lossy(pem)).into_iter().filter_map(|block| block.certificate).collect()
}

/// Certificates as one PEM text.
pub fn encode<'a>(certificates: impl IntoIterator<Item = &'a Certificate>) -> String {
    certificates.into_iter().map(Certificate::to_pem).collect()
}

/// `existing` with every certificate of `wanted` in it and without those that `droppable` says are ours and of no use any more.
/// `None` when that changes nothing. Other certificates, and blocks that cannot be parsed, stay.
pub fn merge(existing: &[u8], wanted: &[Certificate], droppable: impl Fn(&Certificate) -> bool) -> Option<Vec<u8>> {
    let existing = String::from_utf8_lossy(existing);
    let present = blocks(&existing);
    let missing: Vec<_> =
        wanted.iter().filter(|certificate| !present.iter().any(|block| block.certificate.as_ref() == Some(certificate))).collect();
    let keep = |block: &Block<'_>| match &block.certificate {
        Some(certificate) => wanted.contains(certificate) || !droppable(certificate),
        None => true,
    };
    let kept: Vec<_> = present.iter().filter(|block| keep(block)).collect();
    if missing.is_empty() && kept.len() == present.len() {
        return None;
    }
    let mut merged: String = kept.iter().flat_map(|block| [block.text, "\n"]).collect();
    merged.push_str(&encode(missing));
    Some(merged.into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{authority_at, foreign_at, second};

    const GARBAGE: &str = "-----BEGIN CERTIFICATE-----\nbm90IGEgY2VydGlmaWNhdGU=\n-----END CERTIFICATE-----";

    #[test]
    fn merge_is_additive_and_drops_only_what_is_ours() {
        let old = authority_at(0).certificate().clone();
        let new = authority_at(100).certificate().clone();
        let other = foreign_at(0);
        let ours = |certificate: &Certificate| certificate.unit == old.unit;
        let pem = |list: &[&Certificate]| encode(list.iter().copied()).into_bytes();

        // name, existing, wanted, droppable, expected certificates (None: nothing to change)
        type Case<'a> = (&'a str, Vec<u8>, Vec<Certificate>, bool, Option<Vec<&'a Certificate>>);
        let cases: Vec<Case<'_>> = vec![
            ("empty bundle is filled", vec![], vec![new.clone()], false, Some(vec![&new])),
            ("nothing wanted, nothing there", vec![], vec![], true, None),
            ("already there", pem(&[&new]), vec![new.clone()], true, None),
            ("others stay and ours is appended", pem(&[&other]), vec![new.clone()], true, Some(vec![&other, &new])),
            ("ours of before stays while it is in use", pem(&[&old, &new]), vec![new.clone()], false, None),
            ("ours of before goes when it is of no use", pem(&[&other, &old, &new]), vec![new.clone()], true, Some(vec![&other, &new])),
            ("wanted is never dropped", pem(&[&old]), vec![old.clone()], true, None),
            ("two generations", pem(&[&other]), vec![old.clone(), new.clone()], false, Some(vec![&other, &old, &new])),
        ];
        for (name, existing, wanted, drop, expected) in cases {
            let merged = merge(&existing, &wanted, |certificate| drop && ours(certificate));
            let found = merged.as_deref().map(parse);
            assert_eq!(found, expected.map(|list| list.into_iter().cloned().collect()), "{name}");
            if let Some(merged) = merged {
                assert_eq!(merge(&merged, &wanted, |certificate| drop && ours(certificate)), None, "{name}: merging twice changes nothing");
            }
        }
    }

    #[test]
    fn unreadable_blocks_and_unfinished_text_survive_or_are_ignored() {
        let new = authority_at(0).certificate().clone();
        let merged = merge(GARBAGE.as_bytes(), std::slice::from_ref(&new), |_| true).expect("the new one was missing");
        let text = String::from_utf8(merged.clone()).expect("PEM is text");
        assert!(text.contains(GARBAGE), "a block that we cannot read belongs to somebody");
        assert_eq!(parse(&merged), vec![new.clone()]);
        assert_eq!(parse(b"-----BEGIN CERTIFICATE-----\nno end"), vec![]);
        assert_eq!(parse(b"\xff\xfe"), vec![]);
        assert!(new.valid_at(second(10)));
    }
}
