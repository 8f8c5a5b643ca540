//! The add-on tenant-records, as the add-on library wants to know it.

use k8s_openapi::api::rbac::v1::PolicyRule;
use ocm_addon::render::{RenderError, Templates};
use ocm_addon::values::{Values, container_resources, image_for, values};
use ocm_addon::{AddOn, ManifestsError, Target};
use serde_json::{Value, json};
use tenant_records_api::{ADDON_NAME, rbac};

/// The name of the agent: its Deployment on the managed cluster, its Role on the hub, and the last part of its user name
/// there. OCM's addon-manager chooses the same for an add-on that is installed by an AddOnTemplate.
const AGENT: &str = "tenant-records-agent";
/// The agent's container.
const CONTAINER: &str = "agent";

/// The agent's manifests, in no particular order: OCM applies them by kind.
const TEMPLATES: [(&str, &str); 5] = [
    ("namespace.yaml", include_str!("../../manifests/agent/namespace.yaml.hbs")),
    ("serviceaccount.yaml", include_str!("../../manifests/agent/serviceaccount.yaml.hbs")),
    ("role.yaml", include_str!("../../manifests/agent/role.yaml.hbs")),
    ("proxy-ca.yaml", include_str!("../../manifests/agent/proxy-ca.yaml.hbs")),
    ("deployment.yaml", include_str!("../../manifests/agent/deployment.yaml.hbs")),
];

/// The add-on tenant-records.
#[derive(Debug)]
pub(crate) struct TenantRecords {
    image: String,
    templates: Templates,
}

impl TenantRecords {
    /// With that image for its agents.
    pub(crate) fn new(agent_image: impl Into<String>) -> Result<Self, RenderError> {
        Ok(Self { image: agent_image.into(), templates: Templates::new(TEMPLATES)? })
    }

    /// The values of ours that an AddOnDeploymentConfig may override by variables of the same names.
    fn own_values(&self, target: &Target<'_>) -> Result<Values, ManifestsError> {
        let resources = match target.deployment_config {
            Some(config) => container_resources(config, "deployments", AGENT, CONTAINER)?,
            None => None,
        };
        let default_resources = || json!({"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"memory": "64Mi"}});
        Ok(Values::from_iter([
            ("Image".into(), image_for(&self.image, target.deployment_config, target.cluster)?.into()),
            ("ImagePullPolicy".into(), "IfNotPresent".into()),
            ("LOG_LEVEL".into(), "info".into()),
            ("LOG_FORMAT".into(), "text".into()),
            ("Resources".into(), resources.cloned().unwrap_or_else(default_resources)),
        ]))
    }
}

impl AddOn for TenantRecords {
    fn name(&self) -> &str {
        ADDON_NAME
    }

    fn display_name(&self) -> &str {
        "Tenant records"
    }

    fn description(&self) -> &str {
        "Keeps one record per tenant: where its workloads are, what they are, and how they fare."
    }

    fn manager_name(&self) -> &str {
        "tenant-records-hub"
    }

    fn agent_name(&self) -> &str {
        AGENT
    }

    fn hub_permissions(&self, _cluster: &str) -> Vec<PolicyRule> {
        rbac::agent_on_hub()
    }

    fn manifests(&self, target: &Target<'_>) -> Result<Vec<Value>, ManifestsError> {
        let values = values(self.own_values(target)?, target)?;
        Ok(self.templates.render(&values)?)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use ocm_addon::Cluster;
    use tenant_records_api::ocm::{AddOnDeploymentConfigSpec, ManagedClusterAddOn};

    use super::*;

    fn manifests(config: Option<Value>) -> Vec<Value> {
        let addon: ManagedClusterAddOn =
            serde_json::from_value(json!({"metadata": {"name": ADDON_NAME, "namespace": "cluster1"}})).unwrap();
        let cluster: Cluster = serde_json::from_value(json!({"metadata": {"name": "cluster1"}})).unwrap();
        let config: Option<AddOnDeploymentConfigSpec> = config.map(|config| serde_json::from_value(config).unwrap());
        let target = Target {
            cluster: &cluster,
            addon: &addon,
            install_namespace: "agents",
            deployment_config: config.as_ref(),
            configs: &BTreeMap::new(),
        };
        TenantRecords::new("tenant-records/agent:1").unwrap().manifests(&target).unwrap()
    }

    fn full() -> Vec<Value> {
        manifests(Some(json!({
            "customizedVariables": [{"name": "LOG_LEVEL", "value": "debug"}],
            "nodePlacement": {"nodeSelector": {"disk": "ssd"}, "tolerations": [{"key": "edge", "operator": "Exists"}]},
            "registries": [{"source": "tenant-records", "mirror": "registry.local/tr"}],
            "proxyConfig": {"httpsProxy": "http://proxy:3128", "noProxy": ".svc", "caBundle": "UEVN"},
            "resourceRequirements": [{"containerID": "deployments:*:agent", "resources": {"limits": {"memory": "1Gi"}}}],
        })))
    }

    fn of_kind<'m>(manifests: &'m [Value], kind: &str) -> &'m Value {
        manifests.iter().find(|manifest| manifest["kind"] == kind).unwrap()
    }

    fn names(manifests: &[Value]) -> Vec<String> {
        let name = |manifest: &Value| {
            let (kind, name) = (manifest["kind"].as_str().unwrap(), manifest["metadata"]["name"].as_str().unwrap());
            format!("{kind}/{name}")
        };
        manifests.iter().map(name).collect()
    }

    #[test]
    fn by_default() {
        let manifests = manifests(None);
        assert_eq!(
            names(&manifests),
            [
                "Namespace/agents",
                "ServiceAccount/tenant-records-agent",
                "Role/tenant-records-agent",
                "RoleBinding/tenant-records-agent",
                "Deployment/tenant-records-agent",
            ]
        );
        let pod = &of_kind(&manifests, "Deployment")["spec"]["template"]["spec"];
        let container = &pod["containers"][0];
        assert_eq!(container["image"], "tenant-records/agent:1");
        assert_eq!(container["imagePullPolicy"], "IfNotPresent");
        assert_eq!(
            container["resources"],
            json!({"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"memory": "64Mi"}})
        );
        assert_eq!(container["env"][0], json!({"name": "CLUSTER_NAME", "value": "cluster1"}));
        assert_eq!(container["env"][1], json!({"name": "INSTALL_NAMESPACE", "value": "agents"}));
        assert_eq!(pod["volumes"][0]["secret"]["secretName"], "tenant-records-hub-kubeconfig");
        assert_eq!((&pod["nodeSelector"], &pod["tolerations"]), (&Value::Null, &Value::Null));
        for manifest in manifests.iter().filter(|manifest| manifest["kind"] != "Namespace") {
            assert_eq!(manifest["metadata"]["namespace"], "agents");
        }
    }

    #[test]
    fn as_an_addon_deployment_config_says() {
        let manifests = full();
        let pod = &of_kind(&manifests, "Deployment")["spec"]["template"]["spec"];
        let container = &pod["containers"][0];
        assert_eq!(container["image"], "registry.local/tr/agent:1");
        assert_eq!(container["resources"], json!({"limits": {"memory": "1Gi"}}));
        assert_eq!(pod["nodeSelector"], json!({"disk": "ssd"}));
        assert_eq!(pod["tolerations"], json!([{"key": "edge", "operator": "Exists"}]));
        let env = container["env"].as_array().unwrap();
        let value = |name: &str| env.iter().find(|env| env["name"] == name).map(|env| env["value"].as_str().unwrap());
        assert_eq!(value("LOG_LEVEL"), Some("debug"));
        assert_eq!(value("HTTPS_PROXY"), Some("http://proxy:3128"));
        assert_eq!(value("NO_PROXY"), Some(".svc"));
        assert_eq!(value("HTTP_PROXY"), None);
        assert_eq!(value("CA_BUNDLE_FILE_PATH"), Some("/var/run/tenant-records/proxy-ca/ca-bundle.crt"));
        assert_eq!(of_kind(&manifests, "ConfigMap")["data"]["ca-bundle.crt"], "PEM");
        assert_eq!(pod["volumes"][1]["configMap"]["name"], of_kind(&manifests, "ConfigMap")["metadata"]["name"]);
    }

    /// A hub that manages itself has both the hub's and the agent's objects.
    #[test]
    fn names_are_the_agents_and_rights_are_few() {
        for manifest in full() {
            let name = manifest["metadata"]["name"].as_str().unwrap();
            assert!(manifest["kind"] == "Namespace" || name.starts_with(AGENT), "{name}");
            for rule in manifest["rules"].as_array().into_iter().flatten() {
                assert!(!rule.to_string().contains('*'), "{rule}");
                assert!(rule["resourceNames"].is_array(), "{rule}");
            }
        }
        let rules = TenantRecords::new("x").unwrap().hub_permissions("cluster1");
        assert!(!serde_json::to_string(&rules).unwrap().contains('*'));
    }

    #[test]
    fn the_pod_is_confined() {
        let manifests = full();
        let pod = &of_kind(&manifests, "Deployment")["spec"]["template"]["spec"];
        assert_eq!(pod["securityContext"], json!({"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}}));
        assert_eq!(
            pod["containers"][0]["securityContext"],
            json!({"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]}})
        );
    }
}
