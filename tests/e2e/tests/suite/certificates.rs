//! Who asks for an agent's certificate must be that agent's cluster.

use anyhow::{Context, Result, ensure};
use rcgen::{CertificateParams, DnType, KeyPair};
use rig::product::{NAME, PATIENCE};
use rig::wait_until;
use serde_json::{Value, json};

use crate::fixture::rig;

/// A request for the certificate of cluster1's agent, but made by the hub's admin.
#[test]
fn a_request_by_somebody_else_is_denied_with_a_reason() -> Result<()> {
    let rig = rig()?;
    let mut params = CertificateParams::default();
    let user = format!("system:open-cluster-management:cluster:cluster1:addon:{NAME}:agent:{NAME}");
    params.distinguished_name.push(DnType::CommonName, user);
    params.distinguished_name.push(DnType::OrganizationName, format!("system:open-cluster-management:addon:{NAME}"));
    let request = params.serialize_request(&KeyPair::generate()?)?.pem()?;
    let forged = json!({
        "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
        "metadata": {"name": "addon-cluster1-forged", "labels": {
            "open-cluster-management.io/cluster-name": "cluster1", "open-cluster-management.io/addon-name": NAME,
        }},
        "spec": {
            "request": base64(request.as_bytes()), "signerName": "kubernetes.io/kube-apiserver-client",
            "usages": ["digital signature", "key encipherment", "client auth"],
        },
    });
    rig.hub().apply(&forged.to_string())?;
    let denied = wait_until("the forged request to be denied", PATIENCE, || {
        let request = rig.hub().get_json(&["certificatesigningrequest", "addon-cluster1-forged"])?;
        let conditions = request["status"]["conditions"].as_array().cloned().unwrap_or_default();
        ensure!(conditions.iter().all(|condition| condition["type"] != "Approved"), "approved: {request}");
        Ok(conditions.into_iter().find(|condition| condition["type"] == "Denied"))
    })?;
    let filled = |field: &str| denied[field].as_str().is_some_and(|text| !text.is_empty());
    ensure!(filled("reason") && filled("message"), "denied without a reason: {denied}");
    rig.hub().kubectl(&["delete", "certificatesigningrequest", "addon-cluster1-forged"])?;
    Ok(())
}

/// The agents' real certificates were issued to them, and to nobody's approval but the manager's.
#[test]
fn the_agents_hold_certificates_that_the_manager_approved() -> Result<()> {
    let rig = rig()?;
    let requests = rig.hub().get_json(&[
        "certificatesigningrequests",
        "-l",
        "open-cluster-management.io/addon-name=tenant-records",
    ])?;
    let requests = requests["items"].as_array().context("a list")?;
    let approved = |request: &&Value| {
        request["status"]["conditions"].as_array().into_iter().flatten().any(|c| c["type"] == "Approved")
            && request["status"]["certificate"].is_string()
    };
    let clusters: std::collections::BTreeSet<_> = requests
        .iter()
        .filter(approved)
        .filter_map(|request| request["metadata"]["labels"]["open-cluster-management.io/cluster-name"].as_str())
        .collect();
    ensure!(clusters == ["cluster1", "cluster2"].into(), "certificates only for {clusters:?}");
    Ok(())
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}
