//go:build tools

// Package tools pins the kwok program that the test cluster runs.
package tools

import _ "sigs.k8s.io/kwok/cmd/kwok"
