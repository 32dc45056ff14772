//! What the webhook counts. Names and labels are an interface; docs and dashboards rely on them.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use certs::Status;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use tokio::sync::watch;

use super::process;
use super::review::{Endpoint, Facts};

/// Namespaces told apart in labels. A label value comes with the request, so that there must be an end to it.
const MAX_NAMESPACES: usize = 1_000;

type Labels<const N: usize> = [(&'static str, &'static str); N];
type RuleLabels = [(&'static str, Name); 3];

/// A label value that is usually fixed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Name {
    Fixed(&'static str),
    Owned(Arc<str>),
}

impl prometheus_client::encoding::EncodeLabelValue for Name {
    fn encode(&self, encoder: &mut prometheus_client::encoding::LabelValueEncoder<'_>) -> fmt::Result {
        let text: &str = match self {
            Self::Fixed(text) => text,
            Self::Owned(text) => text,
        };
        prometheus_client::encoding::EncodeLabelValue::encode(&text, encoder)
    }
}

/// All metrics of a running webhook.
pub(super) struct Metrics {
    registry: Registry,
    decisions: Family<Labels<4>, Counter>,
    rule_hits: Family<RuleLabels, Counter>,
    duration: Family<Labels<2>, Histogram, fn() -> Histogram>,
    rejected: Family<Labels<1>, Counter>,
    configuration: Family<Labels<1>, Gauge>,
    panics: Counter,
    pub(super) in_flight: Gauge,
    pub(super) connections: Gauge,
    namespaces: Mutex<BTreeSet<Arc<str>>>,
}

fn latency_histogram() -> Histogram {
    Histogram::new(exponential_buckets(0.000_05, 2.0, 16)) // 50 µs … 1.6 s
}

impl Metrics {
    /// Registers everything. `certificate` is where expiry is read from at each scrape.
    pub(super) fn new(certificate: watch::Receiver<Status>) -> Self {
        let mut registry = Registry::default();
        let build = Info::new([("program", "webhook"), ("version", concat!("rs-v", env!("CARGO_PKG_VERSION")))]);
        registry.register("kuberay_build", "The program and its version", build);
        let prefixed = registry.sub_registry_with_prefix("kuberay_webhook");
        let decisions = Family::default();
        prefixed.register(
            "admission_decisions",
            "Reviews answered, by path (validate, mutate), kind, operation, and whether the object was admitted",
            decisions.clone(),
        );
        let rule_hits = Family::default();
        prefixed.register(
            "rule_hits",
            "Findings by rule id, level (error refuses, warning does not) and namespace of the object",
            rule_hits.clone(),
        );
        let duration = Family::new_with_constructor(latency_histogram as fn() -> Histogram);
        prefixed.register("review_duration_seconds", "Time from the complete request body to the answer", duration.clone());
        let rejected = Family::default();
        prefixed.register("requests_rejected", "Requests that were no reviews, by reason", rejected.clone());
        let configuration = Family::default();
        prefixed.register(
            "configuration_valid",
            "1 while the file is in force as it stands, 0 while an earlier content is",
            configuration.clone(),
        );
        let panics = Counter::default();
        prefixed.register("panics", "Reviews that ended in a panic and were answered with status 500", panics.clone());
        let in_flight = Gauge::default();
        prefixed.register("reviews_in_flight", "Reviews being received or answered now", in_flight.clone());
        let connections = Gauge::default();
        prefixed.register("connections", "TLS connections open now", connections.clone());
        registry.register_collector(Box::new(Expiry(certificate)));
        registry.register_collector(Box::new(process::ProcessCollector));
        Self {
            registry,
            decisions,
            rule_hits,
            duration,
            rejected,
            configuration,
            panics,
            in_flight,
            connections,
            namespaces: Mutex::default(),
        }
    }

    /// Counts a finished review.
    pub(super) fn reviewed(&self, endpoint: Endpoint, facts: &Facts, took: Duration) {
        let (mode, kind) = (endpoint.mode.as_str(), endpoint.kind.as_str());
        let allowed = if facts.allowed { "true" } else { "false" };
        self.decisions.get_or_create(&[("path", mode), ("kind", kind), ("operation", facts.operation), ("allowed", allowed)]).inc();
        self.duration.get_or_create(&[("path", mode), ("kind", kind)]).observe(took.as_secs_f64());
        if facts.report.errors.is_empty() && facts.report.warnings.is_empty() {
            return;
        }
        let namespace = self.namespace(&facts.namespace);
        let errors = facts.report.errors.iter().map(|error| (error.rule, "error"));
        let warnings = facts.report.warnings.iter().map(|warning| (warning.rule, "warning"));
        for (rule, level) in errors.chain(warnings) {
            let labels = [("rule", Name::Fixed(rule)), ("level", Name::Fixed(level)), ("namespace", namespace.clone())];
            self.rule_hits.get_or_create(&labels).inc();
        }
    }

    fn namespace(&self, namespace: &str) -> Name {
        let mut known = self.namespaces.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known.get(namespace) {
            return Name::Owned(found.clone());
        }
        if known.len() >= MAX_NAMESPACES {
            return Name::Fixed("(other)");
        }
        let name: Arc<str> = namespace.chars().take(63).collect::<String>().into();
        known.insert(name.clone());
        Name::Owned(name)
    }

    /// Counts a request that was no review.
    pub(super) fn rejected(&self, reason: &'static str) {
        self.rejected.get_or_create(&[("reason", reason)]).inc();
    }

    /// Whether a configuration file (`defaults`, `rules`) is in force as it stands.
    pub(super) fn configuration_valid(&self, file: &'static str) -> Gauge {
        self.configuration.get_or_create_owned(&[("file", file)])
    }

    /// Counts a review that panicked.
    pub(super) fn panicked(&self) {
        self.panics.inc();
    }

    /// Everything in the OpenMetrics text format.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a String fails only if a metric's own encoder does.
        if let Err(error) = encode(&mut text, &self.registry) {
            tracing::error!(%error, "metrics cannot be encoded");
        }
        text
    }
}

/// Reads the certificate's end at each scrape.
#[derive(Debug)]
struct Expiry(watch::Receiver<Status>);

impl Collector for Expiry {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let status = self.0.borrow();
        let moments = [("serving", status.not_after), ("ca", status.authority_not_after)];
        let mut family = encoder.encode_descriptor(
            "kuberay_webhook_certificate_not_after_seconds",
            "End of the certificate's life, in seconds since 1970",
            None,
            MetricType::Gauge,
        )?;
        for (certificate, moment) in moments {
            if let Some(moment) = moment {
                let labels = [("certificate", certificate)];
                ConstGauge::new(moment.as_second()).encode(family.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use shared::validation::{ErrorType, FieldError, Kind, Report};

    use super::*;
    use crate::serve::review::Mode;

    fn facts(namespace: &str) -> Facts {
        let error = FieldError { path: "spec".into(), kind: ErrorType::Required, message: "m".into(), rule: "V-C-10" };
        Facts {
            operation: "CREATE",
            allowed: false,
            namespace: namespace.into(),
            name: "n".into(),
            dry_run: false,
            problem: None,
            report: Report { errors: vec![error], ..Report::default() },
        }
    }

    #[test]
    fn names_and_labels_are_those_of_the_documentation() {
        let status = Status { not_after: Some(jiff::Timestamp::from_second(1_800_000_000).expect("in range")), ..Status::default() };
        let metrics = Metrics::new(watch::channel(status).1);
        let endpoint = Endpoint { mode: Mode::Validate, kind: Kind::RayJob };
        metrics.reviewed(endpoint, &facts("team-a"), Duration::from_micros(70));
        metrics.rejected("too large");
        metrics.panicked();
        let text = metrics.text();
        for line in [
            r#"kuberay_webhook_admission_decisions_total{path="validate",kind="RayJob",operation="CREATE",allowed="false"} 1"#,
            r#"kuberay_webhook_rule_hits_total{rule="V-C-10",level="error",namespace="team-a"} 1"#,
            r#"kuberay_webhook_review_duration_seconds_count{path="validate",kind="RayJob"} 1"#,
            r#"kuberay_webhook_review_duration_seconds_bucket{le="0.0001",path="validate",kind="RayJob"} 1"#,
            r#"kuberay_webhook_requests_rejected_total{reason="too large"} 1"#,
            concat!(r#"kuberay_build_info{program="webhook",version="rs-v"#, env!("CARGO_PKG_VERSION"), r#""} 1"#),
            "kuberay_webhook_panics_total 1",
            "kuberay_webhook_reviews_in_flight 0",
            "kuberay_webhook_connections 0",
            r#"kuberay_webhook_certificate_not_after_seconds{certificate="serving"} 1800000000"#,
            "process_resident_memory_bytes ",
            "process_cpu_seconds_total ",
        ] {
            assert!(text.lines().any(|found| found.starts_with(line)), "no line {line} in:\n{text}");
        }
        assert!(text.ends_with("# EOF\n"));
    }

    #[test]
    fn namespaces_of_strangers_do_not_fill_the_memory() {
        let metrics = Metrics::new(watch::channel(Status::default()).1);
        let endpoint = Endpoint { mode: Mode::Validate, kind: Kind::RayJob };
        for number in 0..MAX_NAMESPACES + 50 {
            metrics.reviewed(endpoint, &facts(&format!("ns-{number}")), Duration::ZERO);
        }
        let text = metrics.text();
        let series = text.lines().filter(|line| line.starts_with("kuberay_webhook_rule_hits_total{")).count();
        assert_eq!(series, MAX_NAMESPACES + 1);
        assert!(text.contains(r#"kuberay_webhook_rule_hits_total{rule="V-C-10",level="error",namespace="(other)"} 50"#));
    }
}
