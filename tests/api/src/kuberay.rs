//! A chart that makes the objects which KubeRay's chart 1.7 makes, with their names, labels and selectors (D.1).

use std::fs;

use anyhow::Result;
use tempfile::TempDir;

const LABELS: &str = "
    app.kubernetes.io/name: kuberay-operator
    helm.sh/chart: kuberay-operator-1.7.0
    app.kubernetes.io/instance: {{ .Release.Name }}
    app.kubernetes.io/managed-by: {{ .Release.Service }}";

const DEPLOYMENT: &str = r#"
apiVersion: apps/v1
kind: Deployment
metadata:
  name: kuberay-operator
  labels:LABELS
spec:
  replicas: {{ .Values.replicas }}
  strategy:
    type: Recreate
  selector:
    matchLabels:
      app.kubernetes.io/name: kuberay-operator
      app.kubernetes.io/instance: {{ .Release.Name }}
  template:
    metadata:
      labels:
        app.kubernetes.io/name: kuberay-operator
        app.kubernetes.io/instance: {{ .Release.Name }}
        app.kubernetes.io/component: kuberay-operator
    spec:
      serviceAccountName: {{ .Values.serviceAccount.name }}
      volumes: []
      containers:
        - name: kuberay-operator
          image: "{{ .Values.image.repository }}:{{ .Values.image.tag }}"
          imagePullPolicy: {{ .Values.image.pullPolicy }}
          command: [/manager]
          args:
            {{- with .Values.watchNamespace }}
            - --watch-namespace
            - {{ join "," . }}
            {{- end }}
            - --log-stdout-encoder
            - json
            - --log-file-encoder
            - json
            - --enable-leader-election=true
            - --enable-metrics=true
            - --reconcile-concurrency=1
            - --qps=100
            - --burst=200
            - --feature-gates=RayClusterStatusConditions=true
          ports:
            - {name: http, containerPort: 8080, protocol: TCP}
          env: []
          livenessProbe: {httpGet: {path: /metrics, port: http}, initialDelaySeconds: 10, periodSeconds: 5, failureThreshold: 5}
          readinessProbe: {httpGet: {path: /metrics, port: http}, initialDelaySeconds: 10, periodSeconds: 5, failureThreshold: 5}
          resources: {limits: {cpu: 100m, memory: 512Mi}}
          securityContext:
            allowPrivilegeEscalation: false
            capabilities: {drop: [ALL]}
            readOnlyRootFilesystem: true
            runAsNonRoot: true
            seccompProfile: {type: RuntimeDefault}
"#;

const SERVICE: &str = r#"
apiVersion: v1
kind: Service
metadata:
  name: kuberay-operator
  labels:LABELS
spec:
  type: ClusterIP
  ports:
    - {name: http, port: 8080, targetPort: http, protocol: TCP}
  selector:
    app.kubernetes.io/name: kuberay-operator
    app.kubernetes.io/instance: {{ .Release.Name }}
"#;

const ROLES: &str = r#"
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ .Values.serviceAccount.name }}
  labels:LABELS
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: kuberay-operator
  labels:LABELS
rules:
  - {apiGroups: [""], resources: [pods], verbs: [create, delete, deletecollection, get, list, patch, update, watch]}
  - {apiGroups: [ray.io], resources: [rayclusters, rayjobs, rayservices, raycronjobs], verbs: [create, delete, get, list, patch, update, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: kuberay-operator
  labels:LABELS
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: kuberay-operator}
subjects:
  - {kind: ServiceAccount, name: {{ .Values.serviceAccount.name }}, namespace: {{ .Release.Namespace }}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: kuberay-operator-leader-election
  labels:LABELS
rules:
  - {apiGroups: [""], resources: [configmaps], verbs: [get, list, watch, create, update, patch, delete]}
  - {apiGroups: [""], resources: [events], verbs: [create]}
  - {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [create, get, list, update]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: kuberay-operator-leader-election
  labels:LABELS
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: kuberay-operator-leader-election}
subjects:
  - {kind: ServiceAccount, name: {{ .Values.serviceAccount.name }}, namespace: {{ .Release.Namespace }}}
{{- range $kind := list "rayjob" "rayservice" "raycronjob" }}
{{- range $role, $verbs := dict "editor" (list "create" "delete" "get" "list" "patch" "update" "watch") "viewer" (list "get" "list" "watch") }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ $kind }}-{{ $role }}-role
rules:
  - {apiGroups: [ray.io], resources: [{{ $kind }}s], verbs: {{ toJson $verbs }}}
  - {apiGroups: [ray.io], resources: [{{ $kind }}s/status], verbs: [get]}
{{- end }}
{{- end }}
"#;

const VALUES: &str = "
replicas: 1
image: {repository: quay.io/kuberay/operator, tag: v1.7.0, pullPolicy: IfNotPresent}
serviceAccount: {create: true, name: kuberay-operator}
reconcileConcurrency: 1
kubeClient: {qps: 100.0, burst: 200}
batchScheduler: {enabled: false, name: ''}
";

/// The chart's folder; it goes with the value.
///
/// # Errors
/// When a file cannot be written.
pub fn chart() -> Result<TempDir> {
    let folder = tempfile::tempdir()?;
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text);
    fs::create_dir(folder.path().join("templates"))?;
    write("Chart.yaml", "apiVersion: v2\nname: kuberay-operator\nversion: 1.7.0\ntype: application\n")?;
    write("values.yaml", VALUES)?;
    for (name, text) in [("deployment", DEPLOYMENT), ("service", SERVICE), ("roles", ROLES)] {
        write(&format!("templates/{name}.yaml"), &text.replace("LABELS", LABELS))?;
    }
    Ok(folder)
}
