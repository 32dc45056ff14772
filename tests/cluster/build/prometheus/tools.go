//go:build tools

// Package tools pins the Prometheus program that tests run.
package tools

import _ "github.com/prometheus/prometheus/cmd/prometheus"
