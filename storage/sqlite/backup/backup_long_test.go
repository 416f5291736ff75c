//go:build long

package backup_test

import (
	"context"
	"crypto/rand"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/sqlite/backup"
)

// A backup is made and restored repeatedly while responses with files are created and
// erased. The restored service has everything that existed when the backup began, with
// every byte, and no file of a deleted response.
func TestBackupBesideUploadsAndErasures(t *testing.T) {
	t.Parallel()
	p := stocked(t)
	ctx, stop := context.WithCancel(t.Context())
	var (
		work sync.WaitGroup
		mu   sync.Mutex
		kept []formsvc.ID
	)
	defer work.Wait()
	defer stop()
	for range 4 {
		work.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				f := p.submit(context.WithoutCancel(ctx), t, []byte(rand.Text()))
				if n%2 == 0 {
					mu.Lock()
					kept = append(kept, f.ID)
					mu.Unlock()
				} else if err := p.svc.Responses.Delete(context.WithoutCancel(ctx), formsvc.ResponseKey{
					AccountID: f.AccountID, CampaignID: f.CampaignID, ID: f.ResponseID,
				}, nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 3 {
		for promised := 0; promised < 10; time.Sleep(time.Millisecond) {
			mu.Lock()
			promised = len(kept)
			mu.Unlock()
		}
		mu.Lock()
		promised := slices.Clone(kept)
		mu.Unlock()
		dir := filepath.Join(t.TempDir(), "backup")
		m := p.write(t, dir)

		to := t.TempDir()
		must(backup.Restore(t.Context(), dir, target(t, to)))
		ids := opened(t, to).sound(t)
		for _, id := range promised {
			if !slices.Contains(ids, id) {
				t.Errorf("file %s is not back", id)
			}
		}
		blobs := 0
		for info, err := range openFiles(t, filepath.Join(to, "files")).List(t.Context(), "") {
			if err != nil {
				t.Error(err)
			}
			if info.Key != formsvc.MarkerKey {
				blobs++
			}
		}
		if blobs != len(ids) || m.Files != len(ids) {
			t.Errorf("%d blobs, and a backup of %d of %d files", blobs, m.Files, len(ids))
		}
	}
}
