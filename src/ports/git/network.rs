//! git on a network with a proxy and authorities of its own. What the user set for git themselves counts more.

use std::collections::BTreeMap;
use std::path::Path;

use sha2::{Digest, Sha256};

use super::Checkout;
use crate::error::Result;
use crate::ports::{dirs, environment, fetch};
use crate::text::hex;

impl Checkout {
    /// Goes through these proxies, unless variables say so already.
    pub fn through(self, variables: &BTreeMap<String, String>) -> Checkout {
        let unset = |name: &&String| environment::var(name).is_none();
        let open: Vec<&String> = variables.keys().filter(unset).collect();
        open.into_iter().fold(self, |checkout, name| checkout.with_variable(name, &variables[name]))
    }

    /// Trusts these authorities besides the system's. git reads one file, so both are put into one, in the given folder.
    pub async fn trusting(self, pem: &str, folder: &Path) -> Result<Checkout> {
        const VARIABLE: &str = "GIT_SSL_CAINFO";
        if self.variable(VARIABLE).is_some() || self.setting("http.sslCAInfo").await?.is_some() {
            return Ok(self);
        }
        let all = format!("{}\n{pem}", fetch::system().unwrap_or_default());
        let digest: String = hex(&Sha256::digest(&all)).chars().take(16).collect();
        let file = folder.join(format!("authorities-{digest}.pem"));
        if !file.exists() {
            dirs::write_private(&file, all.as_bytes())?;
        }
        Ok(self.with_variable(VARIABLE, file.display().to_string()))
    }
}
