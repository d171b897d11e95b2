//! A login for an address, from the credential helpers that the user's git has.

use secrecy::SecretString;

use super::Checkout;
use super::run::NETWORK_LIMIT;
use crate::error::{Error, Result};

/// A user's name and password, or a token in its place.
#[derive(Debug, Clone)]
pub struct Login {
    pub username: String,
    pub password: SecretString,
}

impl Login {
    /// Reads what git's helpers say and take: a line `username=…` and a line `password=…`.
    pub fn parse(text: &str) -> Option<Login> {
        let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        let (username, password) = (value("username")?.trim(), value("password")?.trim_end());
        (!username.is_empty() && !password.is_empty())
            .then(|| Login { username: username.to_owned(), password: password.into() })
    }
}

impl Checkout {
    /// What the helpers have for an address; none if they have nothing. Nobody is asked.
    pub async fn login(&self, url: &str) -> Result<Option<Login>> {
        let Some((scheme, rest)) = url.split_once("://").filter(|_| !url.contains(char::is_control)) else {
            return Err(Error::usage("only an https address has a login that a helper knows"));
        };
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        let host = host.rsplit('@').next().unwrap_or(host);
        let asked = format!("protocol={scheme}\nhost={host}\npath={path}\n\n");
        let git = self.git().args(["-c", "core.askPass=", "credential", "fill"]).stdin(asked).limit(NETWORK_LIMIT);
        let git = git.env_remove("GIT_ASKPASS").env_remove("SSH_ASKPASS");
        // Without an answer git would ask on the terminal, which it must not: then it fails.
        let output = git.output().await?;
        Ok(output.success().then(|| Login::parse(&output.text())).flatten())
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;

    #[test]
    fn a_login_is_read_whole_or_not_at_all() {
        let login = Login::parse("protocol=https\nusername=alice\npassword=a=b c\n").unwrap();
        assert_eq!((login.username.as_str(), login.password.expose_secret()), ("alice", "a=b c"));
        assert!(!format!("{login:?}").contains("a=b"), "it is told");
        for half in ["", "username=alice\n", "password=x\n", "username=\npassword=x\n"] {
            assert!(Login::parse(half).is_none(), "{half:?}");
        }
    }
}
