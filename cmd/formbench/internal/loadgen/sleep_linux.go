package loadgen

import (
	"syscall"
	"time"
)

// sleepUntil returns at that time, some 60 µs late. Go's own timers may be a
// millisecond late in a process that has nothing else to do.
func sleepUntil(t time.Time) {
	for left := time.Until(t); left > 0; left = time.Until(t) {
		wait := syscall.NsecToTimespec(int64(left))
		if err := syscall.Nanosleep(&wait, nil); err != nil && err != syscall.EINTR {
			time.Sleep(left)
		}
	}
}
