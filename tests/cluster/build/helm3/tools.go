//go:build tools

// Package tools pins the Helm 3 that the charts are tested with beside Helm 4.
package tools

import _ "helm.sh/helm/v3/cmd/helm"
