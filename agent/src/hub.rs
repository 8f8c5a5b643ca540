//! What the agent sees of the hub.

use futures::StreamExt;
use kube::core::PartialObjectMeta;
use kube::{Api, Client};
use tenant_records_api::TenantRecordReport;
use tenant_records_runtime::{Signal, Update, live_watch};

use crate::contact::Contact;
use crate::metrics::Metrics;

/// Watches the cluster's own reports for ever: that the watch hears something shows that the hub would be heard, too,
/// if it had something to say.
pub(crate) async fn listen(client: Client, cluster: &str, contact: &Contact, metrics: &Metrics) {
    let reports = Api::<PartialObjectMeta<TenantRecordReport>>::namespaced(client, cluster);
    let mut signals = std::pin::pin!(live_watch(reports));
    while let Some(signal) = signals.next().await {
        if matches!(signal, Signal::Update(Update::Failed(_))) {
            continue;
        }
        if contact.is_current().is_err() {
            tracing::info!(cluster, "hearing the hub");
        }
        contact.heard();
        metrics.hub_heard();
    }
}
