//! What a Lease says, and what to write into it.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use tokio::time::Instant;

use super::ElectionConfig;

/// A Lease as last seen, and since when it looks like that.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) lease: Lease,
    since: Instant,
}

/// Who holds a Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Holder {
    /// Nobody, or somebody who didn't renew in time.
    None,
    Me,
    Other {
        name: String,
        /// When it ends unless it is renewed.
        until: Instant,
    },
}

impl Seen {
    /// Sees a Lease. Only a changed spec counts as news: a renewal changes it, a label on the Lease doesn't.
    pub(super) fn now(lease: Lease, before: Option<&Self>, now: Instant) -> Self {
        let since = match before {
            Some(before) if before.lease.spec == lease.spec && before.lease.metadata.uid == lease.metadata.uid => {
                before.since
            }
            _ => now,
        };
        Self { lease, since }
    }

    pub(super) fn holder(&self, me: &ElectionConfig, now: Instant) -> Holder {
        let spec = self.lease.spec.as_ref();
        let name = spec.and_then(|spec| spec.holder_identity.as_deref()).unwrap_or_default();
        // The holder's own promise counts; a newer version may promise something else than we do.
        let promised =
            spec.and_then(|spec| spec.lease_duration_seconds).and_then(|seconds| u64::try_from(seconds).ok());
        let until = self.since + promised.map_or(me.lease_duration, Duration::from_secs);
        match name {
            "" => Holder::None,
            name if name == me.identity => Holder::Me,
            _ if until <= now => Holder::None,
            name => Holder::Other { name: name.to_owned(), until },
        }
    }
}

/// The Lease renewed, or taken by who holds the election.
pub(super) fn claimed(mut lease: Lease, me: &ElectionConfig, now: Timestamp) -> Lease {
    let spec = lease.spec.get_or_insert_with(LeaseSpec::default);
    if spec.holder_identity.as_deref() != Some(&me.identity) {
        // The first holder isn't a transition.
        let transitions = spec.lease_transitions.map_or(0, |before| before.saturating_add(1));
        spec.lease_transitions = Some(transitions);
        spec.holder_identity = Some(me.identity.clone());
        spec.acquire_time = Some(MicroTime(now));
    }
    spec.renew_time = Some(MicroTime(now));
    spec.lease_duration_seconds = i32::try_from(me.lease_duration.as_secs()).ok();
    if let Some(owner) = &me.owner {
        lease.metadata.owner_references = Some(vec![owner.clone()]);
    }
    lease
}

/// The Lease given back, for anybody to take at once.
pub(super) fn released(mut lease: Lease, now: Timestamp) -> Lease {
    let spec = lease.spec.get_or_insert_with(LeaseSpec::default);
    spec.holder_identity = None;
    spec.lease_duration_seconds = Some(1);
    spec.renew_time = Some(MicroTime(now));
    lease
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn me() -> ElectionConfig {
        ElectionConfig::new("ns", "lease", "me")
    }

    fn held_by(name: &str, renewed: i64) -> Lease {
        let config = ElectionConfig { identity: name.to_owned(), ..me() };
        claimed(Lease::default(), &config, Timestamp::from_second(renewed).unwrap())
    }

    #[test]
    fn expires_by_the_own_clock() {
        let start = Instant::now();
        let seen = Seen::now(held_by("other", 1), None, start);
        let other = Holder::Other { name: "other".into(), until: start + 15 * SECOND };
        assert_eq!(seen.holder(&me(), start + 14 * SECOND), other);
        let again = Seen::now(held_by("other", 1), Some(&seen), start + 14 * SECOND);
        assert_eq!(again.holder(&me(), start + 15 * SECOND), Holder::None, "no renewal for 15 s");
        let renewed = Seen::now(held_by("other", 0), Some(&seen), start + 14 * SECOND);
        assert!(matches!(renewed.holder(&me(), start + 28 * SECOND), Holder::Other { .. }), "whatever it says of time");
    }

    #[test]
    fn the_holders_promise_counts() {
        let start = Instant::now();
        let mut lease = held_by("other", 1);
        lease.spec.as_mut().unwrap().lease_duration_seconds = Some(60);
        let seen = Seen::now(lease, None, start);
        assert!(matches!(seen.holder(&me(), start + 59 * SECOND), Holder::Other { .. }));
        assert_eq!(seen.holder(&me(), start + 60 * SECOND), Holder::None);
    }

    #[test]
    fn my_own_lease_is_mine_however_old() {
        let start = Instant::now();
        let seen = Seen::now(held_by("me", 1), None, start);
        assert_eq!(seen.holder(&me(), start + 1000 * SECOND), Holder::Me);
    }

    #[test]
    fn a_lease_without_a_holder_is_free() {
        let now = Instant::now();
        assert_eq!(Seen::now(Lease::default(), None, now).holder(&me(), now), Holder::None);
        let given_back = released(held_by("other", 1), Timestamp::now());
        assert_eq!(Seen::now(given_back, None, now).holder(&me(), now), Holder::None);
    }

    #[test]
    fn transitions_count_changes_of_holder() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let first = claimed(Lease::default(), &me(), at(1));
        assert_eq!(first.spec.as_ref().unwrap().lease_transitions, Some(0));
        let renewed = claimed(first.clone(), &me(), at(2));
        let spec = renewed.spec.clone().unwrap();
        assert_eq!((spec.lease_transitions, spec.acquire_time), (Some(0), Some(MicroTime(at(1)))));
        assert_eq!(spec.renew_time, Some(MicroTime(at(2))));
        let taken = claimed(released(renewed, at(3)), &ElectionConfig { identity: "other".into(), ..me() }, at(4));
        let spec = taken.spec.unwrap();
        assert_eq!((spec.lease_transitions, spec.acquire_time), (Some(1), Some(MicroTime(at(4)))));
        assert_eq!(spec.lease_duration_seconds, Some(15));
    }
}
