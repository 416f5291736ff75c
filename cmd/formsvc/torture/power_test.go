//go:build linux

package torture_test

import (
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/formsvc/toolkit/cmd/formsvc/torture/internal/load"
	"github.com/formsvc/toolkit/cmd/formsvc/torture/internal/lossyfs"
	"github.com/formsvc/toolkit/cmd/formsvc/torture/internal/world"
)

// The machine loses power: the process dies, and unflushed data is lost entirely or in part. The database and the files are
// on that disk.
func TestPowerLoss(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	disk := lossyfs.Mount(t, seed)
	data := filepath.Join(disk.Dir, "data")
	w := world.New(t, world.Options{Program: program(t), DSN: "sqlite:" + filepath.Join(disk.Dir, "formsvc.db"), Data: data})
	began, r := time.Now(), newRounds(4)
	l := w.Load(func(o *load.Options) { o.Rate = 300 })
	for r.nextUntil(disk.Dropped().Pages > 0) {
		before := l.Acked()
		w.Start(0)
		waitFor(t, "there is load", func() bool { return l.Acked() > before+20 })
		time.Sleep(300*time.Millisecond + rand.N(time.Second))
		select { // a part of the losses are between a write and its flush
		case <-disk.Cut(rand.IntN(20)):
		case <-time.After(2 * time.Second):
		}
		w.Kill(0)
		disk.PowerLoss(t)
	}
	w.Stop(l)
	lost := disk.Dropped()
	s := w.Check()
	report(t, r, "losses of power", began, &s)
	t.Logf("lost on the way: %d pages of 4 KiB, %d torn ones, %d changes of names", lost.Pages, lost.Torn, lost.Names)
	if lost.Pages == 0 {
		t.Error("INVALID: nothing was lost that was not flushed")
	}
}
