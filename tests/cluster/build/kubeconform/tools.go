//go:build tools

// Package tools pins the kubeconform that the benchmarks put beside `check`.
package tools

import _ "github.com/yannh/kubeconform/cmd/kubeconform"
