//! Requests are made byte by byte: rcgen's never have several organizations, nor anything that is wrong.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use rcgen::{KeyPair, PKCS_ED25519, PublicKeyData, SigningKey};
use x509_parser::pem::parse_x509_pem;

use super::*;
use crate::registration::{default_groups, default_user};

const COMMON_NAME: &[u8] = &[0x55, 4, 3];
const ORGANIZATION: &[u8] = &[0x55, 4, 10];
const ORGANIZATIONAL_UNIT: &[u8] = &[0x55, 4, 11];
const ALTERNATIVE_NAME: &[u8] = &[0x55, 0x1d, 17];
const BASIC_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 19];
const EXTENSION_REQUEST: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 14];
const CHALLENGE_PASSWORD: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 7];
const ECDSA_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2];
const ED25519: &[u8] = &[0x2b, 0x65, 0x70];

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OID: u8 = 0x06;
const OCTETS: u8 = 0x04;
const BITS: u8 = 0x03;
const UTF8: u8 = 0x0c;
const BMP: u8 = 0x1e;
const DNS_NAME: u8 = 0x82;
const IP_ADDRESS: u8 = 0x87;

fn der(tag: u8, parts: &[Vec<u8>]) -> Vec<u8> {
    let content = parts.concat();
    let length = match u16::try_from(content.len()).expect("short").to_be_bytes() {
        [0, low] if low < 0x80 => vec![low],
        [high, low] => vec![0x82, high, low],
    };
    [vec![tag], length, content].concat()
}

fn oid(bytes: &[u8]) -> Vec<u8> {
    der(OID, &[bytes.to_vec()])
}

/// What a request is made of.
struct Parts {
    /// Relative distinguished names, each of (type, string's tag, value).
    names: Vec<Vec<(&'static [u8], u8, String)>>,
    attributes: Vec<Vec<u8>>,
}

fn extension_request(extensions: &[(&[u8], Vec<u8>)]) -> Vec<u8> {
    let extensions: Vec<_> = extensions
        .iter()
        .map(|(id, value)| der(SEQUENCE, &[oid(id), der(OCTETS, std::slice::from_ref(value))]))
        .collect();
    der(SEQUENCE, &[oid(EXTENSION_REQUEST), der(SET, &[der(SEQUENCE, &extensions)])])
}

fn alternative_names(names: &[(u8, &[u8])]) -> Vec<u8> {
    let names: Vec<_> = names.iter().map(|(tag, name)| der(*tag, &[name.to_vec()])).collect();
    extension_request(&[(ALTERNATIVE_NAME, der(SEQUENCE, &names))])
}

impl Parts {
    /// As the registration agent makes them: Go writes all organizations into one relative distinguished name.
    fn agents() -> Self {
        let organizations =
            default_groups("edge-01", "demo").into_iter().map(|group| (ORGANIZATION, UTF8, group)).collect();
        Self {
            names: vec![organizations, vec![(COMMON_NAME, UTF8, default_user("edge-01", "demo", "demo-agent"))]],
            attributes: vec![alternative_names(&[(DNS_NAME, b"demo.addon.open-cluster-management.io")])],
        }
    }

    fn signed(&self, key: &KeyPair, signed_with: &KeyPair, algorithm: &[u8]) -> Vec<u8> {
        let names: Vec<_> = self
            .names
            .iter()
            .map(|name| {
                let values: Vec<_> = name
                    .iter()
                    .map(|(id, tag, value)| der(SEQUENCE, &[oid(id), der(*tag, &[value.clone().into_bytes()])]))
                    .collect();
                der(SET, &values)
            })
            .collect();
        let info = der(
            SEQUENCE,
            &[vec![2, 1, 0], der(SEQUENCE, &names), key.subject_public_key_info(), der(0xa0, &self.attributes)],
        );
        let signature = signed_with.sign(&info).expect("signed");
        let algorithm = der(SEQUENCE, &[oid(algorithm)]);
        der(SEQUENCE, &[info, algorithm, der(BITS, &[vec![0], signature])])
    }

    fn pem(&self) -> String {
        let key = KeyPair::generate().expect("a key");
        pem(&self.signed(&key, &key, ECDSA_SHA256))
    }
}

fn pem(der: &[u8]) -> String {
    let base64 = serde_json::to_string(&ByteString(der.to_vec())).expect("base64");
    format!("-----BEGIN CERTIFICATE REQUEST-----\n{}\n-----END CERTIFICATE REQUEST-----\n", base64.trim_matches('"'))
}

fn agent() -> Subject {
    Subject {
        user: default_user("edge-01", "demo", "demo-agent"),
        groups: default_groups("edge-01", "demo"),
        organization_units: Vec::new(),
    }
}

fn csr(pem: &str) -> CertificateSigningRequest {
    let labels = [(LABEL_ADDON_NAME, "demo"), (LABEL_CLUSTER_NAME, "edge-01")];
    CertificateSigningRequest {
        metadata: ObjectMeta {
            labels: Some(labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into()),
            ..ObjectMeta::default()
        },
        spec: CsrSpec {
            request: ByteString(pem.as_bytes().to_vec()),
            signer_name: KUBE_CLIENT_SIGNER.into(),
            usages: ["digital signature", "key encipherment", "client auth"].map(String::from).into(),
            username: "system:open-cluster-management:edge-01:x7k2p".into(),
            groups: ["system:open-cluster-management:edge-01", "system:authenticated"].map(String::from).into(),
        },
        status: CsrStatus::default(),
    }
}

fn judge(request: &CertificateSigningRequest) -> Verdict {
    review(request, "demo", "edge-01", &agent())
}

#[track_caller]
fn assert_approved(request: &CertificateSigningRequest) {
    let verdict = judge(request);
    assert!(matches!(verdict, Verdict::Approve), "{verdict:?}");
}

#[track_caller]
fn assert_refused(request: &CertificateSigningRequest, reason: &str) {
    match judge(request) {
        Verdict::Deny(refusal) => assert_eq!(refusal.reason(), reason, "{refusal}"),
        verdict => panic!("{verdict:?}"),
    }
}

#[track_caller]
fn assert_request_refused(pem: &str, expected: &RequestError) {
    match judge(&csr(pem)) {
        Verdict::Deny(Refusal::Request(error)) => assert_eq!(error, *expected),
        verdict => panic!("{verdict:?}"),
    }
}

#[test]
fn the_registration_agents_request_is_approved() {
    assert_approved(&csr(&Parts::agents().pem()));
    // Made by Go's crypto/x509, with the group that frameworks before 1.3 add.
    assert_approved(&csr(include_str!("testdata/go.pem")));

    let mut separate = Parts::agents();
    separate.names = separate.names.into_iter().flatten().map(|name| vec![name]).collect();
    separate.attributes.clear();
    assert_approved(&csr(&separate.pem()));

    let key = KeyPair::generate_for(&PKCS_ED25519).expect("a key");
    assert_approved(&csr(&pem(&Parts::agents().signed(&key, &key, ED25519))));
}

#[test]
fn what_is_not_ours_is_ignored() {
    let good = csr(&Parts::agents().pem());
    let relabelled = |key: &str, value: &str| {
        let mut request = good.clone();
        request.metadata.labels.get_or_insert_with(BTreeMap::new).insert(key.into(), value.into());
        request
    };
    let mut decided = good.clone();
    decided.status.conditions.push(CsrCondition { type_: CSR_DENIED.into() });
    let mut other_signer = good.clone();
    other_signer.spec.signer_name = "example.com/custom".into();
    for request in [
        relabelled(LABEL_ADDON_NAME, "other"),
        relabelled(LABEL_CLUSTER_NAME, "edge-02"),
        CertificateSigningRequest { metadata: ObjectMeta::default(), ..good.clone() },
        decided,
        other_signer,
    ] {
        assert!(matches!(judge(&request), Verdict::Ignore));
    }
}

#[test]
fn only_the_clusters_registration_agent_may_ask() {
    let good = csr(&Parts::agents().pem());
    for user in [
        "",
        "admin",
        "system:open-cluster-management:edge-01",
        "system:open-cluster-management:edge-01:",
        "system:open-cluster-management:edge-011:x7k2p",
        "system:open-cluster-management:edge-02:x7k2p",
        "system:open-cluster-management:edge-01:x7k2p:y",
        "system:open-cluster-management:cluster:edge-01:addon:demo:agent:demo-agent",
    ] {
        let mut request = good.clone();
        request.spec.username = user.into();
        assert_refused(&request, "AddOnRequesterNotAllowed");
    }
    let mut outside = good.clone();
    outside.spec.groups = vec!["system:open-cluster-management:edge-02".into()];
    assert_refused(&outside, "AddOnRequesterNotAllowed");

    let mut by_grpc = good;
    by_grpc.spec.username = GRPC_SERVER.into();
    by_grpc.spec.groups = vec!["system:serviceaccounts".into()];
    assert_refused(&by_grpc, "AddOnRequesterNotAllowed");
    for (user, allowed) in [
        ("system:open-cluster-management:edge-01:x7k2p", true),
        ("system:open-cluster-management:edge-02:x7k2p", false),
    ] {
        by_grpc.metadata.annotations = Some([(ANNOTATION_GRPC_USER.to_owned(), user.to_owned())].into());
        assert_eq!(matches!(judge(&by_grpc), Verdict::Approve), allowed, "{user}");
    }
}

#[test]
fn only_for_a_client() {
    let good = csr(&Parts::agents().pem());
    for (usages, allowed) in [
        (&["client auth"][..], true),
        (&["client auth", "digital signature"][..], true),
        (&[][..], false),
        (&["digital signature", "key encipherment"][..], false),
        (&["client auth", "server auth"][..], false),
        (&["client auth", "cert sign"][..], false),
    ] {
        let mut request = good.clone();
        request.spec.usages = usages.iter().map(|usage| (*usage).into()).collect();
        match allowed {
            true => assert_approved(&request),
            false => assert_refused(&request, "AddOnUsagesNotAllowed"),
        }
    }
}

#[test]
fn only_for_the_agents_own_name_and_groups() {
    let subject = |names: Vec<(&'static [u8], &str)>| {
        let names = names.into_iter().map(|(id, value)| vec![(id, UTF8, value.to_owned())]).collect();
        csr(&Parts { names, attributes: Vec::new() }.pem())
    };
    let user = agent().user;
    let [own, all] = <[String; 2]>::try_from(agent().groups).expect("two groups");
    let other_cluster = default_user("edge-02", "demo", "demo-agent");
    for names in [
        vec![(COMMON_NAME, &*other_cluster), (ORGANIZATION, &*own), (ORGANIZATION, &*all)],
        vec![(COMMON_NAME, &*user)],
        vec![(COMMON_NAME, &*user), (ORGANIZATION, &*own)],
        vec![(COMMON_NAME, &*user), (ORGANIZATION, &*own), (ORGANIZATION, &*own)],
        vec![(COMMON_NAME, &*user), (ORGANIZATION, &*own), (ORGANIZATION, GROUP_AUTHENTICATED)],
        vec![(COMMON_NAME, &*user), (ORGANIZATION, &*own), (ORGANIZATION, &*all), (ORGANIZATION, &*all)],
        vec![(COMMON_NAME, &*user), (ORGANIZATION, &*own), (ORGANIZATION, &*all), (ORGANIZATION, "system:masters")],
    ] {
        assert_refused(&subject(names), "AddOnSubjectNotAllowed");
    }
    for names in [
        vec![(ORGANIZATION, &*own), (ORGANIZATION, &*all)],
        vec![(COMMON_NAME, &*user), (COMMON_NAME, "admin"), (ORGANIZATION, &*own), (ORGANIZATION, &*all)],
        vec![(COMMON_NAME, &*user), (ORGANIZATION, &*own), (ORGANIZATION, &*all), (ORGANIZATIONAL_UNIT, "x")],
    ] {
        assert_refused(&subject(names), "AddOnRequestNotAcceptable");
    }
    let mut wide = Parts::agents();
    wide.names[1][0].1 = BMP;
    assert_request_refused(&wide.pem(), &RequestError::Subject);
}

#[test]
fn no_other_extensions_or_attributes() {
    let with = |attributes: Vec<Vec<u8>>| Parts { attributes, ..Parts::agents() }.pem();
    let own: (u8, &[u8]) = (DNS_NAME, b"demo.addon.open-cluster-management.io");
    let refused = [
        with(vec![alternative_names(&[own, (IP_ADDRESS, &[10, 0, 0, 1])])]),
        with(vec![extension_request(&[(BASIC_CONSTRAINTS, der(SEQUENCE, &[vec![1, 1, 0xff]]))])]),
        with(vec![alternative_names(&[own]), alternative_names(&[own])]),
        with(vec![der(SEQUENCE, &[oid(CHALLENGE_PASSWORD), der(SET, &[der(UTF8, &[b"secret".to_vec()])])])]),
    ];
    for pem in &refused {
        assert_request_refused(pem, &RequestError::Extensions);
    }
    let other = with(vec![alternative_names(&[own, (DNS_NAME, b"kubernetes.default")])]);
    assert_refused(&csr(&other), "AddOnAlternativeNameNotAllowed");
    assert_approved(&csr(&with(vec![extension_request(&[])])));
}

#[test]
fn only_good_keys_that_signed_the_request() {
    let key = KeyPair::generate().expect("a key");
    let other = KeyPair::generate().expect("a key");
    let stolen = pem(&Parts::agents().signed(&key, &other, ECDSA_SHA256));
    assert_request_refused(&stolen, &RequestError::Signature);
    for weak in [
        include_str!("testdata/rsa1024.pem"),
        include_str!("testdata/rsa2048sha1.pem"),
        include_str!("testdata/p521.pem"),
    ] {
        assert_request_refused(weak, &RequestError::Key);
    }
    // A good key; what is wrong with it is the subject.
    assert_refused(&csr(include_str!("testdata/rsa2048.pem")), "AddOnSubjectNotAllowed");
}

#[test]
fn exactly_one_pem_block() {
    let good = Parts::agents().pem();
    assert_approved(&csr(&format!("\n{good}\n\n")));
    for bad in [
        String::new(),
        "nonsense".into(),
        format!("comment\n{good}"),
        format!("{good}{good}"),
        good.replace("CERTIFICATE REQUEST", "CERTIFICATE"),
        good.replace("REQUEST-----\n", "REQUEST-----\nProc-Type: 4\n\n"),
        good.replace('M', "!"),
    ] {
        assert_request_refused(&bad, &RequestError::Pem);
    }
    let (_, block) = parse_x509_pem(good.as_bytes()).expect("PEM");
    let trailing = pem(&[block.contents.as_slice(), &[0]].concat());
    assert_request_refused(&trailing, &RequestError::Der("something follows it".into()));
    assert!(matches!(judge(&csr(&pem(b"nonsense"))), Verdict::Deny(Refusal::Request(RequestError::Der(_)))));
}
