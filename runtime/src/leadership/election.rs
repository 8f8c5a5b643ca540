//! Taking, renewing and giving back the Lease.

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::PostParams;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};

use super::lease::{Holder, Seen, claimed, released};
use super::{ElectionConfig, State};
use crate::failure::Failure;
use crate::shutdown::Shutdown;

/// One replica's part in an election.
#[derive(Debug)]
pub struct Election {
    api: Api<Lease>,
    config: ElectionConfig,
    state: watch::Sender<State>,
    seen: Option<Seen>,
}

/// Why a leader isn't one any more. The process must end: what it was about to write may be outdated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LeaseLost {
    /// Another holds it.
    #[error("the lease was taken by {0}")]
    Taken(String),
    /// It couldn't be renewed in time.
    #[error("the lease wasn't renewed in time; last error: {0}")]
    NotRenewed(String),
}

/// What came of an attempt to take or renew the Lease.
enum Attempt {
    /// It is ours.
    Held,
    /// It is another's until then, unless renewed.
    HeldByOther(String, Instant),
    /// Somebody wrote it at the same time.
    Contended,
}

impl Election {
    pub(super) fn new(api: Api<Lease>, config: ElectionConfig, state: watch::Sender<State>) -> Self {
        Self { api, config, state, seen: None }
    }

    /// Competes, and leads once the Lease is taken, until the Lease is lost or shutdown is requested.
    ///
    /// On shutdown leadership ends first and then the Lease is given back. To finish writing before another
    /// replica begins, request the shutdown given here when all else has stopped.
    pub async fn run(mut self, shutdown: &Shutdown) -> Result<(), LeaseLost> {
        let acquired = tokio::select! {
            () = shutdown.requested() => None,
            until = self.acquire() => Some(until),
        };
        let Some(until) = acquired else { return Ok(()) };
        tracing::info!(lease = %self.config.name, identity = %self.config.identity, "leading");
        self.state.send_replace(State::Leading { until });
        let lost = tokio::select! {
            () = shutdown.requested() => None,
            lost = self.hold(until) => Some(lost),
        };
        self.state.send_replace(State::Over);
        match lost {
            Some(lost) => Err(lost),
            None => {
                self.release().await;
                Ok(())
            }
        }
    }

    /// Until when leadership lasts that was confirmed by an attempt begun at that time.
    fn until(&self, begun: Instant) -> Instant {
        begun + self.config.renew_deadline
    }

    async fn acquire(&mut self) -> Instant {
        let mut holder = None;
        loop {
            let begun = Instant::now();
            let mut wait = self.config.retry_period.mul_f64(1.0 + rand::random::<f64>() / 5.0);
            match timeout(self.config.renew_deadline / 2, self.attempt()).await {
                Ok(Ok(Attempt::Held)) => return self.until(begun),
                Ok(Ok(Attempt::HeldByOther(name, until))) => {
                    if holder.as_ref() != Some(&name) {
                        tracing::info!(lease = %self.config.name, holder = %name, "standing by");
                        holder = Some(name);
                    }
                    wait = wait.min(until.saturating_duration_since(Instant::now()));
                }
                Ok(Ok(Attempt::Contended)) => {}
                Ok(Err(error)) => {
                    tracing::warn!(lease = %self.config.name, reason = %Failure::from(&error), "can't take the lease");
                }
                Err(_) => tracing::warn!(lease = %self.config.name, "no answer to taking the lease"),
            }
            sleep(wait).await;
        }
    }

    async fn hold(&mut self, mut until: Instant) -> LeaseLost {
        let mut last_error = "none".to_owned();
        loop {
            sleep_until(until.min(Instant::now() + self.config.retry_period)).await;
            let begun = Instant::now();
            let try_until = until.min(begun + self.config.renew_deadline / 2);
            match timeout_at(try_until, self.attempt()).await {
                Ok(Ok(Attempt::Held)) => {
                    until = self.until(begun);
                    // Not worth waking those who wait for its loss.
                    self.state.send_if_modified(|state| {
                        *state = State::Leading { until };
                        false
                    });
                }
                Ok(Ok(Attempt::HeldByOther(name, _))) => return LeaseLost::Taken(name),
                Ok(Ok(Attempt::Contended)) => last_error = "conflict".to_owned(),
                Ok(Err(error)) => last_error = Failure::from(&error).to_string(),
                Err(_) => last_error = "no answer".to_owned(),
            }
            if until <= Instant::now() {
                return LeaseLost::NotRenewed(last_error);
            }
        }
    }

    async fn attempt(&mut self) -> Result<Attempt, kube::Error> {
        // A holder first trusts what it saw last, which saves the read.
        if let Some(seen) = &self.seen
            && seen.holder(&self.config, Instant::now()) == Holder::Me
            && self.write(claimed(seen.lease.clone(), &self.config, Timestamp::now())).await?
        {
            return Ok(Attempt::Held);
        }
        let Some(lease) = self.api.get_opt(&self.config.name).await? else { return self.create().await };
        let now = Instant::now();
        let seen = Seen::now(lease, self.seen.as_ref(), now);
        let holder = seen.holder(&self.config, now);
        let lease = seen.lease.clone();
        self.seen = Some(seen);
        if let Holder::Other { name, until } = holder {
            return Ok(Attempt::HeldByOther(name, until));
        }
        let written = self.write(claimed(lease, &self.config, Timestamp::now())).await?;
        Ok(if written { Attempt::Held } else { Attempt::Contended })
    }

    async fn create(&mut self) -> Result<Attempt, kube::Error> {
        let metadata = ObjectMeta { name: Some(self.config.name.clone()), ..ObjectMeta::default() };
        let lease = claimed(Lease { metadata, spec: None }, &self.config, Timestamp::now());
        match self.api.create(&PostParams::default(), &lease).await {
            Ok(lease) => {
                self.seen = Some(Seen::now(lease, None, Instant::now()));
                Ok(Attempt::Held)
            }
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(Attempt::Contended),
            Err(error) => Err(error),
        }
    }

    /// Writes the Lease; false if it changed since it was seen or is gone.
    async fn write(&mut self, lease: Lease) -> Result<bool, kube::Error> {
        match self.api.replace(&self.config.name, &PostParams::default(), &lease).await {
            Ok(lease) => {
                self.seen = Some(Seen::now(lease, self.seen.as_ref(), Instant::now()));
                Ok(true)
            }
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn release(&mut self) {
        let Some(seen) = self.seen.take() else { return };
        let within = self.config.retry_period;
        match timeout(within, self.write(released(seen.lease, Timestamp::now()))).await {
            Ok(Ok(true)) => tracing::info!(lease = %self.config.name, "gave the lease back"),
            _ => tracing::warn!(lease = %self.config.name, "the lease wasn't given back; it expires by itself"),
        }
    }
}

impl Drop for Election {
    fn drop(&mut self) {
        self.state.send_replace(State::Over);
    }
}
