//! With whom an object goes.

use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Api, Client, Resource};

/// A reference to a ServiceAccount as the owner of an object in its namespace: the object is removed with it.
pub async fn service_account_owner(client: Client, namespace: &str, name: &str) -> Result<OwnerReference, kube::Error> {
    let account = Api::<ServiceAccount>::namespaced(client, namespace).get_metadata(name).await?;
    Ok(OwnerReference {
        api_version: ServiceAccount::api_version(&()).into_owned(),
        kind: ServiceAccount::kind(&()).into_owned(),
        name: name.to_owned(),
        uid: account.metadata.uid.unwrap_or_default(),
        controller: None,
        block_owner_deletion: None,
    })
}
