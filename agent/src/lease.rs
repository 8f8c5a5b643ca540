//! The Lease by which OCM tells the add-on's health.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta, OwnerReference};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use tenant_records_api::ADDON_NAME;
use tenant_records_runtime::leadership::service_account_owner;
use tenant_records_runtime::{BackOff, Checks, Failure};
use tokio::time::{sleep, timeout};

use crate::metrics::Metrics;

/// The agent's ServiceAccount, with which the Lease goes, and its field manager.
const AGENT: &str = "tenant-records-agent";
/// As in every add-on's Lease. OCM waits for five times as long, whatever is written here.
const DURATION_SECONDS: i32 = 60;
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
const WHILE_UNFIT: Duration = Duration::from_secs(1);
const ANSWER_WITHIN: Duration = Duration::from_secs(15);
const BACK_OFF: BackOff = BackOff { base: Duration::from_secs(1), cap: Duration::from_secs(15) };

/// Renews the Lease.
pub(crate) struct Heartbeat {
    client: Client,
    namespace: String,
    fit: Checks,
    metrics: Metrics,
    owner: Option<OwnerReference>,
}

impl Heartbeat {
    /// For an agent in that namespace that is well while all these conditions hold.
    pub(crate) fn new(client: Client, namespace: String, fit: Checks, metrics: Metrics) -> Self {
        Self { client, namespace, fit, metrics, owner: None }
    }

    /// Renews the Lease for ever, at once and then more often than once a minute, while all conditions hold.
    pub(crate) async fn run(mut self) {
        let mut failures = 0;
        loop {
            self.until_fit().await;
            let wait = match timeout(ANSWER_WITHIN, self.beat()).await {
                Ok(Ok(())) => {
                    self.metrics.lease_renewals.inc();
                    failures = 0;
                    pause(rand::random())
                }
                failed => {
                    let reason = match failed {
                        Ok(Err(error)) => Failure::from(&error).to_string(),
                        _ => "no answer".to_owned(),
                    };
                    tracing::warn!(namespace = self.namespace, reason, "can't renew the Lease");
                    failures += 1;
                    BACK_OFF.delay(failures)
                }
            };
            sleep(wait).await;
        }
    }

    async fn until_fit(&self) {
        let mut waited = 0;
        while let Some((condition, reason)) = self.fit.failing().first() {
            // A start takes a moment.
            if waited == 5 {
                tracing::warn!(condition, reason, "the Lease isn't renewed");
            }
            waited += 1;
            sleep(WHILE_UNFIT).await;
        }
        if waited > 5 {
            tracing::info!("the Lease is renewed again");
        }
    }

    async fn beat(&mut self) -> kube::Result<()> {
        let owner = match &self.owner {
            Some(owner) => owner.clone(),
            None => service_account_owner(self.client.clone(), &self.namespace, AGENT).await?,
        };
        self.owner = Some(owner.clone());
        let leases = Api::<Lease>::namespaced(self.client.clone(), &self.namespace);
        let lease = lease(owner, Timestamp::now());
        leases.patch(ADDON_NAME, &PatchParams::apply(AGENT).force(), &Patch::Apply(lease)).await?;
        Ok(())
    }
}

/// The Lease as the agent applies it.
fn lease(owner: OwnerReference, now: Timestamp) -> Lease {
    Lease {
        metadata: ObjectMeta {
            name: Some(ADDON_NAME.to_owned()),
            owner_references: Some(vec![owner]),
            ..ObjectMeta::default()
        },
        spec: Some(LeaseSpec {
            lease_duration_seconds: Some(DURATION_SECONDS),
            renew_time: Some(MicroTime(now)),
            ..LeaseSpec::default()
        }),
    }
}

/// How long to wait until the next renewal, so that many agents don't renew together.
fn pause(unit: f64) -> Duration {
    LONGEST_PAUSE.mul_f64(0.8 + unit / 5.0)
}

#[cfg(test)]
mod tests;
