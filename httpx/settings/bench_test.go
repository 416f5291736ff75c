package settings_test

import (
	"database/sql"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/settings"
	"github.com/formsvc/toolkit/storage/postgres"
	"github.com/formsvc/toolkit/storage/sqlite"
)

var rows = flag.Int("settings.rows", 20_000, "how many responses, and as many deliveries, BenchmarkPages puts into the store")

// BenchmarkPages shows every page over a store with -settings.rows responses and deliveries: one in ten deliveries
// failed, and one in ten is pending.
func BenchmarkPages(b *testing.B) {
	for name, open := range map[string]func(b *testing.B) (backend, *sql.DB){"sqlite": openSQLite, "postgres": openPostgres} {
		b.Run(name, func(b *testing.B) {
			store, db := open(b)
			svc, err := formsvc.New(store, &formsvc.Options{Quota: new(100_000_000)})
			if err != nil {
				b.Fatal(err)
			}
			account, err := svc.Accounts.Create(b.Context(), fmt.Sprint("bench-", time.Now().UnixNano()))
			if err != nil {
				b.Fatal(err)
			}
			f := &filling{b: b, svc: svc, db: db, account: account.ID, postgres: name == "postgres"}
			f.fill(*rows)
			pages, err := settings.New(svc, "/", &settings.Options{
				Authenticate: func(*http.Request) (*settings.Visitor, error) {
					return &settings.Visitor{AccountID: account.ID}, nil
				},
				Logger: slog.New(slog.DiscardHandler),
			})
			if err != nil {
				b.Fatal(err)
			}
			for what, path := range f.paths() {
				b.Run(what, func(b *testing.B) {
					size := 0
					for b.Loop() {
						recorder := httptest.NewRecorder()
						pages.ServeHTTP(recorder, httptest.NewRequest("GET", path, nil))
						if size = recorder.Body.Len(); recorder.Code != 200 {
							b.Fatalf("%s: %d %s", path, recorder.Code, recorder.Body)
						}
					}
					b.ReportMetric(float64(size), "bytes/page")
				})
			}
		})
	}
}

func openSQLite(b *testing.B) (backend, *sql.DB) {
	path := filepath.Join(b.TempDir(), "forms.db")
	s, err := sqlite.Open(b.Context(), path, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(60000)")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = db.Close() })
	return s, db
}

func openPostgres(b *testing.B) (backend, *sql.DB) {
	dsn := os.Getenv("FORMSVC_TEST_POSTGRES")
	if dsn == "" {
		b.Skip("SKIPPED: FORMSVC_TEST_POSTGRES is not set; .ci/with-postgres starts a Postgres and sets it")
	}
	s, err := postgres.Open(b.Context(), dsn, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = db.Close() })
	return s, db
}

// A filling fills a store with records.
type filling struct {
	b        *testing.B
	svc      *formsvc.Service
	db       *sql.DB
	account  formsvc.ID
	postgres bool

	campaign formsvc.Campaign
	hook     formsvc.Webhook
	response formsvc.Response
}

func (f *filling) must(err error) {
	f.b.Helper()
	if err != nil {
		f.b.Fatal(err)
	}
}

// fill creates responses through the service, 64 at a time. Then it marks most deliveries as done in the database.
func (f *filling) fill(n int) {
	var err error
	f.campaign, err = f.svc.Campaigns.Create(f.b.Context(), f.account, formsvc.CampaignInput{Title: "Bicycle survey"})
	f.must(err)
	f.hook, _, err = f.svc.Webhooks.Create(f.b.Context(), f.account, formsvc.WebhookInput{
		URL: "https://example.com/hooks", Events: []formsvc.EventType{"response.created"},
	})
	f.must(err)
	for i := range 9 {
		_, _, err = f.svc.Keys.Create(f.b.Context(), f.account, formsvc.KeyInput{Name: fmt.Sprint(i), Permissions: formsvc.AllPermissions()})
		f.must(err)
	}
	var group sync.WaitGroup
	for range 64 {
		group.Go(func() {
			for range n / 64 {
				r, err := f.svc.Responses.Create(f.b.Context(), f.campaign.Key(), formsvc.ResponseInput{
					User: formsvc.User{Email: "ada@example.com", FirstName: "Ada", LastName: "Lovelace"}, Answers: []formsvc.Answer{{Name: "color", Value: []string{"red"}}},
				})
				if err != nil {
					f.b.Error(err)
					return
				}
				if f.response.ID == "" {
					f.once(r)
				}
			}
		})
	}
	group.Wait()
	hash, empty, yes := "abs(random()) % 10", "x''", "1"
	if f.postgres {
		hash, empty, yes = "abs(hashtext(id::text)) % 10", "''::bytea", "true"
	}
	for _, statement := range []string{
		"CREATE TEMPORARY TABLE dice AS SELECT id, " + hash + " AS n FROM formsvc_deliveries WHERE webhook_id = '" + string(f.hook.ID) + "'",
		"CREATE INDEX dice_id ON dice (id)",
		"INSERT INTO formsvc_attempts (delivery_id, number, started_at, duration, status, error, answer) " +
			"SELECT d.id, 1, d.created_at, 1000 * (1 + dice.n * 7), CASE WHEN dice.n = 1 THEN 500 ELSE 200 END, CASE WHEN dice.n = 1 THEN 'status' ELSE '' END, " + empty +
			" FROM formsvc_deliveries AS d JOIN dice ON dice.id = d.id WHERE dice.n > 0",
		"INSERT INTO formsvc_notices (delivery_id, account_id, webhook_id, event_id, event_type, attempts, status, error, at, due_at, noted) " +
			"SELECT d.id, '" + string(f.account) + "', d.webhook_id, d.event_id, d.event_type, 1, 500, 'status', d.created_at, 0, " + yes +
			" FROM formsvc_deliveries AS d JOIN dice ON dice.id = d.id WHERE dice.n = 1",
		"UPDATE formsvc_deliveries SET state = CASE WHEN (SELECT n FROM dice WHERE dice.id = formsvc_deliveries.id) = 1 THEN 2 ELSE 1 END, attempts = 1, " +
			"updated_at = created_at WHERE id IN (SELECT id FROM dice WHERE n > 0)",
		"ANALYZE",
	} {
		f.exec(statement)
	}
}

var fillOnce sync.Mutex

func (f *filling) once(r formsvc.Response) {
	fillOnce.Lock()
	defer fillOnce.Unlock()
	f.response = r
}

func (f *filling) exec(statement string) {
	f.b.Helper()
	f.db.SetMaxOpenConns(1) // the temporary table belongs to one connection
	if _, err := f.db.ExecContext(f.b.Context(), statement); err != nil {
		f.b.Fatalf("%v: %s", err, statement)
	}
}

// paths returns the addresses of the pages.
func (f *filling) paths() map[string]string {
	list, err := f.svc.Deliveries.List(f.b.Context(), formsvc.DeliveryQuery{
		AccountID: f.account, WebhookID: f.hook.ID, Page: formsvc.PageQuery{Limit: 1}, NoTotal: true,
	})
	f.must(err)
	hook, campaign := "/webhooks/"+string(f.hook.ID), "/campaigns/"+string(f.campaign.ID)
	return map[string]string{
		"overview": "/", "keys": "/keys", "webhooks": "/webhooks", "webhook": hook, "webhook, failed": hook + "?state=failed",
		"webhook, waiting": hook + "?state=pending", "webhook, edit": hook + "/edit", "delivery": "/deliveries/" + string(list.Items[0].ID),
		"failures": "/failures", "campaigns": "/campaigns", "campaign": campaign, "campaign, by status": campaign + "?status=done",
		"campaign, by email": campaign + "?email=nobody@example.com", "campaign, by reference": campaign + "?reference=" + f.response.Reference,
		"response": campaign + "/responses/" + string(f.response.ID),
	}
}
