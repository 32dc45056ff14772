//! Certificates as plain facts, CA key pairs, and signing. The only file that knows X.509.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose, PublicKeyData, SanType,
};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::sign::CertifiedKey;
use x509_parser::prelude::FromDer;

use crate::clock::later;
use crate::lifetimes::{Lifetimes, renewal_point};

/// Why a certificate or key was not usable. The texts never contain key material.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum X509Error {
    /// The text holds no certificate that can be decoded.
    #[error("no readable certificate")]
    NoCertificate,
    /// The text holds no PKCS#8 private key of a supported algorithm.
    #[error("no readable private key")]
    NoKey,
    /// Certificate and private key belong to different pairs.
    #[error("certificate and private key do not belong together")]
    KeyMismatch,
    /// The certificate may not sign others.
    #[error("not a CA certificate")]
    NotAuthority,
    /// A host name or address that cannot stand in a certificate.
    #[error("{0:?} cannot be used as a host name in a certificate")]
    BadHost(String),
    /// Generating or signing failed inside the cryptography library.
    #[error("signing failed: {0}")]
    Signing(String),
}

/// A parsed certificate: its bytes and the facts that decisions need.
#[derive(Clone, PartialEq, Eq)]
pub struct Certificate {
    der: CertificateDer<'static>,
    public_key: Vec<u8>,
    /// Start of validity.
    pub not_before: Timestamp,
    /// End of validity.
    pub not_after: Timestamp,
    /// Whether it may sign other certificates.
    pub is_authority: bool,
    /// The subject's organizational unit: our CAs carry their authority's identity there.
    pub unit: Option<String>,
}

impl Certificate {
    /// Reads DER.
    pub fn from_der(der: CertificateDer<'static>) -> Result<Self, X509Error> {
        let (_, parsed) = x509_parser::certificate::X509Certificate::from_der(&der).map_err(|_| X509Error::NoCertificate)?;
        let timestamp = |seconds| Timestamp::from_second(seconds).map_err(|_| X509Error::NoCertificate);
        let not_before = timestamp(parsed.validity().not_before.timestamp())?;
        let not_after = timestamp(parsed.validity().not_after.timestamp())?;
        let is_authority = parsed.is_ca();
        let unit = parsed.subject().iter_organizational_unit().find_map(|unit| unit.as_str().ok()).map(str::to_owned);
        let public_key = parsed.public_key().subject_public_key.data.to_vec();
        Ok(Self { public_key, not_before, not_after, is_authority, unit, der })
    }

    /// Reads the first certificate of a PEM text.
    pub fn from_pem(pem: &[u8]) -> Result<Self, X509Error> {
        Self::from_der(CertificateDer::from_pem_slice(pem).map_err(|_| X509Error::NoCertificate)?)
    }

    /// The certificate as PEM, ending in a newline.
    pub fn to_pem(&self) -> String {
        let config = pem::EncodeConfig::new().set_line_ending(pem::LineEnding::LF);
        pem::encode_config(&pem::Pem::new("CERTIFICATE", self.der.to_vec()), config)
    }

    /// The certificate as DER.
    pub fn der(&self) -> &CertificateDer<'static> {
        &self.der
    }

    /// Whether `now` lies in its life.
    pub fn valid_at(&self, now: Timestamp) -> bool {
        self.not_before <= now && now < self.not_after
    }

    /// When two thirds of its life have passed.
    pub fn renew_at(&self) -> Timestamp {
        renewal_point(self.not_before, self.not_after)
    }
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Certificate({:?}, {} .. {})", self.unit, self.not_before, self.not_after)
    }
}

/// A CA: certificate and private key.
pub struct CertificateAuthority {
    certificate: Certificate,
    key: KeyPair,
}

impl fmt::Debug for CertificateAuthority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.certificate.fmt(f)
    }
}

impl CertificateAuthority {
    /// Makes a new CA (P-256, may sign end-entity certificates only). `identity` goes into the subject's organizational unit.
    pub fn generate(identity: &str, lifetimes: &Lifetimes, now: Timestamp) -> Result<Self, X509Error> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::default();
        // A name of its own for each CA: a client that trusts two generations picks the right one without trial.
        params.distinguished_name.push(DnType::CommonName, format!("kuberay-webhook-ca@{}", now.as_second()));
        params.distinguished_name.push(DnType::OrganizationalUnitName, identity);
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        set_life(&mut params, later(now, -lifetimes.backdate), later(now, lifetimes.authority));
        let signed = params.self_signed(&key)?;
        Ok(Self { certificate: Certificate::from_der(signed.der().clone())?, key })
    }

    /// Reads a CA from PEM texts; both must be there, belong together, and the certificate must be a CA's.
    pub fn from_pem(certificate: &[u8], key: &[u8]) -> Result<Self, X509Error> {
        let certificate = Certificate::from_pem(certificate)?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| X509Error::NoKey)?;
        let key = KeyPair::try_from(&key).map_err(|_| X509Error::NoKey)?;
        if key.der_bytes() != certificate.public_key {
            return Err(X509Error::KeyMismatch);
        }
        if !certificate.is_authority {
            return Err(X509Error::NotAuthority);
        }
        Ok(Self { certificate, key })
    }

    /// The certificate that clients have to trust.
    pub fn certificate(&self) -> &Certificate {
        &self.certificate
    }

    /// The private key as PEM. Goes into the Secret and nowhere else.
    pub fn key_pem(&self) -> String {
        self.key.serialize_pem()
    }

    /// Signs a serving certificate for `hosts` (DNS names and IP addresses), with a new key. It never outlives this CA.
    pub fn sign_leaf(&self, hosts: &[String], lifetimes: &Lifetimes, now: Timestamp) -> Result<Leaf, X509Error> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "kuberay-webhook");
        params.subject_alt_names = hosts.iter().map(|host| alternative_name(host)).collect::<Result<_, _>>()?;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        set_life(&mut params, later(now, -lifetimes.backdate), leaf_end(&self.certificate, lifetimes.leaf, now));
        let issuer = Issuer::from_ca_cert_der(self.certificate.der(), &self.key)?;
        let signed = params.signed_by(&key, &issuer)?;
        let certificate = Certificate::from_der(signed.der().clone())?;
        let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let served = CertifiedKey::from_der(vec![signed.der().clone()], private, &default_provider())
            .map_err(|error| X509Error::Signing(error.to_string()))?;
        Ok(Leaf { certificate, issuer: self.certificate.clone(), served: Arc::new(served) })
    }
}

/// When a certificate signed at `now` by `issuer` ends.
pub(crate) fn leaf_end(issuer: &Certificate, life: SignedDuration, now: Timestamp) -> Timestamp {
    later(now, life).min(issuer.not_after)
}

/// A serving certificate with its key, ready for TLS.
#[derive(Clone, Debug)]
pub struct Leaf {
    /// The serving certificate.
    pub certificate: Certificate,
    /// The CA that signed it.
    pub issuer: Certificate,
    /// What TLS handshakes use.
    pub served: Arc<CertifiedKey>,
}

/// Reads a certificate chain and its key from PEM, as mounted files hold them. Returns the first certificate's facts too.
pub fn read_pair(chain: &[u8], key: &[u8]) -> Result<(Certificate, CertifiedKey), X509Error> {
    let chain = CertificateDer::pem_slice_iter(chain).collect::<Result<Vec<_>, _>>().map_err(|_| X509Error::NoCertificate)?;
    let first = chain.first().cloned().ok_or(X509Error::NoCertificate)?;
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| X509Error::NoKey)?;
    let certificate = Certificate::from_der(first)?;
    let pair = CertifiedKey::from_der(chain, key, &default_provider()).map_err(|error| match error {
        rustls::Error::InconsistentKeys(_) => X509Error::KeyMismatch,
        _ => X509Error::NoKey,
    })?;
    Ok((certificate, pair))
}

impl From<rcgen::Error> for X509Error {
    fn from(error: rcgen::Error) -> Self {
        Self::Signing(error.to_string())
    }
}

fn alternative_name(host: &str) -> Result<SanType, X509Error> {
    match host.parse::<IpAddr>() {
        Ok(address) => Ok(SanType::IpAddress(address)),
        Err(_) => Ok(SanType::DnsName(host.try_into().map_err(|_| X509Error::BadHost(host.to_owned()))?)),
    }
}

fn set_life(params: &mut CertificateParams, from: Timestamp, to: Timestamp) {
    // Whole seconds: X.509 knows nothing finer, and the rounding must not move the end behind the CA's.
    let date = |time: Timestamp| rcgen::date_time_ymd(1970, 1, 1) + Duration::from_secs(time.as_second().try_into().unwrap_or(0));
    params.not_before = date(from);
    params.not_after = date(to);
}
