{{/* The name of what a release makes. */}}
{{- define "prime.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Labels that select all nodes of a release. */}}
{{- define "prime.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "prime.labels" -}}
{{ include "prime.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{/* The values of a pool over the defaults: the list is the chart's context and the pool. */}}
{{- define "prime.pool" -}}
{{- $root := index . 0 -}}
{{- mergeOverwrite (deepCopy $root.Values.poolDefaults) (index . 1 | default dict) | toJson -}}
{{- end -}}
