//! What the operator tells Prometheus (RC-260..RC-263).
//!
//! Names and labels are KubeRay's where KubeRay has them, so that existing dashboards go on working. Facts about Ray objects are
//! read from the caches when somebody asks ([`scrape`]) and cost nothing in between.

pub mod process;
mod record;
pub mod scrape;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::{collector::Collector, encoding::text, metrics::info::Info, registry::Registry};
pub use record::Outcome;
use record::Records;

use crate::settings::VERSION;

/// Handle to all metrics. Clones share them.
#[derive(Clone)]
pub struct Metrics {
    records: Arc<Records>,
    registry: Arc<Mutex<Registry>>,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::default();
        // Joined by target, this tells our series from those of other programs that use the same names.
        registry.register("kuberay_build", "The program and its version", Info::new([("program", "operator"), ("version", VERSION)]));
        let records = Arc::new(Records::new(&mut registry));
        registry.register_collector(Box::new(process::ProcessCollector));
        Self { records, registry: Arc::new(Mutex::new(registry)) }
    }
}

impl std::ops::Deref for Metrics {
    type Target = Records;

    fn deref(&self) -> &Records {
        &self.records
    }
}

impl Metrics {
    /// Adds the metrics about Ray objects, which are there only with `--enable-metrics` (RC-260).
    pub fn enable_kuberay(&self) {
        self.records.register_kuberay(&mut self.registry.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Adds facts that are gathered when somebody asks.
    pub fn add(&self, collector: impl Collector) {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner).register_collector(Box::new(collector));
    }

    /// All metrics in the OpenMetrics text format.
    pub fn render(&self) -> String {
        let mut out = String::new();
        // Writing to a string cannot fail.
        let _ = text::encode(&mut out, &self.registry.lock().unwrap_or_else(PoisonError::into_inner));
        out
    }
}

/// Content type of [`Metrics::render`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
