//! Security contexts of containers that the operator adds beside Ray.
//!
//! A namespace that enforces the Pod Security level `restricted` admits a Pod only if *every* container meets it, so an added
//! container must be held to what the user holds the Ray container to (C-37).

use k8s_openapi::api::core::v1::{Capabilities, Container, PodSpec, SecurityContext};

/// The Ray container's security context without what grants more rights: no privileged mode, no added capabilities, no unmasked
/// `/proc`. A read-only root file system is left out too, since only Ray's writable folders are mounted for it. `None` where the
/// Ray container restricts nothing; then the Pod's own context and the image decide, as in KubeRay.
pub fn restrictions_of(ray: &Container) -> Option<SecurityContext> {
    let context = ray.security_context.as_ref()?;
    let capabilities = context.capabilities.as_ref().and_then(|capabilities| capabilities.drop.clone());
    let restrictions = SecurityContext {
        privileged: None,
        proc_mount: None,
        read_only_root_filesystem: None,
        allow_privilege_escalation: context.allow_privilege_escalation.filter(|allowed| !allowed),
        capabilities: capabilities.map(|drop| Capabilities { add: None, drop: Some(drop) }),
        ..context.clone()
    };
    (restrictions != SecurityContext::default()).then_some(restrictions)
}

/// Whether a container meets the Pod Security level `restricted`, as far as security contexts go.
pub fn meets_restricted(pod: &PodSpec, container: &Container) -> bool {
    let Some(own) = container.security_context.as_ref() else { return false };
    let of_pod = pod.security_context.as_ref();
    let drops_all = own.capabilities.as_ref().is_some_and(|capabilities| {
        capabilities.drop.iter().flatten().any(|name| name == "ALL")
            && capabilities.add.iter().flatten().all(|name| name == "NET_BIND_SERVICE")
    });
    let non_root = own.run_as_non_root.or_else(|| of_pod.and_then(|context| context.run_as_non_root)) == Some(true);
    let user = own.run_as_user.or_else(|| of_pod.and_then(|context| context.run_as_user));
    let seccomp = own.seccomp_profile.as_ref().or_else(|| of_pod.and_then(|context| context.seccomp_profile.as_ref()));
    drops_all
        && non_root
        && user != Some(0)
        && own.privileged != Some(true)
        && own.allow_privilege_escalation == Some(false)
        && seccomp.is_some_and(|profile| matches!(profile.type_.as_str(), "RuntimeDefault" | "Localhost"))
}
