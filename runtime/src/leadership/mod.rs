//! Which of several replicas acts.
//!
//! The protocol is client-go's: a Lease names its holder, who renews it; another may take it when it hasn't changed for
//! as long as the holder promised at most. Each replica measures that time with its own clock from when it saw the last
//! change, so that clocks that differ do no harm, and each write is conditional on the version read, so that of
//! several takers one succeeds.

mod election;
mod lease;
mod owner;

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Api, Client};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

pub use election::{Election, LeaseLost};
pub use owner::service_account_owner;

/// Who competes for what.
#[derive(Clone, Debug)]
pub struct ElectionConfig {
    /// The Lease's namespace.
    pub namespace: String,
    /// The Lease's name.
    pub name: String,
    /// Who competes: the Pod's name, so that a restarted container goes on where it was without waiting.
    pub identity: String,
    /// With whom the Lease goes, if it should go with something.
    pub owner: Option<OwnerReference>,
    /// For how long others must see no renewal before they take over.
    pub lease_duration: Duration,
    /// For how long a leader acts without having renewed. Shorter than the lease duration.
    pub renew_deadline: Duration,
    /// How often a leader renews and others look.
    pub retry_period: Duration,
}

impl ElectionConfig {
    /// With the durations that Kubernetes' own components use: 15, 10 and 2 seconds.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>, identity: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
            identity: identity.into(),
            owner: None,
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
        }
    }
}

/// Prepares an election; it takes place while [`Election::run`] runs.
pub fn elect(client: Client, config: ElectionConfig) -> (Leadership, Election) {
    let (sender, state) = watch::channel(State::Waiting);
    let api = Api::namespaced(client, &config.namespace);
    (Leadership { state }, Election::new(api, config, sender))
}

/// Whether this process leads.
#[derive(Clone, Debug)]
pub struct Leadership {
    state: watch::Receiver<State>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waiting,
    Leading {
        /// Unless it is renewed.
        until: Instant,
    },
    Over,
}

impl Leadership {
    /// That of a process that has no rivals.
    pub fn always() -> Self {
        let century = Duration::from_secs(100 * 365 * 86_400);
        let (_, state) = watch::channel(State::Leading { until: Instant::now() + century });
        Self { state }
    }

    /// Whether this process may act now. Asked right before each write it also holds for a process that slept.
    pub fn is_leader(&self) -> bool {
        matches!(*self.state.borrow(), State::Leading { until } if Instant::now() < until)
    }

    /// Waits until this process leads; for ever, if it never does.
    pub async fn acquired(&self) {
        let mut state = self.state.clone();
        if state.wait_for(|state| matches!(state, State::Leading { .. })).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Waits until this process, having led, doesn't any more, or never will.
    pub async fn lost(&self) {
        let mut changes = self.state.clone();
        loop {
            let state = *changes.borrow_and_update();
            match state {
                State::Over => return,
                State::Leading { until } if until <= Instant::now() => return,
                State::Leading { until } => tokio::select! {
                    () = sleep_until(until) => {}
                    Ok(()) = changes.changed() => {}
                },
                State::Waiting => {
                    if changes.changed().await.is_err() {
                        return;
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
