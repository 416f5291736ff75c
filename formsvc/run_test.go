package formsvc_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

func (w *world) remember(key string) {
	w.tb.Helper()
	wantError(w.tb, w.svc.Refuse(w.ctx, w.account, &formsvc.Idempotency{Key: key}, []byte("no")), nil)
}

// remembered reports whether the store has the reply of a key.
func (w *world) remembered(key string) bool {
	_, err := w.store.Recall(w.ctx, w.account, key, time.Time{})
	return err == nil
}

// Each kind of record is deleted in its time, in any number of atomic writes.
func TestPrune(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quota(10))
	c, who := w.campaign(), w.caller()
	w.hook()
	w.submitted(&c)
	wantTook(t, w.svc, who, 1, 1)
	flushed(t, w.svc)
	for i := range 600 {
		w.remember(fmt.Sprint(i))
	}
	_, value := w.signedIn(w.account)
	session, link := sha256.Sum256([]byte(value)), sha256.Sum256([]byte(w.link(w.account)))
	looking := errors.New("only looking")
	left := func() (kinds []string) {
		note := func(kind string, there bool) {
			if there {
				kinds = append(kinds, kind)
			}
		}
		note("events", len(w.events()) > 0)
		windows, err := w.svc.Quotas.Use(w.ctx, who.KeyID, time.Time{})
		note("quotas", err != nil || len(windows) > 0)
		note("replies", w.remembered("0") || w.remembered("599"))
		_, err = w.store.SessionByHash(w.ctx, session)
		note("sessions", err == nil)
		_, err = w.store.RedeemLink(w.ctx, link, func(*formsvc.Link) (formsvc.Session, formsvc.Change, error) {
			return formsvc.Session{}, formsvc.Change{}, looking
		})
		note("links", errors.Is(err, looking))
		return kinds
	}
	for _, step := range []struct {
		at   time.Duration
		want string
	}{
		{0, "events quotas replies sessions links"},
		{formsvc.LinkTTL + 59*time.Minute, "events quotas replies sessions links"}, // active for a node whose clock is behind
		{formsvc.LinkTTL + 61*time.Minute, "events quotas replies sessions"},
		{formsvc.SessionTTL + 59*time.Minute, "events quotas replies sessions"},
		{formsvc.SessionTTL + 61*time.Minute, "events quotas replies"},
		{formsvc.IdempotencyTTL, "events quotas replies"},
		{formsvc.IdempotencyTTL + time.Millisecond, "events quotas"},
		{47 * time.Hour, "events quotas"},
		{48 * time.Hour, "events"},
		{formsvc.DefaultRetention, "events"},
		{formsvc.DefaultRetention + time.Millisecond, ""},
	} {
		w.clock.set(start().Add(step.at))
		must(w.svc.Prune(w.ctx))
		equal(t, strings.Join(left(), " "), step.want, "after %v %s are left", step.at)
	}
}

func TestRetentionOption(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		retention time.Duration
		gone      bool
	}{{0, true}, {31 * 24 * time.Hour, false}, {-1, false}} {
		w := newWorld(t, func(o *formsvc.Options) { o.Retention = c.retention })
		campaign := w.campaign()
		w.submitted(&campaign)
		w.clock.add(formsvc.DefaultRetention + time.Second)
		if n, err := w.svc.Prune(w.ctx); err != nil || (n > 0) != c.gone || (len(w.events()) == 0) != c.gone {
			t.Errorf("%v: %d, %v", c.retention, n, err)
		}
	}
	long := newWorld(t, func(o *formsvc.Options) { o.QuotaWindow = 1000 * time.Hour }) // may last longer than windows are kept
	who := long.caller()
	wantTook(t, long.svc, who, 1, 1)
	flushed(t, long.svc)
	long.clock.add(100 * time.Hour)
	must(long.svc.Prune(long.ctx))
	long.wantCounted(who.KeyID, 1)
}

// Run prunes at once and every hour, writes quotas each second and uses of keys every minute, logs
// failures, and writes once more when it ends.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		w := newWorld(t, quota(1000), func(o *formsvc.Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
		key, value := w.key(formsvc.FilesRead)
		who := &formsvc.Principal{AccountID: w.account, KeyID: key.ID}
		w.remember("old")
		const day = formsvc.IdempotencyTTL + time.Millisecond
		w.clock.add(day)
		stop := running(w.svc)
		synctest.Wait()
		if w.remembered("old") {
			t.Error("it doesn't prune at once")
		}
		w.authenticated(w.svc, value)
		wantTook(t, w.svc, who, 3, 3)
		time.Sleep(1100 * time.Millisecond)
		w.wantCounted(who.KeyID, 3)
		w.wantUsed("within a minute", &key, -1)
		time.Sleep(time.Minute)
		w.wantUsed("after a minute", &key, day)
		w.remember("new")
		w.clock.add(day)
		time.Sleep(time.Hour)
		if w.remembered("new") {
			t.Error("it doesn't prune every hour")
		}

		w.store.disturb(func(method string, _ int) error {
			if method == "UseKeys" || method == "AddQuota" {
				return errors.New("broken pipe")
			}
			return nil
		})
		w.authenticated(w.svc, value)
		wantTook(t, w.svc, who, 2, 2)
		time.Sleep(time.Minute)
		synctest.Wait()
		for _, want := range []string{"uses of keys: broken pipe", "quota: broken pipe"} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("the log has no %q: %s", want, log.String())
			}
		}
		w.store.disturb(nil)
		w.wantUsed("when it failed", &key, day)
		stop()
		w.wantUsed("at the end", &key, 2*day)
		w.wantCounted(who.KeyID, 3, 2)

		_ = w.queue().Close()
		stop = running(w.svc)
		synctest.Wait()
		stop()
		if !strings.Contains(log.String(), "formsvc: prune: store is closed") {
			t.Error("the fault is not logged:", log.String())
		}
	})
}
