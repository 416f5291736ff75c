package transfer_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/blobstore/memblob"
	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/keyring"
	"github.com/formsvc/toolkit/storage/postgres"
	"github.com/formsvc/toolkit/storage/postgres/postgrestest"
	"github.com/formsvc/toolkit/storage/sqlite"
	"github.com/formsvc/toolkit/storage/transfer"
	"github.com/formsvc/toolkit/webhook"
)

const nasty = "tab\tline\nback\\slash \\N 'quote' \"x\" €😀\r\v\f\b"

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

type store interface {
	formsvc.Store
	Close() error
}

// start opens a database as a server does.
func start(ctx context.Context, dsn string, ring *keyring.Keyring) (store, error) {
	if path, ok := strings.CutPrefix(dsn, "sqlite:"); ok {
		s, err := sqlite.Open(ctx, path, &sqlite.Options{Keyring: ring})
		if err != nil {
			return nil, err
		}
		return s, nil
	}
	s, err := postgres.Open(ctx, dsn, &postgres.Options{Keyring: ring, MaxConns: 4})
	if err != nil {
		return nil, err
	}
	return s, nil
}

func newDSN(t testing.TB, kind string) string {
	t.Helper()
	if kind == "sqlite" {
		return "sqlite:" + filepath.Join(t.TempDir(), "forms.db")
	}
	return postgrestest.DSN(t)
}

func eachPair(t *testing.T, do func(t *testing.T, from, to string)) {
	t.Helper()
	for _, from := range []string{"sqlite", "postgres"} {
		for _, to := range []string{"sqlite", "postgres"} {
			t.Run(from+" to "+to, func(t *testing.T) {
				t.Parallel()
				do(t, newDSN(t, from), newDSN(t, to))
			})
		}
	}
}

// raw returns a connection for what no store does.
func raw(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	driver := "pgx"
	if path, ok := strings.CutPrefix(dsn, "sqlite:"); ok {
		driver, dsn = "sqlite", sqlite.DSN(path)
	}
	db, err := sql.Open(driver, dsn)
	must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// A world is what the clients of a service know.
type world struct {
	ring              *keyring.Keyring
	blobs             *memblob.Store
	account, campaign formsvc.ID
	key               string
}

// with calls do with a service on the database.
func (w *world) with(t testing.TB, dsn string, do func(svc *formsvc.Service)) {
	t.Helper()
	s, err := start(t.Context(), dsn, w.ring)
	must(t, err)
	svc, err := formsvc.New(s, &formsvc.Options{Blobs: w.blobs})
	must(t, err)
	do(svc)
	must(t, s.Close())
}

// newWorld has rows in every table that a service writes.
func newWorld(t testing.TB, dsn string) *world {
	t.Helper()
	ctx, w := t.Context(), &world{blobs: memblob.New()}
	ring, err := keyring.Parse(strings.Repeat("ab", 32))
	must(t, err)
	w.ring = ring
	w.with(t, dsn, func(svc *formsvc.Service) {
		account, key, err := svc.Accounts.CreateWithKey(ctx, "a", formsvc.KeyInput{Name: "k", Permissions: formsvc.AllPermissions()})
		must(t, err)
		c, err := svc.Campaigns.Create(ctx, account.ID, formsvc.CampaignInput{Title: "c", Form: formsvc.Form{Enabled: true, OncePerEmail: true}})
		must(t, err)
		w.account, w.key, w.campaign = account.ID, key.Value, c.ID
		_, _, err = svc.Webhooks.Create(ctx, w.account, formsvc.WebhookInput{URL: "https://example.com/hook", Events: []formsvc.EventType{webhook.ResponseCreated}})
		must(t, err)
		_, _, err = svc.Sessions.NewLink(ctx, w.account)
		must(t, err)
		_, _, err = svc.Members.Invite(ctx, w.account, formsvc.MemberInput{Email: "ada@example.com", Name: nasty, Role: formsvc.Admin})
		must(t, err)
		must(t, svc.Refuse(ctx, w.account, &formsvc.Idempotency{Key: "once"}, []byte("\x00\xff"+nasty)))
	})
	w.respond(t, dsn, 12)
	return w
}

// respond creates responses with all that belongs to them, and completes every third.
func (w *world) respond(t testing.TB, dsn string, n int) {
	t.Helper()
	w.with(t, dsn, func(svc *formsvc.Service) {
		for i := range n {
			r, err := svc.Responses.Create(t.Context(), formsvc.CampaignKey{AccountID: w.account, ID: w.campaign}, formsvc.ResponseInput{
				User: formsvc.User{Email: fmt.Sprintf("a%d-%d@example.com", i, n)}, Answers: []formsvc.Answer{{Name: "q", Value: []string{nasty}}}, Held: map[int]formsvc.HoldReason{1: formsvc.HeldTrap}[i],
			})
			must(t, err)
			if i%3 != 0 {
				continue
			}
			key := formsvc.ResponseKey{AccountID: w.account, CampaignID: w.campaign, ID: r.ID}
			_, err = svc.Responses.Update(t.Context(), key, formsvc.ResponsePatch{Status: new("completed")})
			must(t, err)
			_, err = svc.Files.Upload(t.Context(), key, formsvc.FileInput{Name: "f", Content: strings.NewReader(nasty)})
			must(t, err)
			_, err = svc.Comments.Create(t.Context(), key, formsvc.CommentInput{Body: nasty, Author: "a"})
			must(t, err)
			_, err = svc.Signatures.Create(t.Context(), key, formsvc.SignatureInput{Signer: formsvc.User{Email: "ada@example.com"}})
			must(t, err)
		}
	})
}

// feed reads the feed after a position, in pages of one event, and returns the events and the position after each.
func (w *world) feed(t testing.TB, dsn string, after formsvc.Cursor) (ids []formsvc.ID, at []formsvc.Cursor) {
	t.Helper()
	w.with(t, dsn, func(svc *formsvc.Service) {
		for {
			page, err := svc.Events.List(t.Context(), formsvc.EventQuery{AccountID: w.account, After: after, Limit: 1, Early: true})
			must(t, err)
			if len(page.Items) == 0 {
				return
			}
			after = page.Next
			ids, at = append(ids, page.Items[0].ID), append(at, after)
		}
	})
	return ids, at
}

// Everything is moved, there and back: clients go on with their keys, and readers of the feed miss nothing. No server starts
// on the old database, and one that still runs can't write.
func TestCopy(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, from, to string) {
		w := newWorld(t, from)
		events, at := w.feed(t, from, "")
		running, err := start(t.Context(), from, w.ring)
		must(t, err)
		defer func() { _ = running.Close() }()
		report, err := transfer.Copy(t.Context(), from, to, &transfer.Options{Keyring: w.ring})
		must(t, err)
		for _, table := range report.Tables {
			empty := slices.Contains([]string{"formsvc_attempts", "formsvc_notices", "formsvc_failing", "formsvc_quota"}, table.Table)
			if table.Rows == 0 && !empty {
				t.Errorf("no row of %s was copied", table.Table)
			}
		}
		_, err = transfer.Verify(t.Context(), from, to, &transfer.Options{Keyring: w.ring})
		must(t, err)
		if _, err := start(t.Context(), from, w.ring); !errors.Is(err, formsvc.ErrMoved) || !strings.Contains(err.Error(), "its data is in") {
			t.Errorf("a server on the old database: %v", err)
		}
		svc, err := formsvc.New(running, nil)
		must(t, err)
		if _, err := svc.Accounts.Create(t.Context(), "b"); !errors.Is(err, formsvc.ErrMoved) {
			t.Errorf("a server that runs on the old database writes: %v", err)
		}
		if n, err := running.PruneEvents(t.Context(), time.Now().Add(time.Hour), 10); !errors.Is(err, formsvc.ErrMoved) {
			t.Errorf("a server that runs on the old database deletes %d events: %v", n, err)
		}
		list, err := svc.Responses.List(t.Context(), formsvc.ResponseQuery{AccountID: w.account, CampaignID: w.campaign})
		must(t, err)
		if err := svc.Responses.Delete(t.Context(), list.Items[0].Key(), nil); !errors.Is(err, formsvc.ErrMoved) {
			t.Errorf("a server that runs on the old database deletes: %v", err)
		}
		if _, err := svc.Campaigns.RotateForm(t.Context(), formsvc.CampaignKey{AccountID: w.account, ID: w.campaign}); !errors.Is(err, formsvc.ErrMoved) {
			t.Errorf("a server that runs on the old database updates: %v", err)
		}

		w.respond(t, to, 3)
		w.with(t, to, func(svc *formsvc.Service) {
			if _, err := svc.Keys.Authenticate(t.Context(), w.key); err != nil {
				t.Errorf("the key: %v", err)
			}
			err := svc.Refuse(t.Context(), w.account, &formsvc.Idempotency{Key: "once"}, []byte("again"))
			if earlier, ok := errors.AsType[*formsvc.RefusedError](err); !ok || !bytes.Equal(earlier.Refusal, []byte("\x00\xff"+nasty)) {
				t.Errorf("the refusal is %+v", err)
			}
			for status, want := range map[string]int{"completed": 5, "pending": 8, "spam": 2} {
				q := formsvc.ResponseQuery{AccountID: w.account, CampaignID: w.campaign}
				q.Filter.Status = []string{status}
				page, err := svc.Responses.List(t.Context(), q)
				if err != nil || int(page.Total) != want || len(page.Items) != want {
					t.Fatalf("%d of %d responses are %s, want %d (%v)", len(page.Items), page.Total, status, want, err)
				}
				if list, err := page.Items[0].Answers.List(); err != nil || list[0].Value[0] != nasty {
					t.Errorf("the answers are %v, %v", list, err)
				}
			}
			hooks, err := svc.Webhooks.List(t.Context(), w.account)
			if err != nil || len(hooks) != 1 || hooks[0].Secret == "" {
				t.Errorf("the webhook's secret doesn't open (%v)", err)
			}
		})
		all, _ := w.feed(t, to, "")
		if len(all) <= len(events) || !slices.Equal(all[:len(events)], events) {
			t.Fatalf("the feed has %d events, with others in front than the old %d", len(all), len(events))
		}
		for i := range at {
			// A reader may get events again that shared a commit, but misses none.
			got, _ := w.feed(t, to, at[i])
			if len(got) < len(all)-i-1 || !slices.Equal(got, all[len(all)-len(got):]) || strings.HasPrefix(from, "sqlite:") && len(got) != len(all)-i-1 {
				t.Errorf("after the position of event %d are %d events, want %d", i, len(got), len(all)-i-1)
			}
		}
	})
}

// These copies don't begin, and the source stays in use.
func TestCopyRefuses(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, from, to string) {
		w := newWorld(t, from)
		kind, _, _ := strings.Cut(to, ":")
		full := newDSN(t, kind)
		newWorld(t, full)
		refuse := func(what string, want error, from, to string, ring *keyring.Keyring) {
			t.Helper()
			if _, err := transfer.Copy(t.Context(), from, to, &transfer.Options{Keyring: ring}); err == nil || want != nil && !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", what, err, want)
			}
		}
		refuse("the same database", transfer.ErrNotEmpty, from, from, w.ring)
		refuse("no keys", keyring.ErrUnknownKey, from, to, nil)
		refuse("no schema", nil, newDSN(t, kind), to, w.ring)
		refuse("a database with data", transfer.ErrNotEmpty, from, full, w.ring)
		ctx, cancel := context.WithCancel(t.Context())
		if _, err := transfer.Copy(ctx, from, to, &transfer.Options{Keyring: w.ring, Progress: func(string, int64) { cancel() }}); err == nil {
			t.Error("a canceled copy succeeded")
		}
		w.respond(t, from, 1) // in use
		if _, err := transfer.Copy(t.Context(), from, to, &transfer.Options{Keyring: w.ring}); err != nil {
			t.Fatal(err)
		}
		refuse("moved already", formsvc.ErrMoved, from, newDSN(t, kind), w.ring)
	})
}

// Files are copied to another blob store. Damaged ones are named, and blobs in the way.
func TestCopyFiles(t *testing.T) {
	t.Parallel()
	from, to := newDSN(t, "sqlite"), newDSN(t, "sqlite")
	w := newWorld(t, from)
	elsewhere := memblob.New()
	opts := &transfer.Options{Keyring: w.ring, FromBlobs: w.blobs, ToBlobs: elsewhere}
	var key, other string
	for info, err := range w.blobs.List(t.Context(), "") {
		must(t, err)
		if info.Key != formsvc.MarkerKey {
			key, other = info.Key, key
		}
	}
	must(t, w.blobs.Delete(t.Context(), key))
	_, err := w.blobs.Put(t.Context(), key, strings.NewReader("other bytes"))
	must(t, err)
	if report, err := transfer.Copy(t.Context(), from, to, opts); !errors.Is(err, formsvc.ErrCorrupt) || len(report.Damaged) != 1 {
		t.Errorf("with a damaged file: %v, %v", report.Damaged, err)
	}
	_ = elsewhere.Delete(t.Context(), other)
	_, err = elsewhere.Put(t.Context(), other, strings.NewReader("a stray blob"))
	must(t, err)
	opts.SkipDamaged = true
	if _, err := transfer.Copy(t.Context(), from, to, opts); !errors.Is(err, fs.ErrExist) || !strings.Contains(err.Error(), other) {
		t.Errorf("with a stray blob: %v", err)
	}
	must(t, elsewhere.Delete(t.Context(), other))
	report, err := transfer.Copy(t.Context(), from, to, opts) // the one that failed left nothing there
	if err != nil || report.Files != 4 || len(report.Damaged) != 1 {
		t.Errorf("%+v, %v", report, err)
	}
	if report, err := transfer.Verify(t.Context(), from, to, opts); !errors.Is(err, transfer.ErrDiffers) || report.Files != 4 || len(report.Damaged) != 1 {
		t.Errorf("Verify: %+v, %v", report, err)
	}
}

// Verify finds a change of one value, or of one row.
func TestVerifyFindsDifferences(t *testing.T) {
	t.Parallel()
	from, to := newDSN(t, "sqlite"), newDSN(t, "postgres")
	w := newWorld(t, from)
	opts := &transfer.Options{Keyring: w.ring}
	_, err := transfer.Copy(t.Context(), from, to, opts)
	must(t, err)
	for _, change := range []string{"UPDATE formsvc_responses SET version = version + 1", "DELETE FROM formsvc_comments", "UPDATE formsvc_webhooks SET secret = secret || 'x'"} {
		_, err := raw(t, to).ExecContext(t.Context(), change)
		must(t, err)
		table := strings.Fields(strings.TrimPrefix(strings.TrimPrefix(change, "UPDATE "), "DELETE FROM "))[0]
		if _, err := transfer.Verify(t.Context(), from, to, opts); !errors.Is(err, transfer.ErrDiffers) || !strings.Contains(err.Error(), table) {
			t.Errorf("%s: %v", change, err)
		}
	}
}
