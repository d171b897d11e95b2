//! Hermetic tests: the real code against fakes of what is outside it.

mod support;

mod docker;
mod fetch;
mod kind;
mod kind_binary;
mod kind_prepared;
mod preflight;
