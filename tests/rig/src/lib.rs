//! Real Kubernetes clusters with real Open Cluster Management on one machine, without Docker.
//!
//! An *instance* is a hub and its managed clusters. Each cluster is one host: a process tree in namespaces of its
//! own, with etcd, the Kubernetes control plane, kubelet and containerd. Tests take clusters from here; people use
//! the program, `cargo rig`.

mod builds;
mod cgroups;
pub mod check;
mod cluster;
mod components;
pub mod demo;
pub mod generate;
pub mod host;
pub mod images;
mod instance;
mod kubeconfig;
pub mod lifecycle;
mod network;
mod ocm;
mod packages;
mod paths;
mod pki;
mod preflight;
mod process;
pub mod product;
mod progress;
mod rig;
pub mod status;
mod story;

pub use crate::cluster::{Cluster, Memory};
pub use crate::instance::InstanceId;
pub use crate::lifecycle::leftovers;
pub use crate::process::wait_until;
pub use crate::progress::Progress;
pub use crate::rig::{Options, Rig};
pub use nix::sys::signal::Signal;
