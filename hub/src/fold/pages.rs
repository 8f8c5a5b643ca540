//! Rows arranged on pages. A cluster keeps its page while it stays, so that one changed cluster rewrites one page.

use std::collections::{BTreeMap, HashMap};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use serde::Serialize;
use tenant_records_api::digest::short_hash;
use tenant_records_api::{
    ClusterRow, GROUP, PageContents, PageData, ResolvedConfig, TenantDeploymentRecordPage, VERSION,
};

use tenant_records_runtime::ObjectKey;

use super::workload::WorkloadPage;
use super::{Inputs, Previous};

/// Rows on a page; chosen so that a changed row of a record over 1,000 clusters writes at most 40 KiB, root included.
const ROWS: usize = 50;
/// Bytes of JSON on a page; a page closes before it would pass this.
const BYTES: usize = 60 * 1024;
/// The label of a page that names its record, cut by a hash where the name is too long for a label.
const LABEL_RECORD: &str = "tenancy.open-cluster-management.io/record";

pub(super) fn arrange(
    inputs: &Inputs<'_>,
    previous: &Previous<'_>,
    rows: Vec<ClusterRow>,
    workload: WorkloadPage,
    config: Vec<ResolvedConfig>,
) -> Vec<TenantDeploymentRecordPage> {
    let clusters = cluster_pages(inputs, previous, rows).into_iter().map(|(number, clusters)| {
        let data = PageData {
            contents: PageContents::Clusters,
            count: clusters.len() as u32,
            clusters,
            ..PageData::default()
        };
        page(inputs, &cluster_page_name(inputs, number), data)
    });
    let workload = workload_pages(workload, config).into_iter().enumerate().map(|(number, data)| {
        let name = format!("{}-w{number}", stem(inputs.key, uid(inputs)));
        page(inputs, &name, data)
    });
    clusters.chain(workload).collect()
}

/// The rows by page number.
fn cluster_pages(
    inputs: &Inputs<'_>,
    previous: &Previous<'_>,
    rows: Vec<ClusterRow>,
) -> BTreeMap<usize, Vec<ClusterRow>> {
    let mut pages: BTreeMap<usize, Room<ClusterRow>> = BTreeMap::new();
    let known = known_pages(inputs, previous);
    let mut homeless = Vec::new();
    for row in rows {
        match known.get(row.cluster_name.as_str()) {
            Some(&number) => homeless.extend(pages.entry(number).or_default().put(row)),
            None => homeless.push(row),
        }
    }
    for mut row in homeless {
        for number in 0.. {
            match pages.entry(number).or_default().put(row) {
                None => break,
                Some(back) => row = back,
            }
        }
    }
    let sorted = |room: Room<ClusterRow>| {
        let mut rows = room.items;
        rows.sort_by(|a, b| a.cluster_name.cmp(&b.cluster_name));
        rows
    };
    pages.into_iter().map(|(number, room)| (number, sorted(room))).collect()
}

fn known_pages<'a>(inputs: &Inputs<'_>, previous: &Previous<'a>) -> HashMap<&'a str, usize> {
    let prefix = format!("{}-c", stem(inputs.key, uid(inputs)));
    let number = |name: &str| name.strip_prefix(&prefix)?.parse().ok();
    let pages = previous.pages.iter().filter_map(|(name, page)| Some((number(name)?, page)));
    pages.flat_map(|(number, page)| page.clusters.iter().map(move |row| (row.cluster.as_str(), number))).collect()
}

/// A page under construction.
struct Room<T> {
    items: Vec<T>,
    bytes: usize,
}

impl<T> Default for Room<T> {
    fn default() -> Self {
        Self { items: Vec::new(), bytes: 0 }
    }
}

impl<T: Serialize> Room<T> {
    /// Puts the item in, or gives it back when the page is full. An empty page takes any item.
    fn put(&mut self, item: T) -> Option<T> {
        let bytes = json_size(&item);
        let full = self.items.len() >= ROWS || self.bytes + bytes > BYTES;
        if full && !self.items.is_empty() {
            return Some(item);
        }
        self.bytes += bytes;
        self.items.push(item);
        None
    }
}

/// The workload in the order of its indices, on as many pages as it needs.
fn workload_pages(workload: WorkloadPage, config: Vec<ResolvedConfig>) -> Vec<PageData> {
    let mut pages = Pages::default();
    for entry in workload.workload {
        pages.with_room_for(json_size(&entry)).workload.push(entry);
    }
    for object in workload.objects {
        pages.with_room_for(json_size(&object)).objects.push(object);
    }
    for object in config {
        pages.with_room_for(json_size(&object)).config.push(object);
    }
    for page in &mut pages.pages {
        page.contents = PageContents::Workload;
        page.count = (page.workload.len() + page.objects.len() + page.config.len()) as u32;
    }
    pages.pages
}

#[derive(Default)]
struct Pages {
    pages: Vec<PageData>,
    bytes: usize,
}

impl Pages {
    fn with_room_for(&mut self, bytes: usize) -> &mut PageData {
        if self.pages.is_empty() || self.bytes + bytes > BYTES {
            self.pages.push(PageData::default());
            self.bytes = 0;
        }
        self.bytes += bytes;
        self.pages.last_mut().expect("there is one")
    }
}

fn page(inputs: &Inputs<'_>, name: &str, data: PageData) -> TenantDeploymentRecordPage {
    let record = &inputs.key.name;
    let label =
        if record.len() <= 63 { record.clone() } else { format!("{}-{}", cut(record, 52), short_hash(record, 10)) };
    TenantDeploymentRecordPage {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some(inputs.key.namespace.clone()),
            labels: Some([(LABEL_RECORD.to_owned(), label)].into()),
            owner_references: Some(vec![OwnerReference {
                api_version: format!("{GROUP}/{VERSION}"),
                kind: "TenantDeploymentRecord".to_owned(),
                name: record.clone(),
                uid: uid(inputs).to_owned(),
                controller: Some(true),
                block_owner_deletion: None,
            }]),
            ..ObjectMeta::default()
        },
        spec: PageData { record_name: record.clone(), ..data },
    }
}

fn cluster_page_name(inputs: &Inputs<'_>, number: usize) -> String {
    format!("{}-c{number}", stem(inputs.key, uid(inputs)))
}

/// What the names of a record's pages start with. The UID keeps pages of a record's namesake before it apart.
pub(super) fn stem(key: &ObjectKey, uid: &str) -> String {
    format!("{}-{}", cut(&key.name, 230), short_hash(uid, 6))
}

fn uid<'a>(inputs: &Inputs<'a>) -> &'a str {
    inputs.record.metadata.uid.as_deref().unwrap_or_default()
}

/// The text's first bytes, without a `.` or `-` at the end. Names of objects are ASCII.
fn cut(text: &str, bytes: usize) -> &str {
    text[..text.floor_char_boundary(bytes)].trim_end_matches(['.', '-'])
}

fn json_size<T: Serialize>(value: &T) -> usize {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    serde_json::to_writer(&mut count, value).expect("rows serialise to JSON");
    count.0
}
