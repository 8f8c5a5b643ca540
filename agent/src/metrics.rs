//! What `/metrics` tells.

use jiff::Timestamp;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// The agent's metrics.
#[derive(Clone, Debug, Default)]
pub(crate) struct Metrics {
    hub_heard: Gauge,
    certificate_ends: Gauge,
    pub(crate) lease_renewals: Counter,
}

impl Metrics {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let registry = registry.sub_registry_with_prefix("tenant_records_agent");
        registry.register(
            "hub_last_heard_timestamp_seconds",
            "When the hub was heard last, as Unix time",
            metrics.hub_heard.clone(),
        );
        registry.register(
            "hub_certificate_end_timestamp_seconds",
            "When the client certificate for the hub ends, as Unix time; 0 without one",
            metrics.certificate_ends.clone(),
        );
        registry.register("lease_renewals", "Renewals of the add-on's Lease", metrics.lease_renewals.clone());
        metrics
    }

    pub(crate) fn hub_heard(&self) {
        self.hub_heard.set(Timestamp::now().as_second());
    }

    pub(crate) fn certificate_ends(&self, at: Option<Timestamp>) {
        self.certificate_ends.set(at.map_or(0, Timestamp::as_second));
    }
}
