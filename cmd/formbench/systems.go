package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// The peers.
const (
	pocketSystem     = "pocketbase"      // with its own settings: a commit doesn't wait for the disk
	pocketFullSystem = "pocketbase-full" // synchronous=FULL, like formsvc
	riverSystem      = "river"           // behind a handler that inserts a job per request
)

const (
	secret = "formbench-secret-0123456789abcdef" // of every webhook

	// The answers of every response, and the questions of every campaign.
	answers = `{"arrival":{"value":["2026-09-14"]},"attendance":{"value":["in_person"]},` +
		`"dietary":{"value":["vegetarian","no nuts"]},"guests":{"value":["2"]},"motivation":{"value":["I have followed the programme ` +
		`since its first year and would like to meet the people behind it. Our group of five works on accessible forms, and we could ` +
		`show what we learnt from ours."]}}`
	campaign = `{"title":"Registration for the autumn meeting","form":{"enabled":true},"modules":[` +
		`{"name":"arrival","label":"When will you arrive?","type":"date","required":true},` +
		`{"name":"attendance","label":"How will you take part?","type":"choice","required":true,"options":["in_person","remote","undecided"]},` +
		`{"name":"dietary","label":"What can't you eat?","type":"choice","multiple":true,"options":["vegetarian","vegan","no nuts","no gluten"]},` +
		`{"name":"guests","label":"How many guests will you bring?","type":"number"},` +
		`{"name":"motivation","label":"Why would you like to come?","type":"text","required":true,"maxLength":2000}]}`

	// The user of response 0. Each response has a number of its own, which leads from a delivery to its request.
	user = `{"email":"` + mark + `00000000@example.com","firstName":"Ada","lastName":"Lovelace"}`
)

// typed are the same answers and user, as a browser sends them with the form.
const typed = "email=" + mark + "00000000%40example.com&firstName=Ada&lastName=Lovelace&arrival=2026-09-14&attendance=in_person&dietary=vegetarian&" +
	"dietary=no+nuts&guests=2&motivation=I+have+followed+the+programme+since+its+first+year+and+would+like+to+meet+the+people+behind+it.+Our+group+of+" +
	"five+works+on+accessible+forms%2C+and+we+could+show+what+we+learnt+from+ours."

// A target is a started system with empty storage, and its dialect.
type target struct {
	*process
	auth    string // header lines of every request
	path    string // of the responses: POST creates, GET lists
	newest  string // query of a list of the newest 20
	body    string // of a create
	created int    // the status of a create
	id      string // members of the system's JSON
	total   string

	form     string                               // path of the page where visitors submit the same
	uploads  func(id any) string                  // path for a file of a response
	download func(uploaded map[string]any) string // path of an uploaded file
	client   http.Client                          // for single requests
	drop     func() error
}

// open starts the cell's system. If the URL isn't "", responses are delivered there.
func (c *cell) open(ctx context.Context, url string) (*target, error) {
	dir, err := os.MkdirTemp(c.dir, "cell-")
	if err != nil {
		return nil, err
	}
	t := &target{drop: func() error { return os.RemoveAll(dir) }}
	t.client.Transport = &http.Transport{DisableCompression: true, WriteBufferSize: 1 << 20, ReadBufferSize: 1 << 20}
	dsn := "sqlite:" + filepath.Join(dir, "bench.db")
	if c.store == postgresStore {
		dsn, err = t.newDatabase(ctx)
	}
	if err == nil {
		switch i := slices.IndexFunc(c.builds, func(b build) bool { return b.name == c.system }); {
		case i >= 0:
			err = t.openFormsvc(ctx, c, c.builds[i].path, dir, dsn, url)
		case c.system == riverSystem:
			err = t.openRiver(ctx, dir, c.peers, dsn, url)
		default:
			err = t.openPocketbase(ctx, c, dir)
		}
	}
	if err != nil {
		return nil, errors.Join(err, t.close())
	}
	return t, nil
}

// close ends the system and removes its data.
func (t *target) close() (err error) {
	t.client.CloseIdleConnections()
	if t.process != nil {
		err = t.stop()
	}
	return errors.Join(err, t.drop())
}

// newDatabase creates a database on the Postgres server.
func (t *target) newDatabase(ctx context.Context) (dsn string, err error) {
	server := os.Getenv(postgresEnv)
	at, err := url.Parse(server)
	if err != nil {
		return "", errors.New(postgresEnv + " is not a URL") // the error may contain a password
	}
	name := "formbench_" + strings.ToLower(rand.Text())
	if err := execute(ctx, server, "CREATE DATABASE "+name); err != nil {
		return "", err
	}
	files := t.drop
	t.drop = func() error {
		// Its sessions have ended. WITH (FORCE) would end autovacuum too, which the role may not.
		return errors.Join(files(), execute(context.WithoutCancel(ctx), server, "DROP DATABASE "+name))
	}
	at.Path = "/" + name
	return at.String(), nil
}

// execute runs a statement on a Postgres server.
func execute(ctx context.Context, dsn, statement string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return fmt.Errorf("connect to Postgres: %w", err)
	}
	_, err = conn.Exec(ctx, statement)
	return errors.Join(err, conn.Close(ctx))
}

func (t *target) openFormsvc(ctx context.Context, c *cell, path, dir, dsn, hook string) (err error) {
	t.process, err = start(ctx, dir, path, "serve", "--addr", "127.0.0.1:0", "--data", filepath.Join(dir, "data"), "--db", dsn, "--log-format", "json",
		"--quota", "0", "--forms-per-visitor", "0", "--max-upload", strconv.FormatInt(c.fileSize, 10), "--webhook-allow", "127.0.0.0/8", "--webhook-timeout", holdLimit.String())
	if err != nil {
		return err
	}
	key, err := t.await(ctx, `\b(formsvc_[0-9A-Za-z]{49})\b`) // the first start prints it
	if err != nil {
		return err
	}
	t.auth = "Authorization: Bearer " + key + "\r\n"
	made, err := t.ask(ctx, http.MethodPost, "/v1/campaigns", campaign, http.StatusCreated)
	if err != nil {
		return err
	}
	t.path = fmt.Sprintf("/v1/campaigns/%s/responses", made["uuid"])
	if form, ok := made["form"].(map[string]any); ok {
		t.form = fmt.Sprintf("/f/%s", form["token"])
	}
	t.newest, t.body, t.created, t.id, t.total = "?limit=20", `{"user":`+user+`,"responses":`+answers+`}`, http.StatusCreated, "uuid", "total"
	t.uploads = func(id any) string { return fmt.Sprintf("%s/%s/files", t.path, id) }
	t.download = func(uploaded map[string]any) string { return fmt.Sprintf("/v1/files/%s", uploaded["uuid"]) }
	if hook != "" {
		_, err = t.ask(ctx, http.MethodPost, "/v1/webhooks", fmt.Sprintf(`{"url":%q,"events":["response.created"],"secret":%q}`, hook, secret), http.StatusCreated)
	}
	return err
}

func (t *target) openPocketbase(ctx context.Context, c *cell, dir string) (err error) {
	t.process, err = start(ctx, dir, c.peers, "pocketbase", filepath.Join(dir, "data"), strconv.FormatBool(c.system == pocketFullSystem))
	t.path, t.created, t.id, t.total = "/api/collections/responses/records", http.StatusOK, "id", "totalItems"
	t.newest = "?perPage=20&sort=-@rowid&filter=" + url.QueryEscape(`campaign="autumn"`) // sorting by "created" is slower
	t.body = `{"reference":"2346-7FHKL","status":"pending","campaign":"autumn","user":` + user + `,"responses":` + answers + `}`
	t.uploads = func(any) string { return "/api/collections/files/records" }
	t.download = func(uploaded map[string]any) string {
		return fmt.Sprintf("/api/files/files/%s/%s", uploaded["id"], uploaded["file"])
	}
	return err
}

func (t *target) openRiver(ctx context.Context, dir, program, dsn, hook string) (err error) {
	t.process, err = start(ctx, dir, program, "river", dsn, hook, secret)
	t.path, t.created, t.id, t.total = "/jobs", http.StatusCreated, "id", "completed"
	// The payload of formsvc, which makes it by itself.
	t.body = `{"id":"0196fa3c-7d10-7c3e-9a4f-5b1d2e3f4a5b","event":"response.created","timestamp":"2026-11-21T08:30:00.123Z","data":{` +
		`"campaign":{"uuid":"0196fa3c-7d10-7c3e-9a4f-5b1d2e3f4a5c","title":"Registration for the autumn meeting"},"response":{` +
		`"uuid":"0196fa3c-7d10-7c3e-9a4f-5b1d2e3f4a5d","reference":"2346-7FHKL","status":"pending","user":` + user + `,"responses":` + answers +
		`,"createdAt":"2026-11-21T08:30:00.123Z","campaignUuid":"0196fa3c-7d10-7c3e-9a4f-5b1d2e3f4a5c",` +
		`"updatedAt":"2026-11-21T08:30:00.123Z","completedAt":null}}}`
	return err
}

// request returns the bytes of a request. A body of "" is none.
func (t *target) request(method, path, body string) []byte {
	b := fmt.Appendf(nil, "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: application/json\r\n%s", method, path, t.auth)
	if body != "" {
		b = fmt.Appendf(b, "Content-Type: application/json\r\nContent-Length: %d\r\n", len(body))
	}
	return append(append(b, "\r\n"...), body...)
}

// ask sends one request and returns the object of the response.
func (t *target) ask(ctx context.Context, method, path, body string, status int) (object map[string]any, err error) {
	err = t.send(ctx, method, path, "application/json", strings.NewReader(body), len(body), status,
		func(r io.Reader) error { return json.NewDecoder(r).Decode(&object) })
	return object, err
}

// send sends a request and reads the response, which must have the status.
func (t *target) send(ctx context.Context, method, path, kind string, body io.Reader, length, status int, read func(io.Reader) error) error {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+t.addr+path, body)
	if err != nil {
		return err
	}
	req.ContentLength = int64(length)
	req.Header.Set("Content-Type", kind)
	if name, text, ok := strings.Cut(strings.TrimSpace(t.auth), ": "); ok {
		req.Header.Set(name, text)
	}
	resp, err := t.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != status {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 300)) // for the message
		return fmt.Errorf("%s %s: answered %d, want %d: %s", method, path, resp.StatusCode, status, text)
	}
	return read(resp.Body)
}

// check fails unless the system lists exactly as many responses as it acknowledged. River may take a moment to complete
// the last jobs.
func (t *target) check(ctx context.Context, acknowledged int, patience time.Duration) error {
	var listed any
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		list, err := t.ask(ctx, http.MethodGet, t.path, "", http.StatusOK)
		if err != nil {
			return err
		}
		if listed = list[t.total]; listed == float64(acknowledged) {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("it acknowledged %d responses and lists %v", acknowledged, listed)
		}
	}
}
