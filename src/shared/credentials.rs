//! The login by which a shared Argo CD reads the developer's branch: taken from where the user says, never from the
//! command line, and kept nowhere but in the repository Secrets.

use std::path::Path;
use std::time::Duration;

use secrecy::SecretString;
use tokio::io::AsyncReadExt;

use crate::error::{Error, Result, ResultExt};
use crate::ports::git::{Checkout, Login};

/// Far more than a login has.
const LARGEST: u64 = 64 * 1024;
/// Standard input is not waited for without end.
const INPUT_LIMIT: Duration = Duration::from_secs(60);
/// Git hosts take any name beside a token.
const ANY_NAME: &str = "git";

/// Reads the login: `git` asks the user's credential helpers, `-` is standard input, all else is a file.
pub async fn read(from: &str, checkout: &Checkout, url: &str) -> Result<Login> {
    if !url.starts_with("https://") {
        return Err(Error::usage("--repo-credentials is for a repository that Argo CD reads by https")
            .hint("name its https address: --repo-url https://…"));
    }
    let text = match from {
        "git" => {
            let login = checkout.login(url).await.context("cannot ask git's credential helpers")?;
            return login.ok_or_else(|| {
                Error::usage("git's credential helpers have no login for the repository's address")
                    .hint("let a helper store one (git fetch over https asks for it), or name a file that holds a token: --repo-credentials FILE")
            });
        }
        "-" => {
            let mut text = String::new();
            let mut input = tokio::io::stdin().take(LARGEST);
            let reading = tokio::time::timeout(INPUT_LIMIT, input.read_to_string(&mut text));
            reading
                .await
                .map_err(|_| Error::usage("no login came on standard input"))?
                .context("cannot read standard input")?;
            text
        }
        file => read_file(Path::new(file)).await?,
    };
    parse(&text).ok_or_else(|| {
        Error::usage("that holds no login: one line with a token, or the lines username=… and password=…")
    })
}

async fn read_file(file: &Path) -> Result<String> {
    let cannot = || format!("cannot read the login in {}", file.display());
    let mut text = String::new();
    let opened = tokio::fs::File::open(file).await.with_context(cannot)?;
    opened.take(LARGEST).read_to_string(&mut text).await.with_context(cannot)?;
    Ok(text)
}

fn parse(text: &str) -> Option<Login> {
    let token = text.trim();
    if !token.is_empty() && !token.contains(char::is_whitespace) && !token.starts_with("username=") {
        let password: SecretString = token.strip_prefix("password=").unwrap_or(token).into();
        return Some(Login { username: ANY_NAME.into(), password });
    }
    Login::parse(text)
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;

    #[test]
    fn a_token_alone_and_a_login_are_both_read() {
        for (text, name, password) in [
            ("ghp_1\n", "git", "ghp_1"),
            ("password=ghp_1", "git", "ghp_1"),
            ("username=alice\npassword=s3 cret\n", "alice", "s3 cret"),
        ] {
            let login = parse(text).unwrap();
            assert_eq!((login.username.as_str(), login.password.expose_secret()), (name, password));
        }
        assert!(parse("").is_none() && parse("two words").is_none());
    }
}
