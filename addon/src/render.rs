//! Manifests from handlebars templates.

use std::error::Error as _;

use handlebars::{Context, Handlebars, Helper, HelperResult, Output, RenderContext, RenderErrorReason, no_escape};
use serde_json::Value;

use crate::values::Values;

/// Why a template gives no manifests. Each message names the template.
#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    /// The template isn't valid handlebars.
    #[error("template {template}: {source}")]
    Template {
        /// Its name.
        template: String,
        /// What is wrong, and where.
        source: Box<handlebars::TemplateError>,
    },
    /// The template can't be rendered with these values, for example because one is missing.
    #[error("template {template}: {cause}")]
    Render {
        /// Its name.
        template: String,
        /// What is wrong, and where.
        cause: String,
    },
    /// The rendered text isn't YAML.
    #[error("template {template}: the rendered text isn't valid YAML: {source}")]
    Yaml {
        /// Its name.
        template: String,
        /// What is wrong, and where.
        source: Box<serde_saphyr::Error>,
    },
    /// A rendered document isn't a Kubernetes object.
    #[error(
        "template {template}: document {document} isn't a Kubernetes object with apiVersion, kind and metadata.name"
    )]
    NotAnObject {
        /// Its name.
        template: String,
        /// Which document, from 1; empty ones don't count.
        document: usize,
    },
}

/// A set of named templates, each for one or more YAML documents.
///
/// A value that a template names must exist, except in the condition of an `if`. Text isn't escaped: the helper `json`
/// writes any value in a form that is safe at any place of a YAML document where a value may stand.
#[derive(Debug)]
pub struct Templates {
    registry: Handlebars<'static>,
    names: Vec<String>,
}

/// Writes its parameter as JSON, which is YAML too.
fn json_helper(
    helper: &Helper<'_>,
    _: &Handlebars<'_>,
    _: &Context,
    _: &mut RenderContext<'_, '_>,
    out: &mut dyn Output,
) -> HelperResult {
    let value = helper.param(0).ok_or(RenderErrorReason::ParamNotFoundForIndex("json", 0))?;
    if value.is_value_missing() {
        return Err(RenderErrorReason::MissingVariable(value.relative_path().cloned()).into());
    }
    Ok(out.write(&value.value().to_string())?)
}

impl Templates {
    /// Parses templates, given by name and text. They are rendered in that order.
    ///
    /// # Errors
    /// [`RenderError::Template`] for the first that isn't valid.
    pub fn new<'t>(templates: impl IntoIterator<Item = (&'t str, &'t str)>) -> Result<Self, RenderError> {
        let mut registry = Handlebars::new();
        registry.set_strict_mode(true);
        registry.register_escape_fn(no_escape);
        registry.register_helper("json", Box::new(json_helper));
        let mut names = Vec::new();
        for (name, text) in templates {
            registry
                .register_template_string(name, text)
                .map_err(|source| RenderError::Template { template: name.into(), source: Box::new(source) })?;
            names.push(name.into());
        }
        Ok(Self { registry, names })
    }

    /// Renders all templates to manifests. Empty documents are left out.
    ///
    /// # Errors
    /// The first template's that can't be rendered to Kubernetes objects.
    pub fn render(&self, values: &Values) -> Result<Vec<Value>, RenderError> {
        let mut manifests = Vec::new();
        for template in &self.names {
            let text = self
                .registry
                .render(template, values)
                .map_err(|error| RenderError::Render { template: template.clone(), cause: cause_of(&error) })?;
            let documents: Vec<Value> = serde_saphyr::from_multiple(&text)
                .map_err(|source| RenderError::Yaml { template: template.clone(), source: Box::new(source) })?;
            for (index, document) in documents.into_iter().enumerate() {
                if document.is_null() {
                    continue;
                }
                if !is_object(&document) {
                    return Err(RenderError::NotAnObject { template: template.clone(), document: index + 1 });
                }
                manifests.push(document);
            }
        }
        Ok(manifests)
    }
}

/// What went wrong and in which line; the error's own text repeats the template's name and can hide the missing value's.
fn cause_of(error: &handlebars::RenderError) -> String {
    let reason = match error.reason() {
        RenderErrorReason::MissingVariable(Some(path)) => format!("there is no value {path:?}"),
        reason => reason.source().map_or_else(|| reason.to_string(), |source| format!("{reason}: {source}")),
    };
    match error.line_no {
        Some(line) => format!("line {line}: {reason}"),
        None => reason,
    }
}

fn is_object(document: &Value) -> bool {
    let has_text = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
    has_text(&document["apiVersion"]) && has_text(&document["kind"]) && has_text(&document["metadata"]["name"])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn render(text: &str, values: Value) -> Result<Vec<Value>, RenderError> {
        Templates::new([("test.yaml", text)])?.render(&values.as_object().cloned().unwrap_or_default())
    }

    #[test]
    fn several_documents() {
        let text = "{{#if Wanted}}\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{json Name}}\n  labels: null\n\
            data: {a: {{json Text}}, empty: {}}\n{{/if}}\n---\n{{#if Unknown}}\n{{json Unknown}}\n{{/if}}\n---\n\
            {apiVersion: v1, kind: Namespace, metadata: {name: {{Name}} } }\n";
        let nasty = "line\n\"quote\": <&> {{x}} é #no comment";
        let manifests = render(text, json!({"Wanted": true, "Name": "x1", "Text": nasty})).expect("manifests");
        assert_eq!(
            manifests,
            [
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x1", "labels": null}, "data": {"a": nasty, "empty": {}}}),
                json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x1"}}),
            ]
        );
        assert_eq!(render(text, json!({"Wanted": false, "Name": "x", "Text": ""})).expect("manifests").len(), 1);
    }

    #[test]
    fn errors_name_template_and_cause() {
        for (text, values, expected) in [
            ("a\n{{#if x}}", json!({}), "template test.yaml: "),
            ("a:\n  {{Missing}}", json!({}), "template test.yaml: line 2: there is no value \"Missing\""),
            ("a:\n  {{json a.b}}", json!({"a": {}}), "template test.yaml: line 2: there is no value \"a.b\""),
            ("a: [1", json!({}), "template test.yaml: the rendered text isn't valid YAML: "),
            ("a: 1\n---\n", json!({}), "template test.yaml: document 1 isn't a Kubernetes object"),
            (
                "apiVersion: v1\nkind: Pod\nmetadata: {generateName: x}",
                json!({}),
                "template test.yaml: document 1 isn't",
            ),
        ] {
            let message = render(text, values).expect_err(text).to_string();
            assert!(message.starts_with(expected), "{text:?} gave {message:?}");
        }
    }
}
