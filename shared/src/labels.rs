//! Every label, annotation, finalizer, port and environment variable that the programs read or write, once.

/// API group of the four kinds.
pub const GROUP: &str = "ray.io";

/// Field manager and `app.kubernetes.io/created-by` value of the operator.
pub const OPERATOR_NAME: &str = "kuberay-operator";
/// `app.kubernetes.io/name` value of everything made for a cluster.
pub const APPLICATION_NAME: &str = "kuberay";

/// Label keys (RC-17..RC-24).
pub mod label {
    /// `yes` on every Pod that runs Ray.
    pub const IS_RAY_NODE: &str = "ray.io/is-ray-node";
    /// Name of the RayCluster that the object belongs to.
    pub const CLUSTER: &str = "ray.io/cluster";
    /// `head`, `worker` or `redis-cleanup`.
    pub const NODE_TYPE: &str = "ray.io/node-type";
    /// Worker group name, or `headgroup`.
    pub const GROUP: &str = "ray.io/group";
    /// `<cluster>-head` or `<cluster>-worker`.
    pub const IDENTIFIER: &str = "ray.io/identifier";
    /// Index of the replica within its group (RC-18).
    pub const WORKER_GROUP_REPLICA_INDEX: &str = "ray.io/worker-group-replica-index";
    /// Name of the multi-host replica that the Pod is part of (RC-18).
    pub const WORKER_GROUP_REPLICA_NAME: &str = "ray.io/worker-group-replica-name";
    /// Index of the host within its multi-host replica (RC-18).
    pub const REPLICA_HOST_INDEX: &str = "ray.io/replica-host-index";
    /// Whether the Pod may serve traffic of a RayService, or the serve Service's own selector (RC-19, RC-24).
    pub const SERVE: &str = "ray.io/serve";
    /// Marks the headless Service of multi-host workers; the value is the cluster's name (RC-24).
    pub const HEADLESS_WORKER_SVC: &str = "ray.io/headless-worker-svc";
    /// Kind of the object that made this one.
    pub const ORIGINATED_FROM_CRD: &str = "ray.io/originated-from-crd";
    /// Name of the object that made this one.
    pub const ORIGINATED_FROM_CR_NAME: &str = "ray.io/originated-from-cr-name";
    /// Submission mode of the RayJob that made the cluster (RJ-82).
    pub const JOB_SUBMISSION_MODE: &str = "ray.io/job-submission-mode";
    /// Name of the RayCronJob that made the RayJob (RCJ-10).
    pub const CRONJOB_NAME: &str = "ray.io/cronjob-name";
    /// Application name.
    pub const K8S_NAME: &str = "app.kubernetes.io/name";
    /// Who made the object.
    pub const K8S_CREATED_BY: &str = "app.kubernetes.io/created-by";
    /// Part of the application.
    pub const K8S_COMPONENT: &str = "app.kubernetes.io/component";
}

/// Annotation keys.
pub mod annotation {
    /// `true`: the user's container command stays as it is (RC-44).
    pub const OVERWRITE_CONTAINER_CMD: &str = "ray.io/overwrite-container-cmd";
    /// Whether GCS fault tolerance is on (RC-21, RC-80).
    pub const FT_ENABLED: &str = "ray.io/ft-enabled";
    /// Namespace of the cluster's keys in Redis (RC-82).
    pub const EXTERNAL_STORAGE_NAMESPACE: &str = "ray.io/external-storage-namespace";
    /// Seconds after which a stuck Redis clean-up no longer holds the deletion (RC-114).
    pub const FT_DELETION_TIMEOUT: &str = "ray.io/gcs-ft-deletion-timeout";
    /// Hash of the spec that the Pod was made from (RC-21, RC-157).
    pub const UPGRADE_STRATEGY_RECREATE_HASH: &str = "ray.io/upgrade-strategy-recreate-hash";
    /// Version of the operator that made the object (RC-21).
    pub const KUBERAY_VERSION: &str = "ray.io/kuberay-version";
    /// `true`: ask for a serve Service on a plain cluster (RC-15).
    pub const ENABLE_SERVE_SERVICE: &str = "ray.io/enable-serve-service";
    /// `true`: a head Pod lost after the cluster was provisioned is not replaced (RC-162).
    pub const DISABLE_PROVISIONED_HEAD_RESTART: &str = "ray.io/disable-provisioned-head-restart";
    /// Spec hash that RayServices compare (RC-157).
    pub const HASH_WITHOUT_REPLICAS: &str = "ray.io/hash-without-replicas-and-workers-to-delete";
    /// Number of worker groups at the time of the hash (RC-157).
    pub const NUM_WORKER_GROUPS: &str = "ray.io/num-worker-groups";
    /// Scheduled time of the tick that a RayJob stands for (RCJ-10).
    pub const CRONJOB_SCHEDULED_TIMESTAMP: &str = "ray.io/cronjob-scheduled-timestamp";
    /// Class of an Ingress, taken over into `spec.ingressClassName` (RC-141).
    pub const INGRESS_CLASS: &str = "kubernetes.io/ingress.class";
    /// What `kubectl apply` stores about the last applied object.
    pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
}

/// Keys that gang schedulers read: labels of RayClusters and RayJobs, and what their Pods get (BS-6, BS-16..BS-18, BS-31..BS-33, BS-40, BS-52).
pub mod gang {
    /// Label: Pods start together or not at all.
    pub const ENABLED: &str = "ray.io/gang-scheduling-enabled";
    /// Label: priority class of the group.
    pub const PRIORITY_CLASS: &str = "ray.io/priority-class-name";
    /// Label: Volcano's queue.
    pub const VOLCANO_QUEUE: &str = "volcano.sh/queue-name";
    /// Label: `hard` or `soft`.
    pub const VOLCANO_TOPOLOGY_MODE: &str = "volcano.sh/network-topology-mode";
    /// Label: a whole number.
    pub const VOLCANO_TOPOLOGY_TIER: &str = "volcano.sh/network-topology-highest-tier-allowed";
    /// Annotation of Pods: their PodGroup.
    pub const VOLCANO_GROUP: &str = "scheduling.k8s.io/group-name";
    /// Annotation of Pods: their worker group.
    pub const VOLCANO_TASK: &str = "volcano.sh/task-spec";
    /// Label: YuniKorn's application.
    pub const YUNIKORN_APP: &str = "yunikorn.apache.org/app-id";
    /// Label of Pods: the same.
    pub const YUNIKORN_POD_APP: &str = "applicationId";
    /// Label: YuniKorn's queue.
    pub const YUNIKORN_QUEUE: &str = "yunikorn.apache.org/queue";
    /// Label of Pods: the same.
    pub const YUNIKORN_POD_QUEUE: &str = "queue";
    /// Annotation: who starts together, as JSON.
    pub const YUNIKORN_TASK_GROUPS: &str = "yunikorn.apache.org/task-groups";
    /// Annotation of Pods: which of them this Pod belongs to.
    pub const YUNIKORN_TASK_GROUP: &str = "yunikorn.apache.org/task-group-name";
    /// Label of RayClusters, RayJobs and Pods: KAI's queue.
    pub const KAI_QUEUE: &str = "kai.scheduler/queue";
    /// Label of Pods: their PodGroup.
    pub const PLUGINS_GROUP: &str = "scheduling.x-k8s.io/pod-group";
}

/// Finalizers.
pub mod finalizer {
    /// Holds a RayCluster until its keys are gone from Redis (RC-26).
    pub const GCS_FT_REDIS_CLEANUP: &str = "ray.io/gcs-ft-redis-cleanup-finalizer";
    /// Holds a RayJob until its Ray job was told to stop (RJ-11).
    pub const RAY_JOB: &str = "ray.io/rayjob-finalizer";
}

/// Values of [`label::NODE_TYPE`].
pub mod node_type {
    /// The head Pod.
    pub const HEAD: &str = "head";
    /// A worker Pod.
    pub const WORKER: &str = "worker";
    /// The Pod that deletes the cluster's keys from Redis.
    pub const REDIS_CLEANUP: &str = "redis-cleanup";
}

/// [`label::GROUP`] value of the head Pod; no worker group may have this name.
pub const HEAD_GROUP: &str = "headgroup";
/// What gang schedulers know the submitter of a RayJob as; no worker group of a RayJob may have this name (C-02).
pub const SUBMITTER_GROUP: &str = "submittergroup";

/// Container names that the operator uses.
pub mod container {
    /// The job submitter (RJ-113).
    pub const SUBMITTER: &str = "ray-job-submitter";
    /// The Ray autoscaler (RC-70).
    pub const AUTOSCALER: &str = "autoscaler";
    /// Init container of workers that waits for the head (RC-65).
    pub const WAIT_GCS_READY: &str = "wait-gcs-ready";
    /// Init container that waits for a certificate with the Pod's address (RC-98).
    pub const WAIT_TLS_IP_SAN: &str = "wait-for-tls-ip-san";
    /// The history server's collector (RC-99a).
    pub const HISTORY_COLLECTOR: &str = "ray-history-collector";
}

/// Ports of a Ray head (RC-131).
pub mod port {
    /// GCS server.
    pub const GCS: i32 = 6379;
    /// Ray client.
    pub const CLIENT: i32 = 10001;
    /// Dashboard and job API.
    pub const DASHBOARD: i32 = 8265;
    /// Metrics export.
    pub const METRICS: i32 = 8080;
    /// Ray Serve.
    pub const SERVE: i32 = 8000;
    /// Dashboard agent of each node.
    pub const DASHBOARD_AGENT: i32 = 52365;
    /// Where the history collector receives events.
    pub const COLLECTOR_EVENTS: i32 = 8084;

    /// Port name of the GCS server.
    pub const GCS_NAME: &str = "gcs-server";
    /// Port name of the Ray client server.
    pub const CLIENT_NAME: &str = "client";
    /// Port name of the dashboard.
    pub const DASHBOARD_NAME: &str = "dashboard";
    /// Port name of the metrics export.
    pub const METRICS_NAME: &str = "metrics";
    /// Port name of Ray Serve.
    pub const SERVE_NAME: &str = "serve";
}

/// Environment variables of containers (RC-55 and the sections that it points to).
pub mod env {
    #![allow(missing_docs)] // each constant's value is its own description; the rules stand in `operator::build::env`
    pub const RAY_CLUSTER_NAME: &str = "RAY_CLUSTER_NAME";
    pub const RAY_CLUSTER_NAMESPACE: &str = "RAY_CLUSTER_NAMESPACE";
    pub const RAY_CLOUD_INSTANCE_ID: &str = "RAY_CLOUD_INSTANCE_ID";
    pub const RAY_NODE_TYPE_NAME: &str = "RAY_NODE_TYPE_NAME";
    pub const RAY_HEAD_POD_NAME: &str = "RAY_HEAD_POD_NAME";
    pub const KUBERAY_GEN_RAY_START_CMD: &str = "KUBERAY_GEN_RAY_START_CMD";
    pub const KUBERAY_GEN_AUTOSCALER_START_CMD: &str = "KUBERAY_GEN_AUTOSCALER_START_CMD";
    pub const KUBERAY_CRD_VER: &str = "KUBERAY_CRD_VER";
    pub const RAY_PORT: &str = "RAY_PORT";
    pub const RAY_ADDRESS: &str = "RAY_ADDRESS";
    pub const FQ_RAY_IP: &str = "FQ_RAY_IP";
    pub const RAY_IP: &str = "RAY_IP";
    pub const RAY_USAGE_STATS_KUBERAY_IN_USE: &str = "RAY_USAGE_STATS_KUBERAY_IN_USE";
    pub const RAY_USAGE_STATS_EXTRA_TAGS: &str = "RAY_USAGE_STATS_EXTRA_TAGS";
    pub const RAY_DASHBOARD_ENABLE_K8S_DISK_USAGE: &str = "RAY_DASHBOARD_ENABLE_K8S_DISK_USAGE";
    pub const RAY_ENABLE_AUTOSCALER_V2: &str = "RAY_enable_autoscaler_v2";
    pub const RAY_GCS_RPC_SERVER_RECONNECT_TIMEOUT_S: &str = "RAY_gcs_rpc_server_reconnect_timeout_s";
    pub const RAY_EXTERNAL_STORAGE_NAMESPACE: &str = "RAY_external_storage_namespace";
    pub const RAY_REDIS_ADDRESS: &str = "RAY_REDIS_ADDRESS";
    pub const REDIS_USERNAME: &str = "REDIS_USERNAME";
    pub const REDIS_PASSWORD: &str = "REDIS_PASSWORD";
    pub const RAY_GCS_STORAGE: &str = "RAY_gcs_storage";
    pub const RAY_GCS_STORAGE_PATH: &str = "RAY_gcs_storage_path";
    pub const RAY_AUTH_MODE: &str = "RAY_AUTH_MODE";
    pub const RAY_AUTH_TOKEN: &str = "RAY_AUTH_TOKEN";
    pub const RAY_ENABLE_K8S_TOKEN_AUTH: &str = "RAY_ENABLE_K8S_TOKEN_AUTH";
    pub const RAY_USE_TLS: &str = "RAY_USE_TLS";
    pub const RAY_TLS_SERVER_CERT: &str = "RAY_TLS_SERVER_CERT";
    pub const RAY_TLS_SERVER_KEY: &str = "RAY_TLS_SERVER_KEY";
    pub const RAY_TLS_CA_CERT: &str = "RAY_TLS_CA_CERT";
    pub const RAY_DASHBOARD_ADDRESS: &str = "RAY_DASHBOARD_ADDRESS";
    pub const RAY_JOB_SUBMISSION_ID: &str = "RAY_JOB_SUBMISSION_ID";
    pub const PYTHONUNBUFFERED: &str = "PYTHONUNBUFFERED";
}
