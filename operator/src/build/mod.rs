//! Pure: Kubernetes objects from a spec and the settings, one file per kind of child.
