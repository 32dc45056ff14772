//! The certificate authority of one instance and what it signs.

use std::{
    fs,
    io::Write,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};

/// A certificate with its key, as PEM text.
#[derive(Clone, Debug)]
pub struct Pair {
    /// The certificate.
    pub certificate: String,
    /// Its private key, PKCS#8.
    pub key: String,
}

/// An authority with its files in one folder.
pub struct Pki {
    dir: PathBuf,
    authority: CertifiedIssuer<'static, KeyPair>,
}

impl Pki {
    /// A new authority; writes `ca.crt`, `ca.key` and the key pair for service account tokens, `sa.key` and `sa.pub`,
    /// to `dir`.
    ///
    /// # Errors
    /// When a key cannot be made or a file not be written.
    pub fn create(dir: &Path) -> Result<Self> {
        fs::create_dir_all(dir).with_context(|| format!("creating {}", dir.display()))?;
        let mut params = CertificateParams::new(Vec::new())?;
        params.distinguished_name = name("kuberay-testbed-ca", None);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
        write_secret(&dir.join("ca.crt"), &authority.pem())?;
        write_secret(&dir.join("ca.key"), &authority.key().serialize_pem())?;
        let tokens = KeyPair::generate()?;
        write_secret(&dir.join("sa.key"), &tokens.serialize_pem())?;
        write_secret(&dir.join("sa.pub"), &tokens.public_key_pem())?;
        Ok(Self { dir: dir.to_owned(), authority })
    }

    /// The path of a file of this authority: `ca.crt`, `ca.key`, `sa.key`, `sa.pub`, or one made by [`Pki::write`].
    pub fn path(&self, file: &str) -> PathBuf {
        self.dir.join(file)
    }

    /// The authority's certificate, PEM.
    pub fn ca(&self) -> String {
        self.authority.pem()
    }

    /// A certificate for a server that answers to these DNS names and addresses.
    ///
    /// # Errors
    /// When one of them is neither a DNS name nor an address.
    pub fn server(&self, common_name: &str, names: &[String]) -> Result<Pair> {
        self.sign(names, name(common_name, None), vec![ExtendedKeyUsagePurpose::ServerAuth])
    }

    /// A certificate with which a client is `user`, and a member of `group`.
    ///
    /// # Errors
    /// When the key cannot be made.
    pub fn client(&self, user: &str, group: Option<&str>) -> Result<Pair> {
        self.sign(&[], name(user, group), vec![ExtendedKeyUsagePurpose::ClientAuth])
    }

    /// Writes `NAME.crt` and `NAME.key`.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn write(&self, name: &str, pair: &Pair) -> Result<()> {
        write_secret(&self.path(&format!("{name}.crt")), &pair.certificate)?;
        write_secret(&self.path(&format!("{name}.key")), &pair.key)
    }

    fn sign(&self, names: &[String], subject: DistinguishedName, usages: Vec<ExtendedKeyUsagePurpose>) -> Result<Pair> {
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name = subject;
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = usages;
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.authority)?;
        Ok(Pair { certificate: certificate.pem(), key: key.serialize_pem() })
    }
}

fn name(common_name: &str, organization: Option<&str>) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common_name);
    if let Some(organization) = organization {
        name.push(DnType::OrganizationName, organization);
    }
    name
}

/// Writes a file that only its owner may read.
pub(crate) fn write_secret(path: &Path, text: &str) -> Result<()> {
    let write = || {
        let mut file = fs::OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(path)?;
        file.write_all(text.as_bytes())
    };
    write().with_context(|| format!("writing {}", path.display()))
}
