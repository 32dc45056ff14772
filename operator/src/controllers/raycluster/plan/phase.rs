//! Suspension of the whole cluster (RC-150..RC-152, RC-473..RC-475).
//!
//! With the gate RayClusterStatusConditions it is all or nothing: the intention is written into the status first, then every Pod
//! goes, and only when none is left the cluster may come back, whatever the spec says meanwhile.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

/// Condition types of the status.
pub mod condition {
    /// Suspension has begun.
    pub const SUSPENDING: &str = "RayClusterSuspending";
    /// Suspension is complete.
    pub const SUSPENDED: &str = "RayClusterSuspended";
}

/// Where the cluster stands between running and suspended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Pods are wanted.
    Active,
    /// The spec asks for suspension and the status does not say so yet. Nothing happens to Pods before it does.
    Asked,
    /// Every Pod goes.
    Suspending,
    /// No Pod is left, and none is wanted.
    Suspended,
}

/// The phase, from what the status says, what the spec asks for (absent means no, RC-475), and whether Pods are left.
pub fn phase(conditions: &[Condition], suspend: bool, pods_left: bool, conditions_enabled: bool) -> Phase {
    let holds = |name: &str| conditions.iter().any(|condition| condition.type_ == name && condition.status == "True");
    if !conditions_enabled {
        return match (suspend, pods_left) {
            (false, _) => Phase::Active,
            (true, true) => Phase::Suspending,
            (true, false) => Phase::Suspended,
        };
    }
    match (holds(condition::SUSPENDING), holds(condition::SUSPENDED)) {
        (true, _) if pods_left => Phase::Suspending,
        (true, _) => Phase::Suspended,
        (false, true) if !suspend => Phase::Active,
        // Somebody made Pods for a cluster that is suspended, or the operator stopped between making them and saying so.
        (false, true) if pods_left => Phase::Suspending,
        (false, true) => Phase::Suspended,
        (false, false) if suspend => Phase::Asked,
        (false, false) => Phase::Active,
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;

    #[test]
    fn suspension_is_all_or_nothing() {
        let table = [
            // status says, spec.suspend, Pods left, phase
            ("", false, true, Phase::Active),
            ("", true, true, Phase::Asked),
            ("", true, false, Phase::Asked),
            ("Suspending", true, true, Phase::Suspending),
            // RC-474: taken back half way, it is completed first.
            ("Suspending", false, true, Phase::Suspending),
            ("Suspending", false, false, Phase::Suspended),
            ("Suspended", true, false, Phase::Suspended),
            // RC-475, and the field removed means the same as false.
            ("Suspended", false, false, Phase::Active),
            ("Suspended", true, true, Phase::Suspending),
            // RC-102: both at once cannot be; it ends well.
            ("Suspending Suspended", true, true, Phase::Suspending),
            ("Suspending Suspended", false, false, Phase::Suspended),
        ];
        for (says, suspend, pods_left, wanted) in table {
            let conditions: Vec<Condition> = says
                .split_whitespace()
                .map(|name| Condition {
                    type_: format!("RayCluster{name}"),
                    status: "True".to_owned(),
                    reason: "Test".to_owned(),
                    message: String::new(),
                    observed_generation: None,
                    last_transition_time: Time(jiff::Timestamp::UNIX_EPOCH),
                })
                .collect();
            assert_eq!(phase(&conditions, suspend, pods_left, true), wanted, "{says} {suspend} {pods_left}");
        }
    }

    #[test]
    fn without_conditions_the_spec_decides() {
        let table = [(false, true, Phase::Active), (true, true, Phase::Suspending), (true, false, Phase::Suspended)];
        for (suspend, pods_left, wanted) in table {
            assert_eq!(phase(&[], suspend, pods_left, false), wanted);
        }
    }
}
