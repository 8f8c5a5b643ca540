//! The one crypto provider, and certificates for serving.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rcgen::{CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, KeyPair, KeyUsagePurpose};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Makes ring the provider of all TLS in this process. May be called more than once.
pub fn install_crypto_provider() {
    // An error means that one is installed already, and no other than ring is compiled in.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// Why a serving certificate couldn't be made.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// Making or signing it failed.
    #[error("making a serving certificate: {0}")]
    Generate(#[from] rcgen::Error),
    /// It isn't accepted for serving.
    #[error("using a serving certificate: {0}")]
    Use(#[from] rustls::Error),
}

/// A certificate that vouches for itself.
pub(crate) struct SelfSigned {
    pub(crate) certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
}

/// How far other clocks may be behind.
const SKEW: Duration = Duration::from_secs(3600);

impl SelfSigned {
    /// Makes one for those DNS names or IP addresses.
    pub(crate) fn generate(names: &[String], now: SystemTime, lifetime: Duration) -> Result<Self, CertificateError> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, names.first().map_or("self-signed", String::as_str));
        params.not_before = (now - SKEW).into();
        params.not_after = (now + lifetime).into();
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let certificate = params.self_signed(&key)?.der().clone();
        let key = PrivateKeyDer::try_from(key.serialize_der()).map_err(|_| rcgen::Error::CouldNotParseKeyPair)?;
        Ok(Self { certificate, key })
    }

    /// A server's TLS configuration with it.
    pub(crate) fn into_server_config(self) -> Result<Arc<ServerConfig>, CertificateError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![self.certificate], self.key)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

#[cfg(test)]
mod tests {
    use x509_parser::prelude::*;

    use super::*;

    #[test]
    fn a_certificate_is_for_its_names_and_its_time() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        let names = ["hub.example.svc".to_owned(), "10.0.0.1".to_owned()];
        let made = SelfSigned::generate(&names, now, Duration::from_secs(86_400)).unwrap();
        let (_, parsed) = X509Certificate::from_der(&made.certificate).unwrap();
        assert_eq!(parsed.validity().not_before.timestamp(), 1_800_000_000 - 3600);
        assert_eq!(parsed.validity().not_after.timestamp(), 1_800_000_000 + 86_400);
        let alternatives = parsed.subject_alternative_name().unwrap().unwrap().value.general_names.clone();
        assert_eq!(alternatives, [GeneralName::DNSName("hub.example.svc"), GeneralName::IPAddress(&[10, 0, 0, 1])]);
        assert!(made.into_server_config().is_ok());
    }
}
