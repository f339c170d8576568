//! Certificates for the hosts that a secret is bound to, so that the proxy can read the
//! requests to them and put the secret in.
//!
//! SECURITY: the key of this authority is made for one run and lives in this process
//! alone; only that run's cell trusts it. Other hosts' TLS is never opened.

use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose,
};
use rustls::ServerConfig;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::PrivateKeyDer;
use tokio_rustls::TlsAcceptor;

use super::authorities::Authorities;
use crate::request::{Host, Target};

/// The authority of one run.
pub struct CertificateAuthority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    provider: Arc<CryptoProvider>,
}

pub type Error = Box<dyn std::error::Error + Send + Sync>;

impl CertificateAuthority {
    pub fn new() -> Result<Self, Error> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::DigitalSignature,
        ];
        let name = "hotcell, for one run";
        params.distinguished_name.push(DnType::CommonName, name);
        Ok(Self {
            issuer: CertifiedIssuer::self_signed(params, KeyPair::generate()?)?,
            provider: Arc::new(ring::default_provider()),
        })
    }

    /// What makes a program trust it, beside those that this host trusts.
    pub fn trusted(&self) -> Authorities {
        Authorities::with(&self.issuer.pem())
    }

    /// Speaks to a program as `target`.
    pub fn acceptor(&self, target: &Target) -> Result<TlsAcceptor, Error> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(vec![bare(&target.host)])?;
        params
            .distinguished_name
            .push(DnType::CommonName, "hotcell");
        params.use_authority_key_identifier_extension = true;
        let certificate = params.signed_by(&key, &self.issuer)?;
        let key = PrivateKeyDer::try_from(key.serialize_der())?;
        let mut config = ServerConfig::builder_with_provider(self.provider.clone())
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

/// Without the brackets of an IPv6 address.
pub fn bare(host: &Host) -> String {
    match host {
        Host::Name(name) => name.to_string(),
        Host::Address(address) => address.to_string(),
    }
}
