//! Requests for agents' certificates.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use super::{ReconcileError, Reconciler, is_templated};
use crate::change::seen;
use crate::csr::{CSR_APPROVED, CSR_DENIED, CertificateSigningRequest, Refusal, Verdict, review};
use crate::registration::kube_client_registration;

impl Reconciler {
    /// Judges one request, once the add-on is enabled on the cluster that it names.
    pub(super) async fn reconcile_certificate(&self, name: &str) -> Result<(), ReconcileError> {
        let addon = self.addon.name();
        let request = {
            let view = self.view();
            let Some(request) = view.request(name) else { return Ok(()) };
            let Some(cluster) = request.cluster() else { return Ok(()) };
            match view.addon(addon, cluster) {
                Some(enabled) if view.has_cluster(cluster) && !is_templated(&enabled) => request,
                _ => return Ok(()),
            }
        };
        let cluster = request.cluster().unwrap_or_default();
        let agent = kube_client_registration(&*self.addon, cluster).subject;
        match review(&request, addon, cluster, &agent) {
            Verdict::Ignore => Ok(()),
            Verdict::Approve => {
                self.hub.decide(&self.kinds.request, name, &approval(&request)).await?;
                self.view().forget_request(name);
                self.metrics.decided("approved", "");
                tracing::info!(addon, cluster, request = name, "approved an agent's certificate");
                Ok(())
            }
            Verdict::Deny(refusal) => {
                self.hub.decide(&self.kinds.request, name, &denial(&request, &refusal)).await?;
                self.view().forget_request(name);
                self.metrics.decided("denied", refusal.reason());
                tracing::warn!(addon, cluster, request = name, reason = %refusal, "refused a certificate");
                Ok(())
            }
        }
    }
}

/// OCM's own words.
fn approval(request: &CertificateSigningRequest) -> Value {
    let (reason, message) = ("AutoApprovedByHubCSRApprovingController", "Auto approving addon agent certificate.");
    decision(request, CSR_APPROVED, reason, message.into())
}

fn denial(request: &CertificateSigningRequest, refusal: &Refusal) -> Value {
    decision(request, CSR_DENIED, refusal.reason(), refusal.to_string())
}

/// A patch for the state that was seen, in which nobody had decided.
fn decision(request: &CertificateSigningRequest, type_: &str, reason: &str, message: String) -> Value {
    json!({
        "metadata": seen(&request.metadata),
        "status": {"conditions": [{
            "type": type_,
            "status": "True",
            "reason": reason,
            "message": message,
            "lastUpdateTime": Time(Timestamp::now()),
        }]},
    })
}
