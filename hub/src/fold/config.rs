//! The tenant's configuration objects.

use tenant_records_api::{ConfigReference, ConfigSource, FindingType, ResolvedConfig};
use tenant_records_runtime::ObjectKey;

use super::Inputs;
use super::findings::Findings;
use crate::index::rows::{ConfigRow, matches};
use crate::index::{ConfigKind, ConfigTable, Unreadable};

/// Content above this size, in bytes of JSON, is left out.
const CONTENT_LIMIT: usize = 32 * 1024;

#[derive(Debug, Default)]
pub(super) struct Config {
    pub(super) sources: Vec<ConfigSource>,
    pub(super) page: Vec<ResolvedConfig>,
}

pub(super) fn resolve(inputs: &Inputs<'_>, findings: &mut Findings) -> Config {
    let mut config = Config::default();
    for reference in &inputs.record.spec.config_refs {
        let kind = ConfigKind::of(reference);
        let Some(table) = inputs.index.configs.get(&kind) else { continue };
        match table.unreadable {
            Some(Unreadable::Forbidden) => findings.add(FindingType::ConfigForbidden, kind.to_string()),
            Some(Unreadable::NotServed) => findings.add(FindingType::ConfigNotFound, kind.to_string()),
            Some(Unreadable::Failed) => findings.add(FindingType::ConfigUnreadable, kind.to_string()),
            None => {}
        }
        let objects = referenced(inputs, reference, table);
        if objects.is_empty() && table.unreadable.is_none() {
            findings.add(FindingType::ConfigNotFound, format!("{kind} by selector"));
        }
        for (name, row) in objects {
            if row.is_none() && table.unreadable.is_none() {
                findings.add(FindingType::ConfigNotFound, format!("{kind} {name}"));
            }
            config.sources.push(source(reference, &name, row));
            config.page.extend(row.map(|row| resolved(reference, name, row)));
        }
    }
    config.sources.sort_by(|a, b| (&a.group, &a.resource, &a.name).cmp(&(&b.group, &b.resource, &b.name)));
    config.sources.dedup();
    config.page.sort_by(|a, b| (&a.group, &a.resource, &a.name).cmp(&(&b.group, &b.resource, &b.name)));
    config.page.dedup();
    config
}

/// The objects that a reference names or selects. A named one that doesn't exist has no row.
fn referenced<'a>(
    inputs: &Inputs<'a>,
    reference: &ConfigReference,
    table: &'a ConfigTable,
) -> Vec<(String, Option<&'a ConfigRow>)> {
    let namespace = &inputs.key.namespace;
    if let Some(name) = &reference.name {
        return vec![(name.clone(), table.rows.get(&ObjectKey::new(namespace, name)))];
    }
    let Some(selector) = &reference.selector else { return Vec::new() };
    let here = table.rows.iter().filter(|(key, row)| key.namespace == *namespace && matches(selector, &row.labels));
    here.map(|(key, row)| (key.name.clone(), Some(row))).collect()
}

fn source(reference: &ConfigReference, name: &str, row: Option<&ConfigRow>) -> ConfigSource {
    ConfigSource {
        group: reference.group.clone(),
        resource: reference.resource.clone(),
        name: name.to_owned(),
        generation: row.and_then(|row| row.generation),
        found: row.is_some(),
    }
}

fn resolved(reference: &ConfigReference, name: String, row: &ConfigRow) -> ResolvedConfig {
    let omitted = row.content.to_string().len() > CONTENT_LIMIT;
    ResolvedConfig {
        group: reference.group.clone(),
        resource: reference.resource.clone(),
        name,
        digest: row.digest.clone(),
        content: (!omitted).then(|| row.content.as_ref().clone()),
        omitted,
    }
}
