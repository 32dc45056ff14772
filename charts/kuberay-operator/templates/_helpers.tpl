{{- define "kuberay-operator.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "kuberay-operator.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "kuberay-operator.webhook.fullname" -}}
{{- printf "%s-webhook" (include "kuberay-operator.fullname" . | trunc 55 | trimSuffix "-") -}}
{{- end -}}

{{/* Name of what the webhook has outside namespaces: two releases must not share it. */}}
{{- define "kuberay-operator.webhook.configuration" -}}
{{- printf "%s-%s" (include "kuberay-operator.webhook.fullname" .) .Release.Namespace | trunc 253 -}}
{{- end -}}

{{/* The CA and a certificate are Secrets of different types: a change of mode must not find the other's. */}}
{{- define "kuberay-operator.webhook.secret" -}}
{{- $suffix := ternary "ca" "tls" (eq .Values.webhook.certificates.mode "self-managed") -}}
{{- default (printf "%s-%s" (include "kuberay-operator.webhook.fullname" .) $suffix) .Values.webhook.certificates.secretName -}}
{{- end -}}

{{- define "kuberay-operator.commonLabels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{/* The same as in KubeRay's chart: a Deployment's selector cannot change in an upgrade. */}}
{{- define "kuberay-operator.selectorLabels" -}}
app.kubernetes.io/name: {{ include "kuberay-operator.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "kuberay-operator.labels" -}}
{{ include "kuberay-operator.selectorLabels" . }}
{{ include "kuberay-operator.commonLabels" . }}
{{- end -}}

{{/* A name of their own, so that the webhook's Pods never answer to the operator's Service. */}}
{{- define "kuberay-operator.webhook.selectorLabels" -}}
app.kubernetes.io/name: {{ include "kuberay-operator.webhook.fullname" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "kuberay-operator.webhook.labels" -}}
{{ include "kuberay-operator.webhook.selectorLabels" . }}
app.kubernetes.io/component: webhook
{{ include "kuberay-operator.commonLabels" . }}
{{- end -}}

{{- define "kuberay-operator.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "kuberay-operator.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "kuberay-operator.webhook.serviceAccountName" -}}
{{- if .Values.webhook.serviceAccount.create -}}
{{- default (include "kuberay-operator.webhook.fullname" .) .Values.webhook.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.webhook.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* A binding's reference to a role and to the account that gets it: kind, name, account. */}}
{{- define "kuberay-operator.binding" -}}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ .kind }}
  name: {{ .name }}
subjects:
  - kind: ServiceAccount
    name: {{ .account }}
    namespace: {{ .namespace }}
{{- end -}}

{{/* Watched namespaces, joined by commas; empty means all. */}}
{{- define "kuberay-operator.watchNamespaces" -}}
{{- if .Values.watchNamespace -}}
{{- join "," .Values.watchNamespace -}}
{{- else if .Values.singleNamespaceInstall -}}
{{- .Release.Namespace -}}
{{- end -}}
{{- end -}}

{{- define "kuberay-operator.featureGates" -}}
{{- $gates := list -}}
{{- range .Values.featureGates -}}
{{- $gates = append $gates (printf "%s=%t" .name .enabled) -}}
{{- end -}}
{{- join "," $gates -}}
{{- end -}}

{{/* "true" if a gate is on. Arguments: root, gate, and beta: true for a gate that is on by default. One named alone goes before its stage. */}}
{{- define "kuberay-operator.gateEnabled" -}}
{{- $stage := ternary "AllBeta" "AllAlpha" (default false .beta) -}}
{{- $on := default false .beta -}}
{{- $named := false -}}
{{- range .root.Values.featureGates -}}
{{- if eq .name $.gate -}}
{{- $on = .enabled -}}
{{- $named = true -}}
{{- else if and (eq .name $stage) (not $named) -}}
{{- $on = .enabled -}}
{{- end -}}
{{- end -}}
{{- if $on -}}true{{- end -}}
{{- end -}}

{{- define "kuberay-operator.logFile" -}}
{{- if and .Values.logging.baseDir .Values.logging.fileName -}}
{{- printf "%s/%s" (trimSuffix "/" .Values.logging.baseDir) .Values.logging.fileName -}}
{{- end -}}
{{- end -}}

{{/* "true" if a setting of the webhook chooses namespaces by label, so that it has to know them. */}}
{{- define "kuberay-operator.webhook.readsLabels" -}}
{{- range concat (default (list) .Values.webhook.fleetDefaults) (default (list) .Values.webhook.warnOnly) -}}
{{- $namespaces := default (dict) .namespaces -}}
{{- if or $namespaces.matchLabels $namespaces.matchExpressions -}}true{{- end -}}
{{- end -}}
{{- end -}}

{{/* Whether an entry of warnOnly chooses namespaces by label: the operator then has to know their labels. */}}
{{- define "kuberay-operator.readsLabels" -}}
{{- range default (list) .Values.webhook.warnOnly -}}
{{- $namespaces := default (dict) .namespaces -}}
{{- if or $namespaces.matchLabels $namespaces.matchExpressions -}}true{{- end -}}
{{- end -}}
{{- end -}}

{{/* Environment by which a program sends traces. What stands in tracing.env comes last, so that it wins. */}}
{{- define "kuberay-operator.tracing" -}}
{{- if (.Values.tracing).endpoint -}}
- name: POD_NAME
  valueFrom:
    fieldRef:
      fieldPath: metadata.name
- name: OTEL_EXPORTER_OTLP_ENDPOINT
  value: {{ .Values.tracing.endpoint | quote }}
- name: OTEL_TRACES_SAMPLER
  value: parentbased_traceidratio
- name: OTEL_TRACES_SAMPLER_ARG
  value: {{ .Values.tracing.samplingRatio | quote }}
- name: OTEL_RESOURCE_ATTRIBUTES
  value: k8s.namespace.name={{ .Release.Namespace }},k8s.pod.name=$(POD_NAME)
{{- with .Values.tracing.env }}
{{ toYaml . }}
{{- end }}
{{- end -}}
{{- end -}}

{{/* A number as people write it: YAML makes 2000000 a floating-point number, which would be printed as 2e+06. */}}
{{- define "kuberay-operator.number" -}}
{{- if and (kindIs "float64" .) (eq . (floor .)) -}}
{{- int64 . -}}
{{- else -}}
{{- . -}}
{{- end -}}
{{- end -}}

{{/* Constraints that spread Pods, each about the Pods of `selector` unless it says otherwise. */}}
{{- define "kuberay-operator.spread" -}}
{{- $selector := .selector -}}
{{- range .constraints }}
- {{ toYaml (merge (dict) . (dict "labelSelector" (dict "matchLabels" (fromYaml $selector)))) | nindent 2 | trim }}
{{- end }}
{{- end -}}

{{/*
Says in a sentence what is wrong with values that the schema lets pass. Every template begins with it, because it is not defined which
one is rendered first.
*/}}
{{- define "kuberay-operator.checkValues" -}}
{{- if not (and (hasKey .Values "webhook") (hasKey .Values "operator")) -}}
{{- fail "these are all the values of another chart's release: upgrade with --reset-then-reuse-values instead of --reuse-values" -}}
{{- end -}}
{{- if not (regexMatch "^[1-9][0-9]*$" (include "kuberay-operator.number" .Values.reconcileConcurrency)) -}}
{{- fail (printf "reconcileConcurrency must be a whole number from 1 up, found %v" .Values.reconcileConcurrency) -}}
{{- end -}}
{{- if not (regexMatch "^[0-9]+([.][0-9]+)?$" (include "kuberay-operator.number" .Values.kubeClient.qps)) -}}
{{- fail (printf "kubeClient.qps must be a number, found %v" .Values.kubeClient.qps) -}}
{{- end -}}
{{- if not (regexMatch "^[0-9]+$" (include "kuberay-operator.number" .Values.kubeClient.burst)) -}}
{{- fail (printf "kubeClient.burst must be a whole number, found %v" .Values.kubeClient.burst) -}}
{{- end -}}
{{- if and .Values.batchScheduler.enabled .Values.batchScheduler.name -}}
{{- fail "set either batchScheduler.enabled (which means volcano) or batchScheduler.name, not both" -}}
{{- end -}}
{{- end -}}
