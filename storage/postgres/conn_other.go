//go:build !linux

package postgres

// limitUnacknowledged is supported on Linux only. Elsewhere, keepalive finds a host that is gone once nothing is in flight, and
// [Options.StatementTimeout] all others.
func limitUnacknowledged(uintptr) {}
