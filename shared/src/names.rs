//! Every generated object name (RC-10..RC-16). Names up to their limit are exactly KubeRay's, so that clusters made by it
//! are taken over.
//!
//! Where KubeRay cuts a longer name, two objects can end up with one name: clusters of 51 to 53 characters that end alike share a
//! Secret, a ServiceAccount, a Role and (from 39 characters on) an Ingress, and whoever comes second lives with the first one's.
//! [`distinct`] shortens such a name to its beginning and a hash of the whole instead. The price: for clusters with such names that
//! KubeRay made, these objects are made anew under the new name, and the old ones go with the cluster.

use std::fmt::Write as _;

use sha1::{Digest, Sha1};

use crate::labels::node_type;

/// Longest name of a RayCluster (RC-14).
pub const MAX_RAY_CLUSTER_NAME: usize = 53;
/// Longest name of a RayJob or RayService: a cluster name is this plus `-` and five characters (V-J-1).
pub const MAX_RAY_JOB_NAME: usize = 47;
/// Longest name of a RayCronJob: a RayJob name is this plus `-` and the minute's number (V-C-1).
pub const MAX_RAY_CRON_JOB_NAME: usize = 36;
/// Longest object name that [`check_name`] leaves alone.
const MAX_CHECKED_NAME: usize = 50;
/// Longest value of a label.
const MAX_LABEL: usize = 63;

/// A name of at most 50 bytes that starts with a letter (RC-10): keeps the last 50 bytes, then replaces a leading digit and
/// a leading punctuation mark by `r`.
pub fn check_name(name: &str) -> String {
    replace_leading(&replace_leading(keep_end(name, MAX_CHECKED_NAME), |c| c.is_ascii_digit()), |c| c.is_ascii_punctuation())
}

/// [`check_name`] for names up to its limit; of a longer one the beginning, `-` and eight hexadecimal digits of a hash of the
/// whole, so that different names stay different.
pub fn distinct(name: &str) -> String {
    if name.len() <= MAX_CHECKED_NAME { check_name(name) } else { with_hash(name, MAX_CHECKED_NAME) }
}

/// The beginning of `name`, `-` and a hash of the whole, at most `limit` bytes. A DNS label stays one.
fn with_hash(name: &str, limit: usize) -> String {
    const HASH: usize = 8;
    let mut hash = String::with_capacity(2 * HASH);
    for byte in Sha1::digest(name.as_bytes()).iter().take(HASH / 2) {
        // Writing to a string cannot fail.
        let _ = write!(hash, "{byte:02x}");
    }
    match keep_start(name, limit.saturating_sub(HASH + 1)).trim_end_matches(|c: char| !c.is_alphanumeric()) {
        "" => format!("r{hash}"),
        start => check_name(&format!("{start}-{hash}")),
    }
}

/// A label value or Job name of at most 63 bytes (RC-11): keeps the last 63 bytes, then replaces a leading punctuation mark.
pub fn check_label(value: &str) -> String {
    replace_leading(keep_end(value, MAX_LABEL), |c| c.is_ascii_punctuation())
}

/// An OpenShift Route's name, which must leave room for the namespace in a DNS label (RC-13): with the namespace at most 51 bytes.
/// A longer one ends in a hash, as [`distinct`] has it.
pub fn check_route_name(name: &str, namespace: &str) -> String {
    let limit = (MAX_CHECKED_NAME + 1).saturating_sub(namespace.len());
    if name.len() <= limit { check_name(name) } else { with_hash(name, limit) }
}

/// Name (or, with `generate`, the prefix of a generated name) of a Pod (RC-12).
pub fn pod_name(prefix: &str, node_type: &str, generate: bool) -> String {
    let tail = if generate { "-" } else { "" };
    format!("{}-{node_type}{tail}", keep_start(prefix, MAX_CHECKED_NAME)).to_lowercase()
}

/// Name of the head Pod of a cluster where it is to have no random part (RC-15). It is never cut: the longest cluster name fits.
pub fn head_pod(cluster: &str) -> String {
    format!("{cluster}-{}", node_type::HEAD).to_lowercase()
}

/// `generateName` of the workers of a group (RC-15).
pub fn worker_pod_prefix(cluster: &str, group: &str) -> String {
    pod_name(&format!("{cluster}-{group}"), node_type::WORKER, true)
}

/// Name of the head Service made for a RayCluster, RayJob or RayService called `owner` (RC-15, RJ-90).
pub fn head_service(owner: &str) -> String {
    format!("{owner}-head-svc")
}

/// Name of the headless Service of multi-host workers (RC-15).
pub fn headless_service(cluster: &str) -> String {
    format!("{cluster}-headless")
}

/// Name of the serve Service made for a RayCluster or RayService (RC-15).
pub fn serve_service(owner: &str) -> String {
    format!("{owner}-serve-svc")
}

/// Name of the Ingress of a cluster's dashboard (RC-15).
pub fn ingress(cluster: &str) -> String {
    distinct(&format!("{cluster}-head-ingress"))
}

/// Name of the OpenShift Route of a cluster's dashboard (RC-15).
pub fn route(cluster: &str, namespace: &str) -> String {
    check_route_name(&format!("{cluster}-head-route"), namespace)
}

/// Name of the Secret with the cluster's token (RC-15).
pub fn auth_secret(cluster: &str) -> String {
    distinct(cluster)
}

/// Name of the Volcano PodGroup of a RayCluster or RayJob called `owner` (BS-11).
pub fn volcano_group(owner: &str) -> String {
    format!("ray-{owner}-pg")
}

/// Name of the ServiceAccount that the operator makes for a cluster's autoscaler (RC-15).
pub fn autoscaler_account(cluster: &str) -> String {
    distinct(cluster)
}

/// Name of the Role and RoleBinding of a cluster's autoscaler (RC-15).
pub fn autoscaler_role(cluster: &str) -> String {
    distinct(cluster)
}

/// Name of the Secret with the head's certificate (RC-15).
pub fn head_tls_secret(cluster: &str) -> String {
    format!("ray-head-secret-{cluster}")
}

/// Name of the Secret with the workers' certificate (RC-15).
pub fn worker_tls_secret(cluster: &str) -> String {
    format!("ray-worker-secret-{cluster}")
}

/// Name of the claim for embedded GCS storage (RC-15).
pub fn gcs_claim(cluster: &str) -> String {
    format!("{cluster}-gcs-pvc")
}

/// Name of the Job that removes a cluster's keys from Redis (RC-15).
pub fn redis_cleanup_job(cluster: &str) -> String {
    let name = format!("{cluster}-redis-cleanup");
    if name.len() <= MAX_LABEL { check_label(&name) } else { with_hash(&name, MAX_LABEL) }
}

/// Value of the identifier label (RC-17).
pub fn identifier(cluster: &str, node_type: &str) -> String {
    check_label(&format!("{cluster}-{node_type}"))
}

/// Name under which a Service answers in the whole cluster (RC-16).
pub fn fqdn(service: &str, namespace: &str, domain: &str) -> String {
    format!("{service}.{namespace}.svc.{domain}")
}

/// Alphabet of generated suffixes: no vowels, so that no words arise, and nothing that is easily misread (RC-15, RJ-31).
pub const SUFFIX_ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// Turns random numbers into a suffix of as many characters.
pub fn suffix(random: &[u8]) -> String {
    random.iter().filter_map(|byte| SUFFIX_ALPHABET.get(usize::from(*byte) % SUFFIX_ALPHABET.len())).map(|byte| char::from(*byte)).collect()
}

fn keep_end(text: &str, bytes: usize) -> &str {
    let from = text.len().saturating_sub(bytes);
    (from..=text.len()).find_map(|at| text.get(at..)).unwrap_or_default()
}

fn keep_start(text: &str, bytes: usize) -> &str {
    let to = text.len().min(bytes);
    (0..=to).rev().find_map(|at| text.get(..at)).unwrap_or_default()
}

fn replace_leading(text: &str, bad: impl Fn(char) -> bool) -> String {
    match text.chars().next() {
        Some(first) if bad(first) => format!("r{}", text.get(first.len_utf8()..).unwrap_or_default()),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_cut_as_kuberay_cuts_them() {
        let table = [
            ("72fbcc7e-a661-4b18e-ca41-e903-fc3ae634b18e-lazer090scholar-director-s", "rca41-e903-fc3ae634b18e-lazer090scholar-director-s"),
            ("--------566666--------444433-----------222222----------4444", "r6666--------444433-----------222222----------4444"),
            ("acceptable-name-head-12345", "acceptable-name-head-12345"),
            ("1st", "rst"),
            ("", ""),
        ];
        for (name, wanted) in table {
            assert_eq!(check_name(name), wanted);
        }
    }

    /// RC-302, with a hash where KubeRay only cuts.
    #[test]
    fn route_names_leave_room_for_the_namespace() {
        let table = [
            ("cv-traffic-training-2024020909", "cv-traffic-training-2024020909"),
            ("2-step-cv-training-network-rev", "r-step-cv-training-network-rev"),
            ("cv-traffic-training-202402090958", "cv-traffic-training-2-53176d8d"),
            ("2-step-cv-training-network-revisited", "r-step-cv-training-ne-c17757e3"),
        ];
        for (name, wanted) in table {
            assert_eq!(check_route_name(name, "development-namespace"), wanted);
        }
        assert_eq!(check_route_name("abc", &"n".repeat(60)), "ra9993e36");
    }

    #[test]
    fn names_that_are_cut_stay_different() {
        let long = |first: char| format!("{first}{}", "x".repeat(52));
        assert_eq!(distinct("acceptable-name-head-12345"), "acceptable-name-head-12345");
        assert_eq!(distinct(&"x".repeat(50)), "x".repeat(50));
        for (a, b) in [(long('a'), long('b')), (format!("{}-a", "x".repeat(51)), format!("{}-b", "x".repeat(51)))] {
            assert_ne!(distinct(&a), distinct(&b));
            for name in [distinct(&a), ingress(&a), autoscaler_role(&a), auth_secret(&a)] {
                assert!(name.len() <= 50 && !name.contains("--") && !name.ends_with('-'), "{name}");
            }
            assert!(redis_cleanup_job(&a).len() <= 63);
            assert_ne!(redis_cleanup_job(&a), redis_cleanup_job(&b));
            assert_ne!(ingress(&a), ingress(&b));
            assert_ne!(head_pod(&a), head_pod(&b));
        }
        assert_eq!(redis_cleanup_job("c"), "c-redis-cleanup");
        assert_eq!(head_pod("raycluster-sample"), pod_name("raycluster-sample", "head", false));
    }

    #[test]
    fn pod_names_keep_the_start_of_their_prefix() {
        let long = "ray-cluster-0000000000000000000000011111111122222233333333333333-group-name";
        assert_eq!(pod_name(long, "worker", true), "ray-cluster-00000000000000000000000111111111222222-worker-");
        assert_eq!(pod_name(long, "head", false), "ray-cluster-00000000000000000000000111111111222222-head");
        assert_eq!(worker_pod_prefix("c", "G"), "c-g-worker-");
    }

    #[test]
    fn cutting_never_splits_a_character() {
        assert_eq!(check_name(&"é".repeat(26)), "é".repeat(25));
        assert_eq!(keep_start("éé", 3), "é");
        assert_eq!(keep_end("éé", 3), "é");
    }

    #[test]
    fn suffixes_use_the_safe_alphabet() {
        assert_eq!(suffix(&[0, 26, 27, 255, 5]), "b9bqh");
    }
}
