//! The request proper (PKCS #10), reduced to what a certificate for an agent may be made of.

use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::cri_attributes::ParsedCriAttribute;
use x509_parser::error::X509Error;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::oid_registry::{
    OID_PKCS1_SHA1WITHRSA, OID_SHA1_WITH_RSA, OID_X509_COMMON_NAME, OID_X509_ORGANIZATION_NAME,
};
use x509_parser::pem::parse_x509_pem;
use x509_parser::prelude::FromDer;
use x509_parser::public_key::PublicKey;
use x509_parser::x509::X509Name;

/// The smallest RSA key in bits.
const RSA_MIN_BITS: usize = 2048;

/// Why a request isn't acceptable, whoever makes it.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// It isn't exactly one PEM block `CERTIFICATE REQUEST`.
    #[error("the request isn't exactly one PEM block CERTIFICATE REQUEST")]
    Pem,
    /// It isn't DER of a certification request.
    #[error("the request can't be read: {0}")]
    Der(String),
    /// Its key is too weak or of an unknown kind.
    #[error("the key isn't ECDSA P-256 or P-384, Ed25519, or RSA of at least {RSA_MIN_BITS} bits with SHA-2")]
    Key,
    /// It isn't signed with its own key.
    #[error("the request's signature doesn't verify with its own key")]
    Signature,
    /// Its subject has other parts than one common name and organizations.
    #[error("the subject isn't made of one common name and organizations only")]
    Subject,
    /// It asks for more than alternative host names.
    #[error("the request asks for other extensions than DNS names")]
    Extensions,
}

/// What a request asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct AgentRequest {
    pub(super) common_name: String,
    pub(super) organizations: Vec<String>,
    pub(super) dns_names: Vec<String>,
}

/// Reads a request and refuses everything that an agent's never has.
pub(super) fn parse(pem: &[u8]) -> Result<AgentRequest, RequestError> {
    let der = only_block(pem)?;
    let (rest, request) =
        X509CertificationRequest::from_der(&der).map_err(|error| RequestError::Der(error.to_string()))?;
    if !rest.is_empty() {
        return Err(RequestError::Der("something follows it".into()));
    }
    check_key(&request)?;
    request.verify_signature().map_err(|error| match error {
        X509Error::SignatureUnsupportedAlgorithm => RequestError::Key,
        _ => RequestError::Signature,
    })?;
    let (common_name, organizations) = subject_of(&request.certification_request_info.subject)?;
    Ok(AgentRequest { common_name, organizations, dns_names: dns_names_of(&request)? })
}

/// The signer takes the first block that it finds; there must be no doubt which one that is.
fn only_block(pem: &[u8]) -> Result<Vec<u8>, RequestError> {
    let text = std::str::from_utf8(pem).map_err(|_| RequestError::Pem)?.trim();
    let inner = text
        .strip_prefix("-----BEGIN CERTIFICATE REQUEST-----")
        .and_then(|text| text.strip_suffix("-----END CERTIFICATE REQUEST-----"))
        .ok_or(RequestError::Pem)?;
    if inner.contains('-') || inner.contains(':') {
        return Err(RequestError::Pem);
    }
    let (_, block) = parse_x509_pem(text.as_bytes()).map_err(|_| RequestError::Pem)?;
    Ok(block.contents)
}

fn check_key(request: &X509CertificationRequest<'_>) -> Result<(), RequestError> {
    let algorithm = &request.signature_algorithm.algorithm;
    if *algorithm == OID_PKCS1_SHA1WITHRSA || *algorithm == OID_SHA1_WITH_RSA {
        return Err(RequestError::Key);
    }
    // Curves and other kinds of keys: those whose signatures can be verified are good.
    match request.certification_request_info.subject_pki.parsed() {
        Ok(PublicKey::RSA(key)) if key.key_size() < RSA_MIN_BITS => Err(RequestError::Key),
        Ok(PublicKey::RSA(_) | PublicKey::EC(_) | PublicKey::Unknown(_)) => Ok(()),
        Ok(_) | Err(_) => Err(RequestError::Key),
    }
}

fn subject_of(subject: &X509Name<'_>) -> Result<(String, Vec<String>), RequestError> {
    let mut common_names = Vec::new();
    let mut organizations = Vec::new();
    for attribute in subject.iter_attributes() {
        let value = attribute.as_str().map_err(|_| RequestError::Subject)?.to_owned();
        if *attribute.attr_type() == OID_X509_COMMON_NAME {
            common_names.push(value);
        } else if *attribute.attr_type() == OID_X509_ORGANIZATION_NAME {
            organizations.push(value);
        } else {
            return Err(RequestError::Subject);
        }
    }
    match <[String; 1]>::try_from(common_names) {
        Ok([common_name]) => Ok((common_name, organizations)),
        Err(_) => Err(RequestError::Subject),
    }
}

fn dns_names_of(request: &X509CertificationRequest<'_>) -> Result<Vec<String>, RequestError> {
    let requested = match request.certification_request_info.attributes() {
        [] => return Ok(Vec::new()),
        [attribute] => match attribute.parsed_attribute() {
            ParsedCriAttribute::ExtensionRequest(requested) => &requested.extensions,
            _ => return Err(RequestError::Extensions),
        },
        _ => return Err(RequestError::Extensions),
    };
    let names = match requested.as_slice() {
        [] => return Ok(Vec::new()),
        [extension] => match extension.parsed_extension() {
            ParsedExtension::SubjectAlternativeName(alternative) => &alternative.general_names,
            _ => return Err(RequestError::Extensions),
        },
        _ => return Err(RequestError::Extensions),
    };
    names
        .iter()
        .map(|name| match name {
            GeneralName::DNSName(name) => Ok((*name).to_owned()),
            _ => Err(RequestError::Extensions),
        })
        .collect()
}
