//go:build linux

package torture_test

import (
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"
)

// The machine loses power: the process dies, and unflushed data is lost entirely or in part. The database and the files are
// on that disk.
func TestPowerLoss(t *testing.T) {
	d := mountDisk(t)
	w := newWorld(t, 1, setup{dsn: "sqlite:" + filepath.Join(d.dir, "formsvc.db"), data: filepath.Join(d.dir, "data")})
	w.files = true
	w.begin(300)
	for range rounds(6) {
		w.start(0)
		w.more(20)
		time.Sleep(300*time.Millisecond + rand.N(time.Second))
		d.fail(rand.IntN(20)) // most losses are between a write and its flush
		time.Sleep(50 * time.Millisecond)
		w.kill(0)
		d.losePower()
	}
	w.check()
	t.Logf("lost on the way: %d writes, %d changes of names", d.lostWrites, d.lostNames)
	if d.lostWrites == 0 || d.lostNames == 0 {
		t.Error("INVALID: nothing was lost that was not flushed")
	}
}
