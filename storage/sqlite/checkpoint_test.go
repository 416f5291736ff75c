//go:build long

package sqlite

import (
	"context"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
)

// A logWorld is a store that checkpoints its log at a given number of frames.
type logWorld struct {
	*testing.T

	path     string
	store    *Store
	svc      *formsvc.Service
	account  formsvc.ID
	campaign formsvc.ID
	created  int
}

func newLogWorld(t *testing.T, frames int) *logWorld {
	t.Helper()
	path := filepath.Join(t.TempDir(), "forms.db")
	s, err := Open(t.Context(), path, &Options{LogSize: int64(frames) * pageSize})
	noError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	w := &logWorld{T: t, path: path, store: s}
	w.svc = must(formsvc.New(s, nil))
	account := must(w.svc.Accounts.Create(t.Context(), "a"))
	campaign := must(w.svc.Campaigns.Create(t.Context(), account.ID, formsvc.CampaignInput{Title: "c"}))
	w.account, w.campaign = account.ID, campaign.ID
	return w
}

// write creates n responses, four at once.
func (w *logWorld) write(n int) {
	w.Helper()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range n / 4 {
				if _, err := w.svc.Responses.Create(w.Context(), formsvc.CampaignKey{AccountID: w.account, ID: w.campaign}, formsvc.ResponseInput{
					User: formsvc.User{Email: "p" + strconv.Itoa(i) + "@example.com"},
				}); err != nil {
					w.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	w.created += n / 4 * 4
}

// writeOn creates n responses. From time to time it lets a checkpoint under way finish,
// so that it keeps up on a busy machine.
func (w *logWorld) writeOn(n int) {
	w.Helper()
	for range n / 40 {
		w.write(40)
		w.store.checkpoints.work.Wait()
	}
}

// frames returns the number of frames in the log.
func (w *logWorld) frames() int {
	w.Helper()
	w.store.checkpoints.work.Wait()
	log, _, err := checkpoint(w.Context(), w.store.checkpoints.db, "NOOP")
	noError(w, err)
	return log
}

// check fails unless everything is there and the database is sound.
func (w *logWorld) check() {
	w.Helper()
	page, err := w.svc.Responses.List(w.Context(), formsvc.ResponseQuery{AccountID: w.account, CampaignID: w.campaign})
	if err != nil || page.Total != int64(w.created) {
		w.Errorf("%d of %d responses, %v", page.Total, w.created, err)
	}
	var verdict string
	if err := w.store.checkpoints.db.QueryRowContext(w.Context(), "PRAGMA integrity_check").Scan(&verdict); err != nil || verdict != "ok" {
		w.Errorf("integrity: %s, %v", verdict, err)
	}
}

// A racedWriter commits just before the checkpointer has the writer, so that the log has
// a frame that isn't copied yet.
type racedWriter struct {
	writer

	commit func()
	alones int
	left   int // frames left uncopied at the end of a checkpoint
	failed int // failures to read the log
}

func (r *racedWriter) take(ctx context.Context) (bun.IConn, func(bool), error) {
	r.commit()
	r.alones++
	c, giveBack, err := r.writer.take(ctx)
	return c, func(lost bool) {
		log, moved, err := checkpoint(ctx, c, "NOOP")
		if err != nil {
			r.failed++
		}
		r.left += log - moved
		giveBack(lost)
	}, err
}

func TestLogRestartsDuringWrites(t *testing.T) {
	t.Parallel()
	const limit = 500
	w := newLogWorld(t, limit)
	raced := &racedWriter{writer: w.store.checkpoints.writer}
	raced.commit = func() {
		if _, err := w.svc.Responses.Create(w.Context(), formsvc.CampaignKey{AccountID: w.account, ID: w.campaign}, formsvc.ResponseInput{
			User: formsvc.User{Email: "meanwhile@example.com"},
		}); err != nil {
			w.Error(err)
		}
	}
	w.store.checkpoints.writer = raced
	w.writeOn(4_000)
	if got := w.frames(); got > 4*limit {
		t.Errorf("4,000 responses left a log of %d frames, want it moved at %d", got, limit)
	}
	w.created += raced.alones
	if raced.alones == 0 || raced.left > 0 || raced.failed > 0 {
		t.Errorf("the writers were held up %d times, and %d frames were not moved then", raced.alones, raced.left)
	}
	w.check()
}

// A reader still needs frames that aren't copied.
func TestLogStaysWhileReadersNeedIt(t *testing.T) {
	t.Parallel()
	const limit = 500
	w := newLogWorld(t, limit)
	tx := must(w.store.owned[1].BeginTx(t.Context(), nil))
	count := func() (n int) {
		noError(t, tx.QueryRowContext(t.Context(), "SELECT count(*) FROM formsvc_responses").Scan(&n))
		return n
	}
	w.write(8)
	if got := count(); got != 8 {
		t.Fatalf("%d responses before", got)
	}
	w.write(2_000)
	if got := w.frames(); got < 2*limit {
		t.Errorf("the log has %d frames: it restarted under a reader", got)
	}
	if got := count(); got != 8 {
		t.Errorf("the reader sees %d responses, want those at its beginning", got)
	}
	noError(t, tx.Rollback())
	w.writeOn(2_000)
	if got := w.frames(); got > 4*limit {
		t.Errorf("the log has %d frames after the reader ended, want it moved", got)
	}
	w.check()
}

// The store closes while a checkpoint may be under way.
func TestCloseDuringACheckpoint(t *testing.T) {
	t.Parallel()
	for range 10 {
		w := newLogWorld(t, 50)
		w.write(200)
		noError(t, w.store.Close())
		again := must(Open(t.Context(), w.path, nil))
		page, err := again.Responses(t.Context(), formsvc.ResponseQuery{AccountID: w.account, CampaignID: w.campaign})
		if err != nil || page.Total != int64(w.created) {
			t.Errorf("%d of %d responses, %v", page.Total, w.created, err)
		}
		noError(t, again.Close())
	}
}
