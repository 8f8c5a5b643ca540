//! What must hold before the process counts as ready.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Named conditions that must all hold.
#[derive(Clone, Debug, Default)]
pub struct Checks {
    conditions: Arc<Mutex<BTreeMap<&'static str, Condition>>>,
}

/// One condition of [`Checks`], for who knows whether it holds.
#[derive(Clone, Debug)]
pub struct Check {
    name: &'static str,
    all: Checks,
}

enum Condition {
    Told(Result<(), String>),
    Asked(Box<dyn Fn() -> Result<(), String> + Send + Sync>),
}

impl Checks {
    /// No conditions.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a condition that doesn't hold until it is told to.
    pub fn add(&self, name: &'static str) -> Check {
        self.set(name, Condition::Told(Err("not yet".to_owned())));
        Check { name, all: self.clone() }
    }

    /// Adds a condition that is asked each time, and answers why it doesn't hold.
    pub fn ask(&self, name: &'static str, holds: impl Fn() -> Result<(), String> + Send + Sync + 'static) {
        self.set(name, Condition::Asked(Box::new(holds)));
    }

    /// The conditions that don't hold, and why; empty when all hold.
    pub fn failing(&self) -> Vec<(&'static str, String)> {
        self.each().into_iter().filter_map(|(name, holds)| Some((name, holds.err()?))).collect()
    }

    /// A line for each condition.
    pub fn report(&self) -> String {
        let line = |(name, holds): (_, Result<(), String>)| match holds {
            Ok(()) => format!("[+]{name} ok\n"),
            Err(reason) => format!("[-]{name}: {reason}\n"),
        };
        self.each().into_iter().map(line).collect()
    }

    fn each(&self) -> Vec<(&'static str, Result<(), String>)> {
        let conditions = self.conditions.lock().unwrap_or_else(PoisonError::into_inner);
        conditions.iter().map(|(name, condition)| (*name, condition.holds())).collect()
    }

    fn set(&self, name: &'static str, condition: Condition) {
        self.conditions.lock().unwrap_or_else(PoisonError::into_inner).insert(name, condition);
    }
}

impl Check {
    /// The condition holds.
    pub fn pass(&self) {
        self.all.set(self.name, Condition::Told(Ok(())));
    }

    /// The condition doesn't hold, and why.
    pub fn fail(&self, reason: impl Into<String>) {
        self.all.set(self.name, Condition::Told(Err(reason.into())));
    }
}

impl Condition {
    fn holds(&self) -> Result<(), String> {
        match self {
            Self::Told(holds) => holds.clone(),
            Self::Asked(holds) => holds(),
        }
    }
}

impl fmt::Debug for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.holds().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn all_must_pass() {
        let checks = Checks::new();
        assert_eq!(checks.failing(), []);
        let (watches, hub) = (checks.add("watches"), checks.add("hub"));
        watches.pass();
        assert_eq!(checks.failing(), [("hub", "not yet".to_owned())]);
        assert_eq!(checks.report(), "[-]hub: not yet\n[+]watches ok\n");
        hub.pass();
        assert_eq!(checks.failing(), []);
        hub.fail("no answer");
        assert_eq!(checks.report(), "[-]hub: no answer\n[+]watches ok\n");
    }

    #[test]
    fn an_asked_condition_answers_for_now() {
        let (checks, holds) = (Checks::new(), Arc::new(AtomicBool::new(true)));
        let answer = holds.clone();
        checks.ask("clock", move || answer.load(Ordering::Relaxed).then_some(()).ok_or("stopped".to_owned()));
        assert_eq!(checks.report(), "[+]clock ok\n");
        holds.store(false, Ordering::Relaxed);
        assert_eq!(checks.failing(), [("clock", "stopped".to_owned())]);
    }
}
