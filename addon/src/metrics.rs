//! What the manager counts.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

/// Counters of one manager.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    reconciles: Family<ReconcileLabels, Counter>,
    writes: Family<WriteLabels, Counter>,
    certificates: Family<CertificateLabels, Counter>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReconcileLabels {
    subject: &'static str,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WriteLabels {
    resource: String,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CertificateLabels {
    decision: &'static str,
    reason: &'static str,
}

impl Metrics {
    /// Makes the counters part of a registry, with the prefix `ocm_addon`.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let registry = registry.sub_registry_with_prefix("ocm_addon");
        registry.register("reconciles", "Attempts to bring something to its wanted state", metrics.reconciles.clone());
        registry.register("writes", "Writes to the hub's API server", metrics.writes.clone());
        registry.register(
            "certificate_requests",
            "Decisions on requests for agents' certificates",
            metrics.certificates.clone(),
        );
        metrics
    }

    pub(crate) fn reconciled(&self, subject: &'static str, outcome: &'static str) {
        self.reconciles.get_or_create(&ReconcileLabels { subject, outcome }).inc();
    }

    pub(crate) fn wrote(&self, resource: &str, outcome: &'static str) {
        self.writes.get_or_create(&WriteLabels { resource: resource.into(), outcome }).inc();
    }

    pub(crate) fn decided(&self, decision: &'static str, reason: &'static str) {
        self.certificates.get_or_create(&CertificateLabels { decision, reason }).inc();
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;

    use super::*;

    #[test]
    fn names_and_labels() {
        let mut registry = Registry::default();
        let metrics = Metrics::register(&mut registry);
        metrics.reconciled("addon", "done");
        metrics.wrote("manifestworks", "conflict");
        metrics.decided("denied", "AddOnUsagesNotAllowed");
        let mut text = String::new();
        encode(&mut text, &registry).expect("encoded");
        for line in [
            r#"ocm_addon_reconciles_total{subject="addon",outcome="done"} 1"#,
            r#"ocm_addon_writes_total{resource="manifestworks",outcome="conflict"} 1"#,
            r#"ocm_addon_certificate_requests_total{decision="denied",reason="AddOnUsagesNotAllowed"} 1"#,
        ] {
            assert!(text.lines().any(|found| found == line), "{line} isn't in\n{text}");
        }
    }
}
