//! Everything outside the program: other programs, Docker, Kubernetes, git, the network, the
//! machine. Only these modules talk to the world, so only they need fakes.

pub mod dirs;
pub mod docker;
pub mod environment;
pub mod fetch;
pub mod forward;
pub mod git;
pub mod kube;
pub mod kubeconfig;
pub mod machine;
pub mod process;
pub mod transport;
