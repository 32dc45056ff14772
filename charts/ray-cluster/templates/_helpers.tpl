{{- define "ray-cluster.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name -}}
{{- end -}}
{{- end -}}

{{- define "ray-cluster.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{/* Parameters of `ray start` as text, whatever YAML took them for; a large whole number must not become 1e+09. */}}
{{- define "ray-cluster.rayStartParams" -}}
{{- $params := dict -}}
{{- range $given := list .initArgs .rayStartParams -}}
{{- range $key, $value := $given -}}
{{- if and (kindIs "float64" $value) (eq $value (floor $value)) -}}
{{- $value = int64 $value -}}
{{- end -}}
{{- $_ := set $params $key (toString $value) -}}
{{- end -}}
{{- end -}}
{{- if $params -}}
rayStartParams:
  {{- toYaml $params | nindent 2 }}
{{- else -}}
rayStartParams: {}
{{- end }}
{{- end -}}

{{/* The Pod template of a group. Arguments: root, group (its values), container (name of the Ray container). */}}
{{- define "ray-cluster.template" -}}
{{- $root := .root -}}
{{- $group := .group -}}
metadata:
  labels:
    {{- toYaml (merge (dict) (default (dict) $group.labels) (fromYaml (include "ray-cluster.labels" $root))) | nindent 4 }}
  {{- with $group.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  {{- with $root.Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- range $key := list "serviceAccountName" "restartPolicy" "runtimeClassName" "priorityClassName" }}
  {{- with get $group $key }}
  {{ $key }}: {{ . }}
  {{- end }}
  {{- end }}
  {{- if hasKey $group "priority" }}
  priority: {{ int64 $group.priority }}
  {{- end }}
  {{- with $group.podSecurityContext }}
  securityContext:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- range $key := list "initContainers" "dnsConfig" "nodeSelector" "affinity" "tolerations" "topologySpreadConstraints" "resourceClaims" "volumes" }}
  {{- with get $group $key }}
  {{ $key }}:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- end }}
  containers:
    - name: {{ .container }}
      image: {{ default (printf "%s:%v" $root.Values.image.repository $root.Values.image.tag) $group.image | quote }}
      imagePullPolicy: {{ $root.Values.image.pullPolicy }}
      {{- with concat (default (list) $root.Values.common.containerEnv) (default (list) $group.containerEnv) }}
      env:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- range $key := list "command" "args" "envFrom" "ports" "lifecycle" "securityContext" "volumeMounts" }}
      {{- with get $group $key }}
      {{ $key }}:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- end }}
      resources:
        {{- $few := dict "cpu" "1" "memory" "1Gi" }}
        {{- toYaml (default (dict "limits" $few "requests" $few) $group.resources) | nindent 8 }}
    {{- with $group.sidecarContainers }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end -}}

{{/* A worker group. Arguments: root, group (its values), name. */}}
{{- define "ray-cluster.workerGroup" -}}
groupName: {{ .name }}
replicas: {{ default 0 .group.replicas | int64 }}
minReplicas: {{ default 0 .group.minReplicas | int64 }}
maxReplicas: {{ hasKey .group "maxReplicas" | ternary .group.maxReplicas 2147483647 | int64 }}
numOfHosts: {{ default 1 .group.numOfHosts | int64 }}
{{ include "ray-cluster.rayStartParams" .group }}
template:
  {{- include "ray-cluster.template" (dict "root" .root "group" .group "container" "ray-worker") | nindent 2 }}
{{- end -}}
