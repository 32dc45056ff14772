//! Names and annotations of the four kinds (V-C-1, V-C-2, V-J-1, V-J-2, V-S-1..3, V-CJ-1, C-06).

use super::{
    ErrorType, Findings, Kind, Path, Subject,
    json::{Json, Shown},
    names::is_dns1035_label,
};
use crate::{
    duration::{self, GoDuration},
    labels,
    names::{MAX_RAY_CLUSTER_NAME, MAX_RAY_CRON_JOB_NAME, MAX_RAY_JOB_NAME},
};

pub(crate) const INITIALIZING_TIMEOUT: &str = "ray.io/initializing-timeout";

pub(super) fn examine(subject: &Subject<'_>, out: &mut Findings) {
    let metadata = Path::root("metadata");
    examine_name(subject, &metadata.field("name"), out);
    if subject.kind == Kind::RayService {
        examine_timeout(subject, &metadata.field("annotations").key(INITIALIZING_TIMEOUT), out);
    }
    if subject.object.at("apiVersion").text() == Some("ray.io/v1alpha1") {
        out.warn(&Path::root("apiVersion"), "W-X-1", "ray.io/v1alpha1 is deprecated and knows fewer fields; write ray.io/v1");
    }
}

/// The rules about a kind's name: length, its rule, the character rule, and what the room is needed for.
const fn limits(kind: Kind) -> (usize, &'static str, &'static str, &'static str) {
    match kind {
        Kind::RayCluster => (MAX_RAY_CLUSTER_NAME, "V-C-1", "V-C-2", "its Services and Pods get longer names"),
        Kind::RayJob => (MAX_RAY_JOB_NAME, "V-J-1", "V-J-2", "its RayCluster, Services and Pods get longer names"),
        Kind::RayService => (MAX_RAY_JOB_NAME, "V-S-1", "V-S-2", "its RayClusters, Services and Pods get longer names"),
        Kind::RayCronJob => (MAX_RAY_CRON_JOB_NAME, "V-CJ-1", "C-06", "each RayJob gets the time of its run behind the name"),
    }
}

fn examine_name(subject: &Subject<'_>, path: &Path<'_>, out: &mut Findings) {
    let Some(name) = subject.object.at("metadata").at("name").filled() else {
        // With generateName the API server has not chosen the name yet; it appends five characters.
        let prefix = subject.object.at("metadata").at("generateName");
        if let Some(prefix) = prefix.filled() {
            return examine_prefix(subject.kind, prefix, &Path::root("metadata").field("generateName"), out);
        }
        return out.required(path, limits(subject.kind).2, "there is no name: give the object one");
    };
    let (limit, length_rule, character_rule, why) = limits(subject.kind);
    let length = name.chars().count();
    if length > limit {
        out.error(
            path,
            ErrorType::TooLong,
            length_rule,
            format!(
                "{} has {length} characters; a {} may have at most {limit}, because {why}: shorten it by {}",
                Shown(name),
                subject.kind,
                length - limit
            ),
        );
    }
    // A name that is too long for a DNS label is reported once, as too long.
    if !is_dns1035_label(name) && (length <= limit || !has_label_characters(name)) {
        out.invalid(
            path,
            character_rule,
            format!(
                "{} is not a DNS label, but Services are named after it: use lower-case letters, digits and \"-\" only, begin with a letter and end with a letter or digit",
                Shown(name)
            ),
        );
    }
}

const GENERATED_SUFFIX: usize = 5;

fn examine_prefix(kind: Kind, prefix: &str, path: &Path<'_>, out: &mut Findings) {
    let (limit, length_rule, character_rule, why) = limits(kind);
    let length = prefix.chars().count() + GENERATED_SUFFIX;
    // The API server itself cuts a generateName so that the whole fits into 63 characters; only a shorter limit can be broken.
    if length > limit {
        let room = limit - GENERATED_SUFFIX;
        out.error(
            path,
            ErrorType::TooLong,
            length_rule,
            format!(
                "{} makes a name of {length} characters; a {kind} may have at most {limit}, because {why}: use at most {room} here",
                Shown(prefix)
            ),
        );
    } else if !has_label_characters(prefix) {
        out.invalid(
            path,
            character_rule,
            format!(
                "{} makes a name that is not a DNS label, but Services are named after it: use lower-case letters, digits and \"-\" only, and begin with a letter",
                Shown(prefix)
            ),
        );
    }
}

fn has_label_characters(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        && text.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase())
}

/// V-S-3: the annotation is a Go duration, or a whole number of seconds, above zero.
fn examine_timeout(subject: &Subject<'_>, path: &Path<'_>, out: &mut Findings) {
    let text = subject.annotation(INITIALIZING_TIMEOUT);
    if text.is_empty() {
        return;
    }
    let remedy = "write a duration such as \"10m\" or \"1h30m\", or a number of seconds such as \"600\" (without the annotation there is no time limit)";
    match duration::seconds_or_duration(text) {
        Some(GoDuration { nanoseconds }) if nanoseconds > 0 => {}
        Some(_) => out.invalid(path, "V-S-3", format!("{} is not above zero, so the service would fail at once: {remedy}", Shown(text))),
        None => out.invalid(path, "V-S-3", format!("{} is not a duration: {remedy}", Shown(text))),
    }
}

/// The annotation keys that rules read; a change of any of them makes an UPDATE worth a look (C-19).
pub(super) const VALIDATED_ANNOTATIONS: [&str; 3] =
    [INITIALIZING_TIMEOUT, labels::annotation::FT_ENABLED, labels::annotation::EXTERNAL_STORAGE_NAMESPACE];
