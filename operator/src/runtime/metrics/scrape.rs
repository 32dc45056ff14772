//! Facts that are read from the caches when somebody asks (RC-260, RC-261).

use std::fmt;

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric as _},
    metrics::{MetricType, gauge::ConstGauge},
};

/// One series: its labels in order.
type Labels = Vec<(&'static str, String)>;

/// A gauge whose series are made when somebody asks.
pub struct Gauges<F> {
    name: &'static str,
    help: &'static str,
    series: F,
}

impl<F: Fn() -> Vec<(Labels, i64)> + Send + Sync + 'static> Gauges<F> {
    /// A gauge called `name`; `series` gives labels and value of each of its series.
    pub fn new(name: &'static str, help: &'static str, series: F) -> Self {
        Self { name, help, series }
    }
}

impl<F> fmt::Debug for Gauges<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Gauges").field(&self.name).finish()
    }
}

impl<F: Fn() -> Vec<(Labels, i64)> + Send + Sync + 'static> Collector for Gauges<F> {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let mut family = encoder.encode_descriptor(self.name, self.help, None, MetricType::Gauge)?;
        for (labels, value) in (self.series)() {
            ConstGauge::new(value).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }
}
