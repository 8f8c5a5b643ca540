//! The values that the agent's templates are rendered with.
//!
//! Names and rules are those of OCM's Go framework for templates, so that what an admin knows holds here too. Lowest to
//! highest: the add-on's own values, the AddOnDeploymentConfig, the annotation
//! `addon.open-cluster-management.io/values` of the ManagedClusterAddOn, and what is a fact rather than a wish
//! (`ClusterName`, `AddonInstallNamespace`, `InstallMode`).

use regex::Regex;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tenant_records_api::ocm::{
    ANNOTATION_IMAGE_REGISTRIES, ANNOTATION_VALUES, AddOnDeploymentConfigSpec, ImageMirror, ManagedClusterAddOn,
};

use crate::addon::Target;
use crate::cluster::Cluster;

/// Named values.
pub type Values = Map<String, Value>;

/// Why there are no values.
#[derive(Debug, thiserror::Error)]
pub enum ValuesError {
    /// The annotation with values isn't a JSON object.
    #[error("the annotation {ANNOTATION_VALUES} isn't a JSON object: {0}")]
    Annotation(#[source] serde_json::Error),
    /// The cluster's annotation with image registries has another form.
    #[error(
        "the annotation {ANNOTATION_IMAGE_REGISTRIES} of the ManagedCluster isn't of the form {{\"registries\": [...]}}: {0}"
    )]
    Registries(#[source] serde_json::Error),
    /// An entry of the resource requirements doesn't say which containers it is for.
    #[error("the containerID {0:?} isn't of the form <kind's plural>:<name>:<container>")]
    ContainerId(String),
}

/// All values for one cluster, `own` being the add-on's.
///
/// # Errors
/// When the AddOnDeploymentConfig or the annotation can't be used.
pub fn values(own: Values, target: &Target<'_>) -> Result<Values, ValuesError> {
    let addon = target.addon.metadata.name.as_deref().unwrap_or_default();
    let mut values = Values::from_iter([
        ("HubKubeConfigSecret".into(), format!("{addon}-hub-kubeconfig").into()),
        ("ManagedKubeConfigSecret".into(), format!("{addon}-managed-kubeconfig").into()),
    ]);
    merge(&mut values, own);
    if let Some(config) = target.deployment_config {
        merge(&mut values, deployment_config_values(config)?);
    }
    merge(&mut values, annotation_values(target.addon)?);
    values.insert("ClusterName".into(), target.cluster.name().into());
    values.insert("AddonInstallNamespace".into(), target.install_namespace.into());
    values.insert("InstallMode".into(), "Default".into());
    Ok(values)
}

/// Lays `over` over `base`, object by object; anything but an object replaces.
pub fn merge(base: &mut Values, over: Values) {
    for (key, value) in over {
        match (base.get_mut(&key), value) {
            (Some(Value::Object(base)), Value::Object(over)) => merge(base, over),
            (_, value) => drop(base.insert(key, value)),
        }
    }
}

/// The values of an AddOnDeploymentConfig: each customized variable by its own name, `NodeSelector`, `Tolerations`,
/// `HTTPProxy`, `HTTPSProxy`, `NoProxy`, `ProxyCABundle` (PEM) and `ResourceRequirements`; only those that are set.
///
/// # Errors
/// [`ValuesError::ContainerId`].
pub fn deployment_config_values(config: &AddOnDeploymentConfigSpec) -> Result<Values, ValuesError> {
    let mut values: Values = config
        .customized_variables
        .iter()
        .map(|variable| (variable.name.clone(), Value::String(variable.value.clone())))
        .collect();
    if let Some(placement) = &config.node_placement {
        values.insert("NodeSelector".into(), json!(placement.node_selector));
        values.insert("Tolerations".into(), json!(placement.tolerations));
    }
    let proxy = &config.proxy_config;
    let ca_bundle = String::from_utf8_lossy(&proxy.ca_bundle.0);
    for (name, value) in [
        ("HTTPProxy", proxy.http_proxy.as_str()),
        ("HTTPSProxy", proxy.https_proxy.as_str()),
        ("NoProxy", proxy.no_proxy.as_str()),
        ("ProxyCABundle", &ca_bundle),
    ] {
        if !value.is_empty() {
            values.insert(name.into(), value.into());
        }
    }
    if !config.resource_requirements.is_empty() {
        let requirements: Result<Vec<_>, _> = config
            .resource_requirements
            .iter()
            .map(|item| {
                let expression = container_expression(&item.container_id)?;
                Ok(json!({"containerIDRegex": expression, "resources": item.resources}))
            })
            .collect();
        values.insert("ResourceRequirements".into(), requirements?.into());
    }
    Ok(values)
}

fn annotation_values(addon: &ManagedClusterAddOn) -> Result<Values, ValuesError> {
    match addon.metadata.annotations.as_ref().and_then(|annotations| annotations.get(ANNOTATION_VALUES)) {
        Some(text) if !text.is_empty() => serde_json::from_str(text).map_err(ValuesError::Annotation),
        _ => Ok(Values::new()),
    }
}

/// The resource requirements that a configuration has for one container: those of the last entry that names it.
///
/// `workload` is the plural of the workload's kind, for example `deployments`.
///
/// # Errors
/// [`ValuesError::ContainerId`].
pub fn container_resources<'c>(
    config: &'c AddOnDeploymentConfigSpec,
    workload: &str,
    name: &str,
    container: &str,
) -> Result<Option<&'c Value>, ValuesError> {
    let id = format!("{workload}:{name}:{container}");
    let mut found = None;
    for item in &config.resource_requirements {
        let expression = container_expression(&item.container_id)?;
        let expression = Regex::new(&expression).map_err(|_| ValuesError::ContainerId(item.container_id.clone()))?;
        if expression.is_match(&id) {
            found = Some(&item.resources);
        }
    }
    Ok(found)
}

/// OCM's `containerIDRegex`: each part that is `*` stands for anything.
fn container_expression(container_id: &str) -> Result<String, ValuesError> {
    let parts: Vec<_> = container_id.split(':').map(|part| if part == "*" { ".+" } else { part }).collect();
    match parts.as_slice() {
        [workload, name, container] => Ok(format!("^{workload}:{name}:{container}$")),
        _ => Err(ValuesError::ContainerId(container_id.into())),
    }
}

/// Where a cluster gets an image from: by the registries of the AddOnDeploymentConfig or, where these change nothing, by
/// those of the ManagedCluster's annotation.
///
/// # Errors
/// [`ValuesError::Registries`].
pub fn image_for(
    image: &str,
    config: Option<&AddOnDeploymentConfigSpec>,
    cluster: &Cluster,
) -> Result<String, ValuesError> {
    #[derive(Deserialize)]
    struct Annotation {
        #[serde(default)]
        registries: Vec<ImageMirror>,
    }
    let configured = config.map_or(image.into(), |config| rewrite_image(image, &config.registries));
    if configured != image {
        return Ok(configured);
    }
    match cluster.annotations.get(ANNOTATION_IMAGE_REGISTRIES) {
        Some(text) if !text.is_empty() => {
            let annotation: Annotation = serde_json::from_str(text).map_err(ValuesError::Registries)?;
            Ok(rewrite_image(image, &annotation.registries))
        }
        _ => Ok(configured),
    }
}

/// OCM's rewriting of images: of the registries that change the image, the last one counts.
pub fn rewrite_image(image: &str, registries: &[ImageMirror]) -> String {
    registries
        .iter()
        .map(|registry| replace_registry(image, registry))
        .rfind(|rewritten| rewritten != image)
        .unwrap_or_else(|| image.into())
}

fn replace_registry(image: &str, registry: &ImageMirror) -> String {
    let trim = |text: &'_ str| -> String { text.strip_suffix('/').unwrap_or(text).into() };
    let (source, mirror) = (trim(&registry.source), trim(&registry.mirror));
    if source.is_empty() {
        let last = image.rsplit('/').next().unwrap_or(image);
        return if mirror.is_empty() { last.into() } else { format!("{mirror}/{last}") };
    }
    match image.strip_prefix(source.as_str()) {
        Some(rest) => format!("{mirror}{rest}"),
        None => image.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(spec: Value) -> AddOnDeploymentConfigSpec {
        serde_json::from_value(spec).expect("a spec")
    }

    fn mirrors(pairs: &[(&str, &str)]) -> Vec<ImageMirror> {
        pairs
            .iter()
            .map(|(source, mirror)| ImageMirror { source: (*source).into(), mirror: (*mirror).into() })
            .collect()
    }

    /// The cases are those of OCM's rule: prefix without regard to segments, every entry on the original, last one wins.
    #[test]
    fn images() {
        let image = "quay.io/ocm/agent:v1";
        for (registries, expected) in [
            (&[][..], image),
            (&[("quay.io/ocm", "reg/y")][..], "reg/y/agent:v1"),
            (&[("quay.io/ocm/", "reg/y/")][..], "reg/y/agent:v1"),
            (&[("quay.io/oc", "reg/y")][..], "reg/ym/agent:v1"),
            (&[("docker.io", "reg")][..], image),
            (&[("", "reg/z")][..], "reg/z/agent:v1"),
            (&[("", "")][..], "agent:v1"),
            (&[("quay.io/ocm", "a"), ("quay.io", "b")][..], "b/ocm/agent:v1"),
            (&[("quay.io", "b"), ("docker.io", "c")][..], "b/ocm/agent:v1"),
            (&[("quay.io/ocm/agent:v1", "a"), ("a", "b")][..], "a"),
        ] {
            assert_eq!(rewrite_image(image, &mirrors(registries)), expected, "{registries:?}");
        }
    }

    #[test]
    fn image_registries_of_the_configuration_come_before_the_clusters() {
        let mut cluster = Cluster::default();
        cluster.annotations.insert(
            ANNOTATION_IMAGE_REGISTRIES.into(),
            r#"{"registries":[{"source":"quay.io","mirror":"cluster"}]}"#.into(),
        );
        let by =
            |config: Option<&AddOnDeploymentConfigSpec>| image_for("quay.io/a:1", config, &cluster).expect("an image");
        assert_eq!(by(None), "cluster/a:1");
        assert_eq!(by(Some(&config(json!({"registries": [{"source": "quay.io", "mirror": "config"}]})))), "config/a:1");
        let other = config(json!({"registries": [{"source": "docker.io", "mirror": "config"}]}));
        assert_eq!(by(Some(&other)), "cluster/a:1");

        cluster.annotations.insert(ANNOTATION_IMAGE_REGISTRIES.into(), "nonsense".into());
        assert!(matches!(image_for("quay.io/a:1", None, &cluster), Err(ValuesError::Registries(_))));
    }

    #[test]
    fn a_full_configuration() {
        let values = deployment_config_values(&config(json!({
            "customizedVariables": [{"name": "LOG_LEVEL", "value": "debug"}],
            "nodePlacement": {"nodeSelector": {"disk": "ssd"}, "tolerations": [{"key": "edge", "operator": "Exists"}]},
            "proxyConfig": {"httpsProxy": "http://proxy:3128", "noProxy": ".svc", "caBundle": "UEVN"},
            "resourceRequirements": [{"containerID": "*:*:*", "resources": {"limits": {"memory": "1Gi"}}}],
        })))
        .expect("values");
        assert_eq!(
            Value::Object(values),
            json!({
                "LOG_LEVEL": "debug",
                "NodeSelector": {"disk": "ssd"},
                "Tolerations": [{"key": "edge", "operator": "Exists"}],
                "HTTPSProxy": "http://proxy:3128",
                "NoProxy": ".svc",
                "ProxyCABundle": "PEM",
                "ResourceRequirements": [{"containerIDRegex": "^.+:.+:.+$", "resources": {"limits": {"memory": "1Gi"}}}],
            })
        );
        assert!(deployment_config_values(&AddOnDeploymentConfigSpec::default()).expect("values").is_empty());
    }

    #[test]
    fn the_last_entry_for_a_container_counts() {
        let spec = config(json!({"resourceRequirements": [
            {"containerID": "*:*:*", "resources": {"limits": {"memory": "1"}}},
            {"containerID": "deployments:agent:*", "resources": {"limits": {"memory": "2"}}},
            {"containerID": "deployments:other:agent", "resources": {"limits": {"memory": "3"}}},
        ]}));
        let memory = |name, container| {
            container_resources(&spec, "deployments", name, container)
                .expect("valid")
                .map(|r| r["limits"]["memory"].clone())
        };
        assert_eq!(memory("agent", "agent"), Some("2".into()));
        assert_eq!(memory("agents", "agent"), Some("1".into()));
        let bad = config(json!({"resourceRequirements": [{"containerID": "deployments:agent", "resources": {}}]}));
        assert!(matches!(container_resources(&bad, "deployments", "a", "b"), Err(ValuesError::ContainerId(_))));
    }

    #[test]
    fn precedence() {
        let mut addon = ManagedClusterAddOn::default();
        addon.metadata.name = Some("demo".into());
        addon.metadata.annotations = Some(
            [(ANNOTATION_VALUES.into(), r#"{"C":"annotation","ClusterName":"liar","nested":{"b":2}}"#.into())].into(),
        );
        let mut cluster = Cluster::default();
        cluster.metadata.name = Some("edge-01".into());
        let spec = config(
            json!({"customizedVariables": [{"name": "B", "value": "config"}, {"name": "C", "value": "config"}]}),
        );
        let target = Target {
            cluster: &cluster,
            addon: &addon,
            install_namespace: "agents",
            deployment_config: Some(&spec),
            configs: &Default::default(),
        };
        let own = json!({"A": "own", "B": "own", "C": "own", "nested": {"a": 1, "b": 1}});
        let merged = values(own.as_object().cloned().unwrap_or_default(), &target).expect("values");
        assert_eq!(
            Value::Object(merged),
            json!({
                "A": "own", "B": "config", "C": "annotation", "nested": {"a": 1, "b": 2},
                "ClusterName": "edge-01", "AddonInstallNamespace": "agents", "InstallMode": "Default",
                "HubKubeConfigSecret": "demo-hub-kubeconfig", "ManagedKubeConfigSecret": "demo-managed-kubeconfig",
            })
        );
        let mut unusable = addon.clone();
        unusable.metadata.annotations = Some([(ANNOTATION_VALUES.into(), "[]".into())].into());
        let target = Target { addon: &unusable, ..target };
        assert!(matches!(values(Values::new(), &target), Err(ValuesError::Annotation(_))));
    }
}
