//! The CA's Secret: what its keys mean, and what state it is in.
//!
//! | key | content |
//! |---|---|
//! | `tls.crt`, `tls.key` | the CA that signs now |
//! | `next.crt`, `next.key` | its successor, only while a rotation is under way |
//! | `ca-bundle.crt` | every CA certificate that clients have to trust: this one, the next, earlier ones whose leaves may live |
//!
//! Keys, labels and annotations of others in the same Secret are left alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::ObjectMeta;

use crate::bundle;
use crate::x509::{Certificate, CertificateAuthority};

/// Certificate of the CA that signs.
pub const CERTIFICATE: &str = "tls.crt";
/// Private key of the CA that signs.
pub const KEY: &str = "tls.key";
/// Certificate of the CA that will sign next.
pub const NEXT_CERTIFICATE: &str = "next.crt";
/// Private key of the CA that will sign next.
pub const NEXT_KEY: &str = "next.key";
/// Every certificate that clients have to trust.
pub const BUNDLE: &str = "ca-bundle.crt";
/// Annotation: since when (RFC 3339) the CA in `tls.crt` signs. Earlier CAs are dropped one leaf life after it.
pub const ACTIVATED: &str = "webhook.ray.io/ca-activated-at";

/// What was found in the cluster.
#[derive(Debug)]
pub enum SecretState {
    /// There is no such Secret.
    Absent,
    /// It is there, but nothing can be signed with it.
    Broken {
        /// What is wrong, in words.
        problem: String,
        /// Certificates that could still be read from its bundle.
        bundle: Vec<Certificate>,
    },
    /// It holds a CA.
    Sound(Material),
}

/// Everything that an authority keeps in its Secret.
#[derive(Clone, Debug)]
pub struct Material {
    /// Signs now.
    pub current: Arc<CertificateAuthority>,
    /// Will sign when every configuration trusts it.
    pub next: Option<Arc<CertificateAuthority>>,
    /// What clients have to trust.
    pub bundle: Vec<Certificate>,
    /// Since when `current` signs; `None` when nobody wrote it down.
    pub activated: Option<Timestamp>,
    /// When the API server last saw a write to the Secret, by *its* clock.
    pub written: Option<Timestamp>,
}

/// Reads a Secret as the API server returned it.
pub fn read(secret: Option<&Secret>) -> SecretState {
    let Some(secret) = secret else { return SecretState::Absent };
    let data = secret.data.as_ref();
    let get = |key: &str| data.and_then(|data| data.get(key)).map_or(&[][..], |value| value.0.as_slice());
    let bundle = bundle::parse(get(BUNDLE));
    let current = match CertificateAuthority::from_pem(get(CERTIFICATE), get(KEY)) {
        Ok(current) => Arc::new(current),
        Err(error) => return SecretState::Broken { problem: format!("{CERTIFICATE} and {KEY}: {error}"), bundle },
    };
    let next = CertificateAuthority::from_pem(get(NEXT_CERTIFICATE), get(NEXT_KEY)).ok().map(Arc::new);
    let annotations = secret.metadata.annotations.as_ref();
    let activated = annotations.and_then(|all| all.get(ACTIVATED)).and_then(|text| text.parse().ok());
    SecretState::Sound(Material { current, next, bundle, activated, written: server_time(&secret.metadata) })
}

/// The newest time that the API server itself wrote into an object's metadata.
fn server_time(metadata: &ObjectMeta) -> Option<Timestamp> {
    let managed = metadata.managed_fields.iter().flatten().filter_map(|entry| entry.time.as_ref());
    managed.chain(&metadata.creation_timestamp).map(|time| time.0).max()
}

/// Puts `material` into `secret`, leaving everything else in it as it was.
pub fn fill(secret: &mut Secret, material: &Material) {
    let data = secret.data.get_or_insert_with(BTreeMap::new);
    let mut put = |key: &str, text: Option<String>| match text {
        Some(text) => drop(data.insert(key.to_owned(), ByteString(text.into_bytes()))),
        None => drop(data.remove(key)),
    };
    put(CERTIFICATE, Some(material.current.certificate().to_pem()));
    put(KEY, Some(material.current.key_pem()));
    put(NEXT_CERTIFICATE, material.next.as_ref().map(|next| next.certificate().to_pem()));
    put(NEXT_KEY, material.next.as_ref().map(|next| next.key_pem()));
    put(BUNDLE, Some(bundle::encode(&material.bundle)));
    let annotations = secret.metadata.annotations.get_or_insert_with(BTreeMap::new);
    match material.activated {
        Some(activated) => drop(annotations.insert(ACTIVATED.to_owned(), activated.to_string())),
        None => drop(annotations.remove(ACTIVATED)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{authority_at, foreign_at, second};

    fn material() -> Material {
        let (current, next) = (authority_at(0), authority_at(600));
        let bundle = vec![current.certificate().clone(), next.certificate().clone(), foreign_at(0)];
        Material { current, next: Some(next), bundle, activated: Some(second(5)), written: None }
    }

    fn secret(material: &Material) -> Secret {
        let mut secret = Secret::default();
        fill(&mut secret, material);
        secret
    }

    #[test]
    fn what_is_written_is_read_back() {
        let material = material();
        let SecretState::Sound(read) = read(Some(&secret(&material))) else { panic!("sound material was not recognised") };
        assert_eq!(read.current.certificate(), material.current.certificate());
        assert_eq!(read.current.key_pem(), material.current.key_pem());
        assert_eq!(read.next.map(|next| next.certificate().clone()), material.next.map(|next| next.certificate().clone()));
        assert_eq!(read.bundle, material.bundle);
        assert_eq!(read.activated, material.activated);
    }

    #[test]
    fn foreign_keys_stay_and_a_finished_rotation_leaves_no_key_behind() {
        let mut material = material();
        let mut secret = secret(&material);
        secret.data.get_or_insert_default().insert("theirs".into(), ByteString(b"x".to_vec()));
        secret.metadata.labels = Some([("app".to_owned(), "x".to_owned())].into());
        material.next = None;
        fill(&mut secret, &material);
        let data = secret.data.expect("filled");
        let keys: Vec<_> = data.keys().map(String::as_str).collect();
        assert_eq!(keys, [BUNDLE, "theirs", CERTIFICATE, KEY]);
        assert!(secret.metadata.labels.is_some());
    }

    #[test]
    fn broken_secrets_are_recognised() {
        let good = material();
        let with = |key: &str, value: Option<&[u8]>| {
            let mut secret = secret(&good);
            let data = secret.data.get_or_insert_default();
            match value {
                Some(value) => drop(data.insert(key.into(), ByteString(value.to_vec()))),
                None => drop(data.remove(key)),
            }
            secret
        };
        let other_key = authority_at(7).key_pem();
        let leaf = good.current.sign_leaf(&["a.b.svc".into()], &crate::testing::lifetimes(), second(0)).expect("signs");
        let cases = [
            ("empty", Secret::default(), Some("no readable certificate")),
            ("no certificate", with(CERTIFICATE, None), Some("no readable certificate")),
            ("no key", with(KEY, None), Some("no readable private key")),
            (
                "garbage key",
                with(KEY, Some(b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n")),
                Some("no readable private key"),
            ),
            ("key of another", with(KEY, Some(other_key.as_bytes())), Some("do not belong together")),
            ("garbage certificate", with(CERTIFICATE, Some(b"\xff")), Some("no readable certificate")),
            ("truncated bundle is no fault of the CA", with(BUNDLE, Some(b"-----BEGIN CERT")), None),
            ("broken successor is no fault of the CA", with(NEXT_KEY, Some(b"x")), None),
        ];
        for (name, secret, expected) in cases {
            match (read(Some(&secret)), expected) {
                (SecretState::Broken { problem, .. }, Some(text)) => assert!(problem.contains(text), "{name}: {problem}"),
                (SecretState::Sound(_), None) => {}
                (state, _) => panic!("{name}: {state:?}"),
            }
        }
        assert!(matches!(read(None), SecretState::Absent));
        assert!(!leaf.certificate.is_authority);
    }

    #[test]
    fn private_keys_do_not_show_in_debug_output() {
        let material = material();
        let shown = format!("{:?}", SecretState::Sound(material.clone()));
        assert!(!shown.contains("PRIVATE"));
        let key = material.current.key_pem();
        let line = key.lines().nth(1).expect("PEM has a body");
        assert!(!shown.contains(line));
    }
}
