//! Keys and certificates of one cluster.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use anyhow::{Context as _, Result};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    SanType,
};

/// A private key and its certificate, as PEM.
#[derive(Clone, Debug)]
pub struct Pair {
    /// The certificate.
    pub certificate: String,
    /// The private key, PKCS #8.
    pub key: String,
}

/// All that a cluster's components and its admin need to know one another.
#[derive(Debug)]
pub struct Pki {
    /// The CA that signs everything here, and the cluster's CSRs.
    pub ca: Pair,
    /// Serving certificate of the API server.
    pub apiserver: Pair,
    /// Client certificate of the API server towards the kubelet, for logs and exec.
    pub apiserver_kubelet_client: Pair,
    /// Client certificate of the node's kubelet.
    pub kubelet: Pair,
    /// Client certificate in group `system:masters`.
    pub admin: Pair,
    /// Signs service account tokens (ECDSA P-256); `certificate` is the public key.
    pub service_account: Pair,
}

impl Pki {
    /// Generates everything for cluster `name`, whose API server answers on `addresses`.
    pub fn generate(name: &str, addresses: &[Ipv4Addr]) -> Result<Self> {
        let ca_key = KeyPair::generate()?;
        let mut ca_params = subject(&format!("{name}-ca"), None);
        ca_params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        ca_params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let ca = Pair { certificate: ca_params.self_signed(&ca_key)?.pem(), key: ca_key.serialize_pem() };
        let issuer = Issuer::new(ca_params, ca_key);

        let mut serving = subject("kube-apiserver", None);
        serving.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let names = ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"];
        for dns in names {
            serving.subject_alt_names.push(SanType::DnsName(dns.try_into()?));
        }
        let ips = addresses.iter().map(|ip| SanType::IpAddress(IpAddr::V4(*ip)));
        serving.subject_alt_names.extend(ips);

        let service_account_key = KeyPair::generate()?;
        Ok(Self {
            apiserver: signed(serving, &issuer)?,
            apiserver_kubelet_client: client("kube-apiserver-kubelet-client", "system:masters", &issuer)?,
            kubelet: client(&format!("system:node:{name}"), "system:nodes", &issuer)?,
            admin: client("admin", "system:masters", &issuer)?,
            service_account: Pair {
                certificate: service_account_key.public_key_pem(),
                key: service_account_key.serialize_pem(),
            },
            ca,
        })
    }

    /// Writes `NAME.crt` and `NAME.key` of each pair that a component reads as files.
    pub fn write(&self, dir: &Path) -> Result<()> {
        fs::create_dir_all(dir).with_context(|| format!("creating {}", dir.display()))?;
        let pairs = [
            ("ca", &self.ca),
            ("apiserver", &self.apiserver),
            ("apiserver-kubelet-client", &self.apiserver_kubelet_client),
            ("service-account", &self.service_account),
        ];
        for (name, pair) in pairs {
            fs::write(dir.join(format!("{name}.crt")), &pair.certificate)?;
            fs::write(dir.join(format!("{name}.key")), &pair.key)?;
        }
        Ok(())
    }
}

fn subject(common_name: &str, organization: Option<&str>) -> CertificateParams {
    let mut params = CertificateParams::default();
    // rcgen's default subject has a name of its own.
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common_name);
    if let Some(organization) = organization {
        params.distinguished_name.push(DnType::OrganizationName, organization);
    }
    params
}

fn client(common_name: &str, organization: &str, issuer: &Issuer<'_, KeyPair>) -> Result<Pair> {
    let mut params = subject(common_name, Some(organization));
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    signed(params, issuer)
}

fn signed(mut params: CertificateParams, issuer: &Issuer<'_, KeyPair>) -> Result<Pair> {
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    let key = KeyPair::generate()?;
    let certificate = params.signed_by(&key, issuer).context("signing a certificate")?;
    Ok(Pair { certificate: certificate.pem(), key: key.serialize_pem() })
}
