//! Feature gates: name, stage, default and one line each (RC-500).
//!
//! A set of gates is plain data handed to whoever needs it; there is no process-wide state, so tests can run side by side
//! with different gates.

use std::{fmt, str::FromStr};

/// How far a feature has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Off by default, may change or go away.
    Alpha,
    /// On by default, can be switched off.
    Beta,
}

macro_rules! features {
    ($($(#[doc = $doc:literal])+ $name:ident = ($stage:ident, $default:literal),)+) => {
        /// A behaviour that can be switched on or off with `--feature-gates`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Feature { $($(#[doc = $doc])+ $name,)+ }

        impl Feature {
            /// Every gate, in the order of their bits.
            pub const ALL: &'static [Feature] = &[$(Feature::$name,)+];

            /// The gate's name as written in `--feature-gates` and in the chart's `featureGates`.
            pub const fn name(self) -> &'static str {
                match self { $(Feature::$name => stringify!($name),)+ }
            }

            /// One line that says what the gate does.
            pub fn description(self) -> &'static str {
                match self { $(Feature::$name => concat!($($doc),+).trim(),)+ }
            }

            /// How far the feature has come.
            pub const fn stage(self) -> Stage {
                match self { $(Feature::$name => Stage::$stage,)+ }
            }

            /// Whether the gate is on when nobody says otherwise.
            pub const fn default_enabled(self) -> bool {
                match self { $(Feature::$name => $default,)+ }
            }
        }
    };
}

features! {
    /// Conditions in the status of RayClusters, and suspension that completes once it has begun.
    RayClusterStatusConditions = (Beta, true),
    /// `deletionStrategy` of RayJobs, and `suspend` of single worker groups.
    RayJobDeletionPolicy = (Beta, true),
    /// Multi-host worker groups live and die by whole replicas, and their Pods carry index labels.
    RayMultiHostIndexing = (Beta, true),
    /// RayServices may shift traffic step by step to a new cluster through the Gateway API.
    RayServiceIncrementalUpgrade = (Beta, true),
    /// The RayCronJob kind.
    RayCronJob = (Alpha, false),
    /// In SidecarMode a submitter that crashed is restarted in place; needs Kubernetes 1.35.
    SidecarSubmitterRestart = (Alpha, false),
    /// NetworkPolicies generated for RayClusters.
    RayClusterNetworkPolicy = (Alpha, false),
    /// GCS fault tolerance on an embedded database instead of Redis.
    GCSFaultToleranceEmbeddedStorage = (Alpha, false),
    /// Mutual TLS between Ray nodes with certificates from cert-manager.
    RayClusterMTLS = (Alpha, false),
    /// A collector container that feeds the Ray history server.
    RayClusterHistoryServer = (Alpha, false),
    /// Gang scheduling by Kubernetes' own workload API.
    KubernetesWAS = (Alpha, false),
}

impl Feature {
    const fn bit(self) -> u32 {
        1 << self as u32
    }
}

impl FromStr for Feature {
    type Err = FeatureError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL.iter().copied().find(|feature| feature.name() == name).ok_or_else(|| FeatureError::Unknown(name.to_owned()))
    }
}

/// Why a `--feature-gates` value was not understood.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum FeatureError {
    /// No gate has this name.
    #[error("there is no feature gate `{0}`; known gates: {known}", known = known_names())]
    Unknown(String),
    /// The entry is not `Name=true` or `Name=false`.
    #[error("`{0}` is not of the form Name=true or Name=false")]
    Malformed(String),
}

fn known_names() -> String {
    Feature::ALL.iter().map(|feature| feature.name()).collect::<Vec<_>>().join(", ")
}

/// Which gates are on. Copied freely; compared by value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct FeatureGates(u32);

impl Default for FeatureGates {
    fn default() -> Self {
        Feature::ALL.iter().filter(|feature| feature.default_enabled()).fold(Self(0), |gates, feature| gates.with(*feature, true))
    }
}

impl FeatureGates {
    /// Whether `feature` is on.
    pub const fn enabled(self, feature: Feature) -> bool {
        self.0 & feature.bit() != 0
    }

    /// The same set with `feature` switched on or off.
    #[must_use]
    pub const fn with(self, feature: Feature, on: bool) -> Self {
        if on { Self(self.0 | feature.bit()) } else { Self(self.0 & !feature.bit()) }
    }

    fn with_stage(self, stage: Stage, on: bool) -> Self {
        Feature::ALL.iter().filter(|feature| feature.stage() == stage).fold(self, |gates, feature| gates.with(*feature, on))
    }
}

impl FromStr for FeatureGates {
    type Err = FeatureError;

    /// Reads `A=true,B=false` on top of the defaults. `AllAlpha` and `AllBeta` stand for every gate of a stage and give way
    /// to gates named one by one, wherever they stand in the list.
    fn from_str(list: &str) -> Result<Self, Self::Err> {
        let mut gates = Self::default();
        let mut named = Vec::new();
        for entry in list.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
            let malformed = || FeatureError::Malformed(entry.to_owned());
            let (name, value) = entry.split_once('=').ok_or_else(malformed)?;
            let on = match value.trim() {
                v if v.eq_ignore_ascii_case("true") || v == "1" || v.eq_ignore_ascii_case("t") => true,
                v if v.eq_ignore_ascii_case("false") || v == "0" || v.eq_ignore_ascii_case("f") => false,
                _ => return Err(malformed()),
            };
            match name.trim() {
                "AllAlpha" => gates = gates.with_stage(Stage::Alpha, on),
                "AllBeta" => gates = gates.with_stage(Stage::Beta, on),
                name => named.push((name.parse::<Feature>()?, on)),
            }
        }
        Ok(named.into_iter().fold(gates, |gates, (feature, on)| gates.with(feature, on)))
    }
}

impl fmt::Display for FeatureGates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, feature) in Feature::ALL.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{}={}", feature.name(), self.enabled(*feature))?;
        }
        Ok(())
    }
}

impl fmt::Debug for FeatureGates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_are_read_on_top_of_the_defaults() {
        let table: &[(&str, &[(Feature, bool)])] = &[
            ("", &[(Feature::RayJobDeletionPolicy, true), (Feature::RayCronJob, false)]),
            ("RayCronJob=true, RayJobDeletionPolicy=false", &[(Feature::RayJobDeletionPolicy, false), (Feature::RayCronJob, true)]),
            ("RayCronJob=false,AllAlpha=true", &[(Feature::RayCronJob, false), (Feature::RayClusterMTLS, true)]),
            ("AllBeta=false", &[(Feature::RayMultiHostIndexing, false), (Feature::RayCronJob, false)]),
        ];
        for (list, wanted) in table {
            let gates: FeatureGates = list.parse().unwrap();
            for (feature, on) in *wanted {
                assert_eq!(gates.enabled(*feature), *on, "{list}: {}", feature.name());
            }
            assert_eq!(gates.to_string().parse::<FeatureGates>().unwrap(), gates);
        }
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        assert_eq!("NoSuch=true".parse::<FeatureGates>(), Err(FeatureError::Unknown("NoSuch".into())));
        assert_eq!("RayCronJob".parse::<FeatureGates>(), Err(FeatureError::Malformed("RayCronJob".into())));
        assert_eq!("RayCronJob=maybe".parse::<FeatureGates>(), Err(FeatureError::Malformed("RayCronJob=maybe".into())));
    }

    #[test]
    fn every_gate_says_what_it_does_and_alpha_is_off() {
        for feature in Feature::ALL {
            assert!(feature.description().ends_with('.'), "{}", feature.name());
            assert_eq!(feature.default_enabled(), feature.stage() == Stage::Beta, "{}", feature.name());
        }
    }
}
