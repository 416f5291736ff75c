package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/postgres/postgrestest"
)

const iban = "DE89370400440532013000"

type browser struct {
	t *testing.T
	*http.Client

	url string
}

func (b *browser) get(path string) (int, string) {
	b.t.Helper()
	reply, err := b.Get(b.url + path)
	return read(b.t, reply, err)
}

func read(t *testing.T, reply *http.Response, err error) (int, string) {
	t.Helper()
	noError(t, err)
	text, err := io.ReadAll(reply.Body)
	noError(t, errors.Join(err, reply.Body.Close()))
	return reply.StatusCode, string(text)
}

func signIn(t *testing.T, address, name string) *browser {
	t.Helper()
	jar, _ := cookiejar.New(nil)
	b := &browser{t, &http.Client{Jar: jar}, address}
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, address+"/login", nil)
	r.SetBasicAuth(name, "secret")
	reply, err := b.Do(r)
	if code, text := read(t, reply, err); code != 200 {
		t.Fatal(code, text)
	}
	return b
}

func start(t *testing.T) (*product, string, formsvc.ID) {
	t.Helper()
	pool := must(pgxpool.New(t.Context(), postgrestest.DSN(t)))
	t.Cleanup(pool.Close)
	p := must(newProduct(t.Context(), pool))
	server := httptest.NewServer(p.web)
	t.Cleanup(server.Close)
	account := must(p.forms.Accounts.Ensure(t.Context(), "rowing"))
	return p, server.URL, account
}

// The rule holds in transactions and on pages, and a plan that is used up is told in the product's words.
func TestRulesAndPlans(t *testing.T) {
	p, address, account := start(t)
	ctx := t.Context()
	must(p.pool.Exec(ctx, "INSERT INTO plans VALUES ($1, 'free')", string(account)))
	c := must(p.newForm(ctx, account))
	if _, err := p.newForm(ctx, account); !errors.Is(err, formsvc.ErrLimit) {
		t.Errorf("a free plan has two forms: %v", err)
	}
	ada := formsvc.User{Email: "ada@example.com"}
	heavy := membership{Boat: "eight", Weight: 95, IBAN: iban}
	if err := p.join(ctx, c.Key(), ada, heavy); err == nil || !strings.Contains(err.Error(), "/responses/weight/value/0: must be at most 90") {
		t.Errorf("an eight is too heavy: %v", err)
	}
	post := func(fields url.Values) (int, string) {
		r, _ := http.NewRequestWithContext(ctx, http.MethodPost, address+"/f/"+c.FormToken, strings.NewReader(fields.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Accept-Language", "de")
		reply, err := (&http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}).Do(r)
		return read(t, reply, err)
	}
	fields := url.Values{"email": {"bob@example.com"}, "boat": {"eight"}, "weight": {"95"}, "iban": {"DE12"}}
	if code, text := post(fields); code != 422 || !strings.Contains(text, "Geben Sie eine IBAN ein") || !strings.Contains(text, "must be at most 90 in an eight") ||
		!strings.Contains(text, "Clubhouse") {
		t.Error(code, text)
	}
	fields.Set("weight", "80")
	fields.Set("iban", iban)
	if code, text := post(fields); code != 303 {
		t.Error(code, text)
	}
	for range 2 {
		noError(t, p.join(ctx, c.Key(), ada, membership{Boat: "single", Weight: 70, IBAN: iban}))
	}
	if err := p.join(ctx, c.Key(), ada, membership{Boat: "single", Weight: 70, IBAN: iban}); !errors.Is(err, formsvc.ErrLimit) {
		t.Errorf("the plan allows a fourth: %v", err)
	}
	if code, text := post(fields); code != 409 || !strings.Contains(text, "plan is used up") || !strings.Contains(text, iban) {
		t.Error(code, text)
	}
	var boats int
	if err := p.pool.QueryRow(ctx, "SELECT count(*) FROM boats").Scan(&boats); err != nil || boats != 2 {
		t.Error(boats, err)
	}
	if _, text := signIn(t, address, "cleo").get("/dashboard"); text != `{"eight":1,"single":2}`+"\n" {
		t.Error(text)
	}
}

// What a role may not do is neither shown nor done.
func TestRoles(t *testing.T) {
	p, address, account := start(t)
	c := must(p.newForm(t.Context(), account))
	noError(t, p.join(t.Context(), c.Key(), formsvc.User{Email: "ada@example.com"}, membership{Boat: "single", Weight: 70, IBAN: iban}))
	for name, edits := range map[string]bool{"ada": true, "bob": false, "cleo": false} {
		b := signIn(t, address, name)
		code, text := b.get("/app/forms/console/campaigns/" + string(c.ID))
		if code != 200 || strings.Contains(text, "/edit") != edits || !strings.Contains(text, "Clubhouse") {
			t.Errorf("%s: %d, edits: %v\n%s", name, code, !edits, text)
		}
		if code, _ := b.get("/app/forms/console/campaigns/" + string(c.ID) + "/edit"); (code == 200) != edits {
			t.Errorf("%s edits: %d", name, code)
		}
		if code, text := b.get("/app/forms/console/campaigns/" + string(c.ID) + "/share"); code == 200 && !strings.Contains(text, "/f/"+c.FormToken) {
			t.Errorf("%s: the form's address is wrong:\n%s", name, text)
		}
	}
	if code, _ := signIn(t, address, "dan").get("/app/forms/v1/campaigns/" + string(c.ID)); code != 404 {
		t.Errorf("another club's form: %d", code)
	}
}

// An import can run again, and mails go on where they ended.
func TestImportAndMail(t *testing.T) {
	p, _, account := start(t)
	c := must(p.newForm(t.Context(), account))
	old := []string{"m-1,2019-05-01,ada@example.com,60," + iban, "m-2,2020-01-31,bob@example.com,20," + iban, "m-3,2021-01-31,cleo@example.com,70," + iban}
	for _, want := range []int{2, 0} {
		report, err := p.importOld(t.Context(), c.Key(), slices.Values(old))
		if err != nil || report.Imported != want || len(report.Faults) != 1 || !strings.Contains(report.Faults[0].Err.Error(), "weight") {
			t.Errorf("%+v, %v", report, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var mails []string
	p.mail = func(_ context.Context, to, _ string) error {
		if mails = append(mails, to); len(mails) == 1 {
			return errors.New("the mail server is away")
		}
		if len(mails) == 3 { // the first again, alone; then the second
			cancel()
		}
		return nil
	}
	for range 2 {
		noError(t, p.join(ctx, c.Key(), formsvc.User{Email: "ada@example.com"}, membership{Boat: "single", Weight: 70, IBAN: iban}))
	}
	if err := p.mailAbout(ctx); err != nil {
		t.Error(err)
	}
	if !slices.Equal(mails, []string{"rowing@clubs.example", "rowing@clubs.example", "rowing@clubs.example"}) {
		t.Error(mails)
	}
}

// must returns the result of a call that can't fail here.
func must[T any](result T, err error) T {
	if err != nil {
		panic(err)
	}
	return result
}

// noError ends the test unless err is nil.
func noError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
