package gate

import (
	"testing"
	"time"
)

// The deadline for the next bytes.
func TestPace(t *testing.T) {
	for _, row := range []struct {
		moved, ahead int64
		waited, want time.Duration
	}{
		{0, 0, 0, Grace},
		{0, Ahead, 0, Grace},
		{0, 0, 59 * time.Second, time.Second},
		{30 * paceBytes, 0, 59 * time.Second, 31 * time.Second},
		{30*paceBytes - 1, 0, 59 * time.Second, 30 * time.Second},
		{1 << 30, 0, time.Hour, Grace}, // unused time can't be saved up
		{paceBytes, 0, 2 * time.Minute, -59 * time.Second},
		{30 * paceBytes, Ahead, 0, 90 * time.Second}, // all of it may still be in the kernels' buffers
		{1 << 30, Ahead, time.Hour, Grace + 640*time.Second},
		{30 * paceBytes, Ahead, 59 * time.Second, 31 * time.Second},
	} {
		var deadline time.Time
		p := Pace{Grace: Grace, Ahead: row.ahead, moved: row.moved, waited: row.waited, Set: func(d time.Time) { deadline = d }}
		if p.Begin(); deadline.Sub(p.began) != row.want {
			t.Errorf("%d bytes, %v waited: %v, want %v", row.moved, row.waited, deadline.Sub(p.began), row.want)
		}
		if p.End(100); p.moved != row.moved+100 || p.waited < row.waited {
			t.Errorf("moved %d, waited %v", p.moved, p.waited)
		}
	}
}
