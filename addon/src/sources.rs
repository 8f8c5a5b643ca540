//! The watches that a manager needs.

use std::fmt;

use futures::StreamExt;
use futures::stream::{BoxStream, SelectAll, Stream, select_all};
use kube::core::ApiResource;
use kube::runtime::watcher::Config;
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use tenant_records_api::ocm::LABEL_ADDON_NAME;
use tenant_records_runtime::{Guarded, Update, watch};

use crate::addon::AddOn;
use crate::config::ConfigObject;
use crate::reconcile::group_resource;
use crate::view::News;

/// Everything that is watched for one add-on, as one stream.
pub(crate) fn all(client: &Client, addon: &dyn AddOn) -> SelectAll<BoxStream<'static, News>> {
    let named = Config::default().fields(&format!("metadata.name={}", addon.name()));
    let labelled = Config::default().labels(&format!("{LABEL_ADDON_NAME}={}", addon.name()));
    let mut sources = vec![
        kind(client, named.clone()).map(News::Offer).boxed(),
        kind(client, named).map(News::AddOn).boxed(),
        kind(client, Config::default()).map(News::Cluster).boxed(),
        kind(client, labelled.clone()).map(News::Work).boxed(),
        kind(client, labelled.clone()).map(News::Role).boxed(),
        kind(client, labelled.clone()).map(News::RoleBinding).boxed(),
        kind(client, labelled).map(News::Request).boxed(),
    ];
    for config in addon.supported_configs() {
        sources.push(configs(client, &config).boxed());
    }
    select_all(sources)
}

fn kind<K>(client: &Client, config: Config) -> impl Stream<Item = Update<K>> + Send + use<K>
where
    K: Resource<DynamicType = ()> + Clone + fmt::Debug + DeserializeOwned + Send + 'static,
{
    watch(Api::<Guarded<K>>::all(client.clone()), config)
}

fn configs(client: &Client, kind: &ApiResource) -> impl Stream<Item = News> + Send + use<> {
    let name = group_resource(kind);
    let api: Api<Guarded<ConfigObject>> = Api::all_with(client.clone(), kind);
    watch(api, Config::default()).map(move |update| News::Config(name.clone(), update))
}
