//! Kubeconfig files.

use std::net::Ipv4Addr;

use anyhow::{Context as _, Result};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Value, json};

use crate::pki::Pair;

/// One context of a kubeconfig; cluster, user and context share its name.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// Name of the context.
    pub name: &'a str,
    /// Address of the API server, which listens on port 443.
    pub server: Ipv4Addr,
    /// CA certificate, PEM.
    pub ca: &'a str,
    /// The user's certificate.
    pub user: &'a Pair,
}

/// Renders a kubeconfig with a context per entry; the first is the current one.
pub fn render(entries: &[Entry<'_>]) -> Result<String> {
    let current = entries.first().context("a kubeconfig needs a context")?;
    let list = |of: fn(&Entry<'_>) -> Value| entries.iter().map(of).collect::<Vec<_>>();
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": current.name,
        "clusters": list(|entry| json!({
            "name": entry.name,
            "cluster": {
                "server": format!("https://{}:443", entry.server),
                "certificate-authority-data": BASE64_STANDARD.encode(entry.ca),
            },
        })),
        "users": list(|entry| json!({
            "name": entry.name,
            "user": {
                "client-certificate-data": BASE64_STANDARD.encode(&entry.user.certificate),
                "client-key-data": BASE64_STANDARD.encode(&entry.user.key),
            },
        })),
        "contexts": list(|entry| json!({
            "name": entry.name,
            "context": {"cluster": entry.name, "user": entry.name},
        })),
    });
    let options = serde_saphyr::ser_options! { prefer_block_scalars: false };
    serde_saphyr::to_string_with_options(&config, options).context("rendering a kubeconfig")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_entry_is_current() {
        let user = Pair { certificate: "cert".into(), key: "key".into() };
        let entry = |name| Entry { name, server: Ipv4Addr::new(10, 210, 3, 10), ca: "ca", user: &user };
        let text = render(&[entry("hub"), entry("cluster1")]).unwrap();
        assert!(text.contains("current-context: hub"), "{text}");
        assert!(text.contains("server: https://10.210.3.10:443"), "{text}");
    }
}
