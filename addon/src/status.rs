//! What this manager says in the status of OCM's add-on objects, in OCM's words.
//!
//! Several writers share these objects. A report changes its own fields and conditions only, on whatever the object holds
//! now, and gives the same result when applied again.

mod patch;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};
use tenant_records_api::ocm::{
    ADDON_MANIFEST_APPLIED, ADDON_REGISTRATION_APPLIED, AddOnConfig, ConfigGroupResource, ConfigReference, FALSE,
    ManagedClusterAddOnStatus, RegistrationConfig, TRUE,
};

use crate::config::{ConfigKey, KnownConfigs};
use crate::registration::registrations;
use crate::works::Applied;
pub use patch::{merge_patch, status_patch};

/// The longest message of a condition, in characters; the API server takes 32,768 bytes.
const MESSAGE_LIMIT: usize = 2048;

/// What a condition says.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Answer {
    status: &'static str,
    reason: &'static str,
    message: String,
}

impl Answer {
    fn yes(reason: &'static str, message: &str) -> Self {
        Self { status: TRUE, reason, message: message.into() }
    }

    fn no(reason: &'static str, message: String) -> Self {
        Self { status: FALSE, reason, message }
    }
}

/// Whether the agent may register with the hub and has its rights there: the condition `RegistrationApplied`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegistrationApplied {
    /// It may.
    Yes,
    /// The registration agent hasn't written yet under which name the agent registers.
    Pending,
    /// Its rights couldn't be written.
    Failed(String),
}

impl RegistrationApplied {
    fn answer(&self) -> Answer {
        match self {
            Self::Yes => Answer::yes("SetPermissionApplied", "Registration of the addon agent is configured"),
            Self::Pending => Answer::no("PermissionConfigPending", "registration subject not ready".into()),
            Self::Failed(cause) => {
                Answer::no("SetPermissionFailed", format!("Failed to set permission for hub agent: {cause}"))
            }
        }
    }
}

/// Whether the agent's manifests are applied: the condition `ManifestApplied`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ManifestApplied {
    /// They are.
    Yes,
    /// There are none.
    Nothing,
    /// The work agent hasn't said yet. A condition that says no is outdated and goes; one that says yes stays.
    Unknown,
    /// They couldn't be made or written.
    NotWritten(String),
    /// The work agent couldn't apply them all.
    NotApplied(String),
}

impl ManifestApplied {
    /// What the work agent's words about all of an add-on's works come to.
    pub fn of<'w>(works: impl IntoIterator<Item = &'w Applied>) -> Self {
        let mut answer = Self::Nothing;
        let mut failures = Vec::new();
        for applied in works {
            match applied {
                Applied::No { failures: of_work } => {
                    answer = Self::NotApplied(String::new());
                    failures.extend_from_slice(of_work);
                }
                Applied::Unknown if !matches!(answer, Self::NotApplied(_)) => answer = Self::Unknown,
                Applied::Yes if answer == Self::Nothing => answer = Self::Yes,
                Applied::Unknown | Applied::Yes => {}
            }
        }
        match answer {
            Self::NotApplied(_) => Self::NotApplied(failures.join("; ")),
            answer => answer,
        }
    }

    fn answer(&self) -> Option<Answer> {
        const APPLIED: &str = "AddonManifestApplied";
        match self {
            Self::Yes => Some(Answer::yes(APPLIED, "manifests of addon are applied successfully")),
            Self::Nothing => Some(Answer::yes(APPLIED, "no manifest need to apply")),
            Self::Unknown => None,
            Self::NotWritten(cause) => Some(Answer::no("ManifestWorkApplyFailed", cause.clone())),
            Self::NotApplied(failures) => {
                let separator = if failures.is_empty() { "" } else { ": " };
                let message = format!("failed to apply the manifests of addon{separator}{failures}");
                Some(Answer::no("AddonManifestAppliedFailed", message))
            }
        }
    }
}

/// What this manager says about an add-on on a cluster.
#[derive(Clone, Debug, Default)]
pub struct AddOnReport {
    /// The kinds of configuration that it understands.
    pub supported_configs: Vec<ConfigGroupResource>,
    /// The configuration objects.
    pub known: KnownConfigs,
    /// The agent's registration, once that is decided.
    pub registration: Option<RegistrationReport>,
    /// Whether the agent's manifests are applied, if there is anything to say.
    pub manifest_applied: Option<ManifestApplied>,
}

/// What this manager says about an agent's registration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegistrationReport {
    /// How the agent registers by certificate.
    pub wanted: RegistrationConfig,
    /// The namespace for the agent on its cluster.
    pub namespace: String,
    /// Whether it may.
    pub applied: RegistrationApplied,
}

impl AddOnReport {
    /// Writes the report into a ManagedClusterAddOn as v1alpha1 serves it. `now` is for conditions that change.
    pub fn write_to(&self, addon: &mut Value, now: Timestamp) {
        let in_spec: Vec<AddOnConfig> = read(&addon["spec"]["configs"]);
        let present: ManagedClusterAddOnStatus = read(&addon["status"]);
        let status = &mut addon["status"];
        if present.supported_configs != self.supported_configs {
            status["supportedConfigs"] = json!(self.supported_configs);
        }
        self.write_config_references(status, &present.config_references, &in_spec);
        if let Some(registration) = &self.registration {
            let wanted = registrations(registration.wanted.clone(), &present);
            if present.registrations != wanted {
                status["registrations"] = json!(wanted);
            }
            if present.namespace != registration.namespace {
                status["namespace"] = json!(registration.namespace);
            }
            if present.health_check.mode != "Lease" {
                status["healthCheck"]["mode"] = json!("Lease");
            }
            set_condition(status, ADDON_REGISTRATION_APPLIED, &registration.applied.answer(), now);
        }
        match self.manifest_applied.as_ref().map(ManifestApplied::answer) {
            Some(Some(answer)) => set_condition(status, ADDON_MANIFEST_APPLIED, &answer, now),
            Some(None) => retract_no(status, ADDON_MANIFEST_APPLIED),
            None => {}
        }
    }

    /// The generation of each configuration, and the hash of those that the ManagedClusterAddOn itself asks for; OCM's
    /// addon-manager takes the other hashes from the ClusterManagementAddOn.
    fn write_config_references(&self, status: &mut Value, references: &[ConfigReference], in_spec: &[AddOnConfig]) {
        for (index, reference) in references.iter().enumerate() {
            let Some(desired) = &reference.desired_config else { continue };
            let key = ConfigKey { kind: reference.kind.clone(), referent: desired.referent.clone() };
            let Some(object) = self.known.configs.get(&key) else { continue };
            let generation = object.metadata.generation.unwrap_or_default();
            if reference.last_observed_generation != generation {
                status["configReferences"][index]["lastObservedGeneration"] = json!(generation);
            }
            let asked_for = in_spec.iter().any(|config| config.kind == key.kind && config.referent == key.referent);
            if asked_for && desired.spec_hash != object.spec_hash {
                status["configReferences"][index]["desiredConfig"]["specHash"] = json!(object.spec_hash);
            }
        }
    }
}

/// Writes the hashes of configuration objects into a ClusterManagementAddOn as v1alpha1 serves it. One that doesn't exist
/// has none.
pub fn write_spec_hashes(addon: &mut Value, known: &KnownConfigs) {
    let defaults = addon.pointer_mut("/status/defaultconfigReferences").and_then(Value::as_array_mut);
    for reference in defaults.into_iter().flatten() {
        write_spec_hash(reference, known);
    }
    let progressions = addon.pointer_mut("/status/installProgressions").and_then(Value::as_array_mut);
    for progression in progressions.into_iter().flatten() {
        let references = progression.get_mut("configReferences").and_then(Value::as_array_mut);
        for reference in references.into_iter().flatten() {
            write_spec_hash(reference, known);
        }
    }
}

fn write_spec_hash(reference: &mut Value, known: &KnownConfigs) {
    let kind: ConfigGroupResource = read(reference);
    let Some(desired) = reference.get_mut("desiredConfig").filter(|desired| desired.is_object()) else { return };
    let key = ConfigKey { kind, referent: read(desired) };
    if key.referent.name.is_empty() || !known.kinds.contains(&key.kind) {
        return;
    }
    let hash = known.configs.get(&key).map_or("", |object| object.spec_hash.as_str());
    if desired["specHash"].as_str().unwrap_or_default() != hash {
        desired["specHash"] = json!(hash);
    }
}

/// Sets a condition; its time changes only with its status.
fn set_condition(status: &mut Value, type_: &str, answer: &Answer, now: Timestamp) {
    let message = bounded(&answer.message);
    if !status["conditions"].is_array() {
        status["conditions"] = json!([]);
    }
    let Some(conditions) = status["conditions"].as_array_mut() else { return };
    let present = conditions.iter_mut().find(|condition| condition["type"] == type_);
    match present {
        Some(condition) => {
            if condition["status"] != answer.status {
                condition["status"] = json!(answer.status);
                condition["lastTransitionTime"] = json!(Time(now));
            }
            condition["reason"] = json!(answer.reason);
            condition["message"] = json!(message);
        }
        None => conditions.push(json!({
            "type": type_,
            "status": answer.status,
            "reason": answer.reason,
            "message": message,
            "lastTransitionTime": Time(now),
        })),
    }
}

/// Takes a condition away that says no.
fn retract_no(status: &mut Value, type_: &str) {
    if let Some(conditions) = status.get_mut("conditions").and_then(Value::as_array_mut) {
        conditions.retain(|condition| condition["type"] != type_ || condition["status"] != FALSE);
    }
}

/// A message that fits, cut between characters and marked when it was too long.
fn bounded(message: &str) -> String {
    match message.char_indices().nth(MESSAGE_LIMIT) {
        Some((end, _)) => format!("{} (cut)", &message[..end]),
        None => message.into(),
    }
}

/// What isn't as OCM's schema says counts as absent.
fn read<T: serde::de::DeserializeOwned + Default>(value: &Value) -> T {
    T::deserialize(value).unwrap_or_default()
}

#[cfg(test)]
mod tests;
