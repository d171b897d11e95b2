//! Subcommands that other programs start on k8tre's behalf.

use crate::error::Result;
use crate::ports::transport;

pub async fn git_transport(host: &str, command: &str) -> Result<u8> {
    transport::serve(host, command).await
}
