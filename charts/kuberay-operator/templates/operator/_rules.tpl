{{/*
What the operator may do in the namespaces that it watches. Kinds are grouped by what is done with them; a group that only a switched-off
feature needs is left out. Server-side apply takes `patch`, and `create` the first time.
*/}}
{{- define "kuberay-operator.rules" -}}
{{- $cron := include "kuberay-operator.gateEnabled" (dict "root" . "gate" "RayCronJob") -}}
- apiGroups: [ray.io]
  resources: [rayclusters]
  verbs: [create, delete, get, list, patch, watch]
- apiGroups: [ray.io]
  resources: [rayjobs]
  verbs: [{{ if $cron }}create, {{ end }}delete, get, list, patch, watch]
- apiGroups: [ray.io]
  resources: [rayservices{{ if $cron }}, raycronjobs{{ end }}]
  verbs: [get, list, patch, watch]
- apiGroups: [ray.io]
  resources: [rayclusters/status, rayjobs/status, rayservices/status{{ if $cron }}, raycronjobs/status{{ end }}]
  verbs: [patch]
# OpenShift asks for this right of whoever makes an object that holds up the deletion of its owner.
- apiGroups: [ray.io]
  resources: [rayclusters/finalizers, rayjobs/finalizers, rayservices/finalizers{{ if $cron }}, raycronjobs/finalizers{{ end }}]
  verbs: [update]
- apiGroups: [""]
  resources: [pods, services, serviceaccounts]
  verbs: [create, delete, get, list, patch, watch]
# Not used, but given on to Ray's autoscaler, and nobody can give a right that they lack.
- apiGroups: [""]
  resources: [pods/resize]
  verbs: [patch]
- apiGroups: [""]
  resources: [secrets]
  verbs: [create, delete, get, list, watch]
- apiGroups: [""]
  resources: [persistentvolumeclaims]
  verbs: [{{ if include "kuberay-operator.gateEnabled" (dict "root" . "gate" "GCSFaultToleranceEmbeddedStorage") }}create, get, patch, {{ end }}list, watch]
- apiGroups: [batch]
  resources: [jobs]
  verbs: [create, delete, get, list, watch]
- apiGroups: [networking.k8s.io]
  resources: [ingresses]
  verbs: [create, delete, get, list, patch, watch]
- apiGroups: [rbac.authorization.k8s.io]
  resources: [roles, rolebindings]
  verbs: [create, delete, get, list, patch, watch]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, patch]
# Which Pods serve a RayService.
- apiGroups: [discovery.k8s.io]
  resources: [endpointslices]
  verbs: [get, list, watch]
- apiGroups: [route.openshift.io]
  resources: [routes]
  verbs: [create, delete, get, patch]
{{- if include "kuberay-operator.readsLabels" . }}
# webhook.warnOnly chooses namespaces by label.
- apiGroups: [""]
  resources: [namespaces]
  verbs: [get]
{{- end }}
{{- if .Values.useKubernetesProxy }}
- apiGroups: [""]
  resources: [services/proxy]
  verbs: [create, get, update]
- apiGroups: [""]
  resources: [pods/proxy]
  verbs: [get]
{{- end }}
{{- if include "kuberay-operator.gateEnabled" (dict "root" . "gate" "RayServiceIncrementalUpgrade" "beta" true) }}
- apiGroups: [gateway.networking.k8s.io]
  resources: [gateways, httproutes]
  verbs: [create, delete, get, list, patch, watch]
{{- end }}
{{- if include "kuberay-operator.gateEnabled" (dict "root" . "gate" "RayClusterNetworkPolicy") }}
- apiGroups: [networking.k8s.io]
  resources: [networkpolicies]
  verbs: [create, delete, get, list, patch, watch]
{{- end }}
{{- if include "kuberay-operator.gateEnabled" (dict "root" . "gate" "RayClusterMTLS") }}
- apiGroups: [cert-manager.io]
  resources: [certificates, issuers]
  verbs: [create, get, list, patch, watch]
{{- end }}
{{- if or .Values.batchScheduler.enabled (eq .Values.batchScheduler.name "volcano") }}
- apiGroups: [scheduling.volcano.sh]
  resources: [podgroups]
  verbs: [create, get, list, patch, watch]
{{- end }}
{{- if eq .Values.batchScheduler.name "scheduler-plugins" }}
- apiGroups: [scheduling.x-k8s.io]
  resources: [podgroups]
  verbs: [create, delete, get, list, patch, watch]
{{- end }}
{{- if include "kuberay-operator.gateEnabled" (dict "root" . "gate" "KubernetesWAS") }}
- apiGroups: [scheduling.k8s.io]
  resources: [podgroups, workloads]
  verbs: [create, delete, get, list, patch, watch]
{{- end }}
{{- end -}}
