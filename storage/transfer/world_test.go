package transfer_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/internal/bunstore"
	"github.com/formsvc/toolkit/storage/transfer"
	"github.com/formsvc/toolkit/webhook"
)

// A world is what the clients of a service know.
type world struct {
	account, campaign formsvc.ID
	key               string
	positions         []formsvc.EventPosition // the start, and the position after each event
	events            []formsvc.ID
}

const nasty = "tab\tline\nback\\slash \\N 'quote' \"x\" €😀\r\v\f\b"

// newWorld creates an account that uses the service.
func newWorld(t testing.TB, d database) *world {
	t.Helper()
	ctx, w := t.Context(), new(world)
	w.with(t, d, func(svc *formsvc.Service) {
		account, key, err := svc.Accounts.CreateWithKey(ctx, "a", formsvc.KeyInput{Name: "k", Permissions: formsvc.AllPermissions()})
		must(t, err)
		c, err := svc.Campaigns.Create(ctx, account.ID, formsvc.CampaignInput{Title: "c"})
		must(t, err)
		w.account, w.key, w.campaign = account.ID, key, c.ID
		_, _, err = svc.Webhooks.Create(ctx, w.account, formsvc.WebhookInput{
			URL: "https://example.com/hook", Events: []formsvc.EventType{webhook.ResponseCreated},
		})
		must(t, err)
		_, _, err = svc.Sessions.NewLink(ctx, w.account)
		must(t, err)
	})
	w.respond(t, d, 12)
	return w
}

// with calls do with a service on the database, and closes it.
func (w *world) with(t testing.TB, d database, do func(svc *formsvc.Service)) {
	t.Helper()
	s := d.open(t, false)
	svc, err := formsvc.New(s, nil)
	must(t, err)
	do(svc)
	must(t, s.Close())
}

// respond creates responses, and completes every third of them.
func (w *world) respond(t testing.TB, d database, n int) {
	t.Helper()
	w.with(t, d, func(svc *formsvc.Service) {
		for i := range n {
			r, err := svc.Responses.Create(t.Context(), formsvc.CampaignKey{AccountID: w.account, ID: w.campaign}, formsvc.ResponseInput{
				User:    formsvc.User{Email: fmt.Sprintf("a%d@example.com", i)},
				Answers: []formsvc.Answer{{Name: "q", Value: []string{nasty}}},
			})
			must(t, err)
			if i%3 == 0 {
				key := formsvc.ResponseKey{AccountID: w.account, CampaignID: w.campaign, ID: r.ID}
				_, err = svc.Responses.Update(t.Context(), key, formsvc.ResponsePatch{Status: new("completed")})
				must(t, err)
			}
		}
	})
}

// follow reads the feed to its end one event at a time, and records each position.
func (w *world) follow(t testing.TB, d database) {
	t.Helper()
	w.positions, w.events = []formsvc.EventPosition{{}}, nil
	w.with(t, d, func(svc *formsvc.Service) {
		for {
			page := w.page(t, svc, w.positions[len(w.positions)-1], 1)
			if len(page.Items) == 0 {
				return
			}
			w.positions = append(w.positions, page.Next)
			w.events = append(w.events, page.Items[0].ID)
		}
	})
}

// page retries while transactions of other tests hold up the feed of Postgres.
func (w *world) page(t testing.TB, svc *formsvc.Service, after formsvc.EventPosition, limit int) formsvc.EventPage {
	t.Helper()
	for {
		q := formsvc.EventQuery{AccountID: w.account, After: after, Limit: limit}
		page, err := svc.Events.List(t.Context(), q)
		must(t, err)
		q.Early = true
		early, err := svc.Events.List(t.Context(), q)
		must(t, err)
		if len(page.Items) == len(early.Items) {
			return page
		}
	}
}

// checkFeed checks that a reader can continue from any position.
func (w *world) checkFeed(t testing.TB, d database, positions []formsvc.EventPosition, events []formsvc.ID) {
	t.Helper()
	w.with(t, d, func(svc *formsvc.Service) {
		for i, at := range positions {
			page := w.page(t, svc, at, formsvc.MaxLimit)
			if len(page.Items) != len(events)-i {
				t.Errorf("after position %d, %v, are %d events, want %d", i, at, len(page.Items), len(events)-i)
				continue
			}
			for n, e := range page.Items {
				if e.ID != events[i+n] {
					t.Errorf("event %d after position %d is %s, want %s", n, i, e.ID, events[i+n])
				}
			}
		}
	})
}

// scatter adds rows with arbitrary values to every table, including NULL where it is
// allowed.
func scatter(t testing.TB, d database, n int) {
	t.Helper()
	s := d.open(t, false)
	p := s.Portable()
	random := rand.New(rand.NewPCG(1, uint64(n)))
	nullable := map[string]bool{
		"formsvc_webhooks.campaign_id": true, "formsvc_events.about": true, "formsvc_events.traceparent": true,
		"formsvc_signatures.file_id": true, "formsvc_idempotency.response_id": true,
	}
	var accounts []any
	for _, table := range bunstore.Tables() {
		if table.Name == "formsvc_secret_keys" { // a copy needs a key for each row of it
			continue
		}
		rows := make([][]any, n)
		for i := range rows {
			bar := table.Name == "formsvc_files" && i%4 == 0
			for _, c := range table.Columns {
				v := value(random, table.Name, &c, i)
				switch {
				case c.Name == "account_id" && table.Name != "formsvc_files":
					v = accounts[i%len(accounts)]
				case bar && c.Name != "id", nullable[table.Name+"."+c.Name] && i%2 == 0:
					v = nil
				}
				rows[i] = append(rows[i], v)
			}
			if table.Name == "formsvc_accounts" {
				accounts = append(accounts, rows[i][0])
			}
		}
		must(t, p.Write(t.Context(), func(c bun.IConn) error { return p.Insert(t.Context(), c, &table, rows) }))
	}
	must(t, p.Write(t.Context(), func(c bun.IConn) error { return p.Finish(t.Context(), c, 0) }))
	must(t, s.Close())
}

func value(random *rand.Rand, table string, c *bunstore.Column, i int) any {
	key := table + "." + c.Name
	switch {
	case key == "formsvc_events.xact":
		return int64(1_000_000 + i)
	case key == "formsvc_events.seq":
		return int64(0)
	case c.Name == "secret", c.Name == "previous_secret", c.Name == "headers":
		return "p1." + nasty
	case key == "formsvc_responses.status":
		return []string{"pending", "completed", "halfway"}[i%3]
	}
	switch c.Kind {
	case bunstore.UUID:
		return string(formsvc.NewID(time.UnixMilli(random.Int64N(1e12))))
	case bunstore.Text:
		return fmt.Sprint(nasty, random.Int64())
	case bunstore.Bool:
		return random.Int64N(2)
	case bunstore.Bytes:
		sum := sha256.Sum256([]byte(fmt.Sprint(random.Int64())))
		if i == 1 && c.Name != "id" && c.Name != "hash" {
			return []byte{}
		}
		return sum[:]
	}
	if c.Name == "size" || c.Name == "kind" || c.Name == "state" || c.Name == "attempts" || c.Name == "number" || c.Name == "status" {
		return random.Int64N(1 << 30)
	}
	return random.Int64() - 1<<62
}

// compared fails unless both databases have the same rows and correct counters.
func compared(t testing.TB, from, to database) {
	t.Helper()
	a, b := from.open(t, true), to.open(t, true)
	_, err := transfer.Verify(t.Context(), a, b, nil)
	must(t, errors.Join(err, a.Close(), b.Close()))
}
