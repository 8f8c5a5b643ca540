//! What `/metrics` tells about records.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

/// The metrics of the engine and its writer.
#[derive(Clone, Debug)]
pub struct Metrics {
    /// Records on the hub.
    pub records: Gauge,
    /// Seconds that a fold of all due records took.
    pub fold_seconds: Histogram,
    /// Seconds that the writes of a record took.
    pub flush_seconds: Histogram,
    /// Flushes by result.
    pub flushes: Family<ResultLabel, Counter>,
    /// Flushes under way.
    pub flushing: Gauge,
}

/// Whether something succeeded.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ResultLabel {
    /// `ok` or `error`.
    pub result: &'static str,
}

impl Metrics {
    /// Adds the metrics to the registry.
    pub fn register(registry: &mut Registry) -> Self {
        let seconds = || Histogram::new(exponential_buckets(0.001, 2.0, 15));
        let metrics = Self {
            records: Gauge::default(),
            fold_seconds: seconds(),
            flush_seconds: seconds(),
            flushes: Family::default(),
            flushing: Gauge::default(),
        };
        let registry = registry.sub_registry_with_prefix("tenant_records");
        registry.register("records", "TenantDeploymentRecords on the hub", metrics.records.clone());
        registry.register("fold_seconds", "Time to fold all due records", metrics.fold_seconds.clone());
        registry.register("flush_seconds", "Time to write a record's pages and root", metrics.flush_seconds.clone());
        registry.register("flushes", "Writes of a record's pages and root, by result", metrics.flushes.clone());
        registry.register("flushing", "Records that are being written", metrics.flushing.clone());
        metrics
    }
}
