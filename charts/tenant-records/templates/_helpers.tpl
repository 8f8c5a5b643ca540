{{- define "tenant-records.selector" -}}
app.kubernetes.io/name: tenant-records-hub
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "tenant-records.labels" -}}
{{ include "tenant-records.selector" . }}
app.kubernetes.io/component: hub
app.kubernetes.io/part-of: tenant-records
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name (.Chart.Version | replace "+" "_") }}
{{- end }}

{{- /* An object read from a generated file, with the chart's labels. */}}
{{- define "tenant-records.labelled" -}}
{{- $labels := include "tenant-records.labels" .root | fromYaml }}
{{- $_ := set .object.metadata "labels" (merge (.object.metadata.labels | default dict) $labels) }}
{{- toYaml .object }}
{{- end }}
