//go:build !linux

package loadgen

import "time"

// sleepUntil returns at that time or a little later.
func sleepUntil(t time.Time) { time.Sleep(time.Until(t)) }
