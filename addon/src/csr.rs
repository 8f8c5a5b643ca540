//! Which requests for an agent's certificate are approved.
//!
//! An approved certificate is an identity on the hub until it expires, so everything about a request is checked: who asks,
//! for which signer and usages, and every part of the request proper. What isn't known to be right is refused.

mod pkcs10;

use std::collections::BTreeSet;

use k8s_openapi::ByteString;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use tenant_records_api::lean_resource;
use tenant_records_api::ocm::{LABEL_ADDON_NAME, LABEL_CLUSTER_NAME, Subject, lean_metadata, or_default};

use crate::registration::{GROUP_AUTHENTICATED, KUBE_CLIENT_SIGNER};
pub use pkcs10::RequestError;

/// The condition of an approved request.
pub const CSR_APPROVED: &str = "Approved";
/// The condition of a refused request.
pub const CSR_DENIED: &str = "Denied";

/// The account of OCM's gRPC server, which asks on behalf of agents.
const GRPC_SERVER: &str = "system:serviceaccount:open-cluster-management-hub:grpc-server-sa";
/// The annotation in which OCM's gRPC server says on whose behalf it asks.
const ANNOTATION_GRPC_USER: &str = "open-cluster-management.io/csr-user";
/// The usages that a certificate may have that isn't more than a client's.
const CLIENT_USAGES: [&str; 3] = [CLIENT_AUTH, "digital signature", "key encipherment"];
const CLIENT_AUTH: &str = "client auth";

/// A request for a certificate.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct CertificateSigningRequest {
    /// Standard metadata without managedFields. Its author chose labels and annotations.
    #[serde(deserialize_with = "lean_metadata")]
    pub metadata: ObjectMeta,
    /// What is asked for, and by whom. It never changes.
    #[serde(default, deserialize_with = "or_default")]
    pub spec: CsrSpec,
    /// What became of it.
    #[serde(default, deserialize_with = "or_default")]
    pub status: CsrStatus,
}
lean_resource!(
    CertificateSigningRequest,
    "certificates.k8s.io",
    "v1",
    "certificatesigningrequests",
    ClusterResourceScope
);

/// What is asked for, and by whom.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CsrSpec {
    /// The request proper: PEM.
    #[serde(deserialize_with = "or_default")]
    pub request: ByteString,
    /// Who should sign.
    #[serde(deserialize_with = "or_default")]
    pub signer_name: String,
    /// What the certificate is for.
    #[serde(deserialize_with = "or_default")]
    pub usages: Vec<String>,
    /// Who asks, as the API server knows.
    #[serde(deserialize_with = "or_default")]
    pub username: String,
    /// The groups of who asks, as the API server knows.
    #[serde(deserialize_with = "or_default")]
    pub groups: Vec<String>,
}

/// What became of a request.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct CsrStatus {
    /// [`CSR_APPROVED`], [`CSR_DENIED`] or `Failed`.
    #[serde(deserialize_with = "or_default")]
    pub conditions: Vec<CsrCondition>,
}

/// The type of a request's condition.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct CsrCondition {
    /// The condition's type.
    #[serde(rename = "type", deserialize_with = "or_default")]
    pub type_: String,
}

impl CertificateSigningRequest {
    /// Whether the request has been approved or refused, or has failed.
    pub fn is_decided(&self) -> bool {
        !self.status.conditions.is_empty()
    }

    /// The cluster that the request says it comes from.
    pub fn cluster(&self) -> Option<&str> {
        self.label(LABEL_CLUSTER_NAME)
    }

    fn label(&self, key: &str) -> Option<&str> {
        self.metadata.labels.as_ref()?.get(key).map(String::as_str)
    }
}

/// What is to be done with a request.
#[derive(Debug)]
pub enum Verdict {
    /// It is an agent's, and right in every respect.
    Approve,
    /// It claims to be an agent's and isn't right.
    Deny(Refusal),
    /// It isn't for us to judge.
    Ignore,
}

/// Why a request is refused.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// Somebody else than the cluster's registration agent asks.
    #[error("{user:?} isn't the registration agent of cluster {cluster}")]
    Requester {
        /// Who asks.
        user: String,
        /// The cluster that the request names.
        cluster: String,
    },
    /// The certificate would be for more than a client, or not for a client.
    #[error("the usages {0:?} aren't those of a client certificate")]
    Usages(Vec<String>),
    /// The request proper isn't acceptable.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The certificate would name another user.
    #[error("the common name {found:?} isn't {expected}")]
    CommonName {
        /// The request's.
        found: String,
        /// The agent's.
        expected: String,
    },
    /// The certificate would put the user into other groups.
    #[error("the organizations {found:?} aren't exactly {expected:?}")]
    Organizations {
        /// The request's.
        found: Vec<String>,
        /// The agent's.
        expected: Vec<String>,
    },
    /// The certificate would be for other hosts.
    #[error("the subject alternative name {0:?} isn't the add-on's")]
    AlternativeName(String),
}

impl Refusal {
    /// The reason for the request's condition.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Requester { .. } => "AddOnRequesterNotAllowed",
            Self::Usages(_) => "AddOnUsagesNotAllowed",
            Self::Request(_) => "AddOnRequestNotAcceptable",
            Self::CommonName { .. } | Self::Organizations { .. } => "AddOnSubjectNotAllowed",
            Self::AlternativeName(_) => "AddOnAlternativeNameNotAllowed",
        }
    }
}

/// What is to be done with a request that the agent of `addon` on `cluster`, which is `agent` for the hub, may have made.
///
/// Source: `DefaultCSRApprover` in addon-framework `pkg/utils/csr_helpers.go`, which is less strict: a cluster `foo` could
/// ask for `foobar` there, and usages, key, signature and extensions are left to the signer.
pub fn review(request: &CertificateSigningRequest, addon: &str, cluster: &str, agent: &Subject) -> Verdict {
    let ours = request.label(LABEL_ADDON_NAME) == Some(addon) && request.cluster() == Some(cluster);
    if !ours || request.is_decided() || request.spec.signer_name != KUBE_CLIENT_SIGNER {
        return Verdict::Ignore;
    }
    let checked = check_requester(request, cluster)
        .and_then(|()| check_usages(&request.spec.usages))
        .and_then(|()| check_request(&request.spec.request.0, addon, agent));
    match checked {
        Ok(()) => Verdict::Approve,
        Err(refusal) => Verdict::Deny(refusal),
    }
}

fn check_requester(request: &CertificateSigningRequest, cluster: &str) -> Result<(), Refusal> {
    let by_grpc = request.spec.username == GRPC_SERVER;
    let user = if by_grpc {
        let annotations = request.metadata.annotations.as_ref();
        annotations.and_then(|annotations| annotations.get(ANNOTATION_GRPC_USER)).cloned().unwrap_or_default()
    } else {
        request.spec.username.clone()
    };
    let group = format!("system:open-cluster-management:{cluster}");
    let agent_id = user.strip_prefix(&group).and_then(|rest| rest.strip_prefix(':')).unwrap_or_default();
    // The gRPC server's own groups say nothing about the agent that it speaks for.
    let in_group = by_grpc || request.spec.groups.contains(&group);
    if agent_id.is_empty() || agent_id.contains(':') || !in_group {
        return Err(Refusal::Requester { user, cluster: cluster.into() });
    }
    Ok(())
}

fn check_usages(usages: &[String]) -> Result<(), Refusal> {
    let for_client = usages.iter().any(|usage| usage == CLIENT_AUTH);
    let for_more = usages.iter().any(|usage| !CLIENT_USAGES.contains(&usage.as_str()));
    if for_client && !for_more { Ok(()) } else { Err(Refusal::Usages(usages.to_vec())) }
}

fn check_request(pem: &[u8], addon: &str, agent: &Subject) -> Result<(), Refusal> {
    let request = pkcs10::parse(pem)?;
    if request.common_name != agent.user {
        return Err(Refusal::CommonName { found: request.common_name, expected: agent.user.clone() });
    }
    let mut found: Vec<_> = request.organizations.iter().map(String::as_str).collect();
    // Go frameworks before 1.3 publish this group too; everyone who is known is in it anyway.
    found.retain(|group| *group != GROUP_AUTHENTICATED);
    let expected: BTreeSet<_> = agent.groups.iter().map(String::as_str).collect();
    if found.len() != expected.len() || BTreeSet::from_iter(found) != expected {
        return Err(Refusal::Organizations { found: request.organizations, expected: agent.groups.clone() });
    }
    let own_name = format!("{addon}.addon.open-cluster-management.io");
    match request.dns_names.into_iter().find(|name| *name != own_name) {
        Some(other) => Err(Refusal::AlternativeName(other)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
