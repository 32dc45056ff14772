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

{{/* Name of the two webhook configurations, which are not in a namespace: two releases must not share it. */}}
{{- define "kuberay-operator.webhook.configuration" -}}
{{- printf "%s-%s" (include "kuberay-operator.webhook.fullname" .) .Release.Namespace | trunc 253 -}}
{{- end -}}

{{- define "kuberay-operator.webhook.secret" -}}
{{- default (printf "%s-ca" (include "kuberay-operator.webhook.fullname" .)) .Values.webhook.certificates.secretName -}}
{{- end -}}

{{- define "kuberay-operator.selectorLabels" -}}
app.kubernetes.io/name: {{ include "kuberay-operator.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "kuberay-operator.labels" -}}
{{ include "kuberay-operator.selectorLabels" . }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{/* The webhook's Pods must not answer to the operator's Service: a name of their own. */}}
{{- define "kuberay-operator.webhook.selectorLabels" -}}
app.kubernetes.io/name: {{ include "kuberay-operator.webhook.fullname" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "kuberay-operator.webhook.labels" -}}
{{ include "kuberay-operator.webhook.selectorLabels" . }}
app.kubernetes.io/component: webhook
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
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

{{/* Watched namespaces as a list; empty means all. */}}
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

{{- define "kuberay-operator.gateEnabled" -}}
{{- $wanted := .gate -}}
{{- range .root.Values.featureGates -}}
{{- if and (eq .name $wanted) .enabled -}}true{{- end -}}
{{- end -}}
{{- end -}}

{{- define "kuberay-operator.logFile" -}}
{{- if and .Values.logging.baseDir .Values.logging.fileName -}}
{{- printf "%s/%s" (trimSuffix "/" .Values.logging.baseDir) .Values.logging.fileName -}}
{{- end -}}
{{- end -}}

{{/* Fails with a sentence where a value has a type that a schema cannot tell apart. */}}
{{- define "kuberay-operator.checkValues" -}}
{{- if not (regexMatch "^[1-9][0-9]*$" (toString .Values.reconcileConcurrency)) -}}
{{- fail (printf "reconcileConcurrency must be a whole number from 1 up, found %v" .Values.reconcileConcurrency) -}}
{{- end -}}
{{- if not (regexMatch "^[0-9]+([.][0-9]+)?$" (toString .Values.kubeClient.qps)) -}}
{{- fail (printf "kubeClient.qps must be a number, found %v" .Values.kubeClient.qps) -}}
{{- end -}}
{{- if not (regexMatch "^[0-9]+$" (toString .Values.kubeClient.burst)) -}}
{{- fail (printf "kubeClient.burst must be a whole number, found %v" .Values.kubeClient.burst) -}}
{{- end -}}
{{- if and .Values.batchScheduler.enabled .Values.batchScheduler.name -}}
{{- fail "set either batchScheduler.enabled (volcano) or batchScheduler.name, not both" -}}
{{- end -}}
{{- end -}}
