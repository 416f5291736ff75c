package peers

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/database"
	"github.com/formsvc/toolkit/cmd/formbench/internal/fixture"
	"github.com/formsvc/toolkit/cmd/formbench/internal/loadgen"
	"github.com/formsvc/toolkit/cmd/formbench/internal/pocketbase"
	"github.com/formsvc/toolkit/cmd/formbench/internal/server"
	"github.com/formsvc/toolkit/formsvc"
)

// newPocket returns an empty PocketBase directory. It copies one that PocketBase has created, because creating takes a
// second.
func (p *runner) newPocket(ctx context.Context) (*pocketScene, error) {
	if p.template == "" {
		dir, err := os.MkdirTemp(p.Dir, "formbench-")
		if err != nil {
			return nil, err
		}
		p.template = dir
		srv, err := server.StartProgram(ctx, pocketbase.Config{Dir: dir}, p.Log, p.PeerProgram, pocketbase.Command)
		if err != nil {
			return nil, err
		}
		if err := srv.Stop(); err != nil {
			return nil, err
		}
	}
	dir, err := os.MkdirTemp(p.Dir, "formbench-")
	if err != nil {
		return nil, err
	}
	s := &pocketScene{dir: dir}
	if err := os.CopyFS(dir, os.DirFS(p.template)); err != nil {
		return nil, errors.Join(err, s.drop())
	}
	return s, nil
}

// use opens PocketBase's database while do runs.
func (s *pocketScene) use(do func(*sql.DB) error) error {
	db := &database.Database{DSN: "sqlite:" + filepath.Join(s.dir, pocketbase.Database)}
	return db.Use(do)
}

// holds fails unless each of the collections has exactly as many records as were acknowledged.
func (s *pocketScene) holds(ctx context.Context, answered int, collections ...string) error {
	return s.use(func(db *sql.DB) error {
		for _, name := range collections {
			n := 0
			if err := db.QueryRowContext(ctx, "SELECT count(*) FROM "+name).Scan(&n); err != nil {
				return fmt.Errorf("count %s of PocketBase: %w", name, err)
			}
			if n != answered {
				return fmt.Errorf("PocketBase acknowledged %d and has %d %s", answered, n, name)
			}
		}
		return nil
	})
}

// pocketID returns the identifier of stored response number i. Like PocketBase's own, they are in no order.
func pocketID(i int) string { return fmt.Sprintf("r%014x", fixture.Scatter(i)>>8) }

// fill stores n responses of one campaign, in the order in which PocketBase would have created them.
func (s *pocketScene) fill(ctx context.Context, n int) error {
	return s.use(func(db *sql.DB) (err error) {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }()                                       // after a commit it does nothing
		insert, err := tx.PrepareContext(ctx, "INSERT INTO "+pocketbase.Responses+ //nolint:gosec // a constant
			" (id, reference, status, user, responses, campaign, created, updated) VALUES (?, ?, ?, ?, ?, ?, ?, ?)")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, insert.Close()) }()
		for i := range n {
			r := pocketResponse(i)
			user, err := json.Marshal(r.User)
			if err != nil {
				return err
			}
			answers, err := json.Marshal(r.Responses)
			if err != nil {
				return err
			}
			at := fixture.StoredAt(i).Format("2006-01-02 15:04:05.000Z")
			if _, err := insert.ExecContext(ctx, pocketID(i), fixture.StoredReference(i), r.Status, string(user), string(answers),
				r.Campaign, at, at); err != nil {
				return fmt.Errorf("fill PocketBase: %w", err)
			}
		}
		return tx.Commit()
	})
}

// fill creates the databases that are only read and started, once for all rounds.
func (p *runner) fill(ctx context.Context) (err error) {
	if p.full != "" {
		return nil
	}
	begin := time.Now()
	if p.ours, err = database.New(ctx, bench.SQLiteStore, p.Dir); err != nil {
		return err
	}
	account, err := p.ours.NewAccount(ctx)
	if err != nil {
		return err
	}
	if p.world, err = p.ours.WithResponses(ctx, account, p.PeerFill); err != nil {
		return err
	}
	s, err := p.newPocket(ctx)
	if err != nil {
		return err
	}
	p.full = s.dir
	_, _ = fmt.Fprintf(p.Log, "stored %d responses in %.1f s\n", p.PeerFill, time.Since(begin).Seconds())
	begin = time.Now()
	if err := s.fill(ctx, p.PeerFill); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(p.Log, "stored %d responses in the file of PocketBase in %.1f s\n", p.PeerFill, time.Since(begin).Seconds())
	return nil
}

// freshLog makes PocketBase begin a new request log, because it slows down as the log grows.
func (p *runner) freshLog() error {
	const name = "auxiliary.db"
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.RemoveAll(filepath.Join(p.full, name+suffix)); err != nil {
			return err
		}
	}
	log, err := os.ReadFile(filepath.Join(p.template, name))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(p.full, name), log, 0o600) //nolint:gosec // a directory of this program
}

// A pocketRecord is a response in PocketBase's format.
type pocketRecord struct {
	Reference string     `json:"reference"`
	Status    string     `json:"status"`
	Campaign  formsvc.ID `json:"campaign"`
	fixture.InputJSON
}

func pocketResponse(i int) pocketRecord {
	return pocketRecord{
		Reference: fixture.StoredReference(i), Status: formsvc.StatusPending, Campaign: database.InventedWorld().Campaign.ID,
		InputJSON: fixture.NewInput(fixture.Submission(i)),
	}
}

// pocketRequest returns the bytes of one request. The token may be "".
func pocketRequest(method, path, token string, body []byte) []byte {
	b := fmt.Appendf(nil, "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: formbench\r\nAccept: application/json\r\n", method, path)
	if token != "" {
		b = fmt.Appendf(b, "Authorization: %s\r\n", token)
	}
	if body != nil {
		b = fmt.Appendf(b, "Content-Type: application/json\r\nContent-Length: %d\r\n", len(body))
	}
	return append(append(b, "\r\n"...), body...)
}

func recordsPath(collection string) string { return "/api/collections/" + collection + "/records" }

// createPocket creates responses, one row each.
func createPocket(_ context.Context, collection, token string) (loadgen.Workload, error) {
	load := loadgen.Workload{Status: http.StatusOK}
	for i := range fixture.Bodies {
		body, err := json.Marshal(pocketResponse(i))
		if err != nil {
			return load, err
		}
		load.Requests = append(load.Requests, pocketRequest(http.MethodPost, recordsPath(collection), token, body))
	}
	return load, nil
}

// batchPocket creates responses, each with its event and delivery.
func batchPocket(ctx context.Context, _, token string) (loadgen.Workload, error) {
	load := loadgen.Workload{Status: http.StatusOK}
	payload, err := database.SamplePayload(ctx)
	if err != nil {
		return load, err
	}
	for i := range fixture.Bodies {
		r := pocketResponse(i)
		type create struct {
			Method string `json:"method"`
			URL    string `json:"url"`
			Body   any    `json:"body"`
		}
		body, err := json.Marshal(map[string][]create{"requests": {
			{http.MethodPost, recordsPath(pocketbase.Responses), r},
			{http.MethodPost, recordsPath(pocketbase.Events), map[string]any{
				"type": "response.created", "response": r.Reference, "payload": json.RawMessage(payload),
			}},
			{http.MethodPost, recordsPath(pocketbase.Deliveries), map[string]any{
				"event": r.Reference, "webhook": r.Campaign, "state": "pending", "due": "2026-01-01 00:00:00.000Z",
			}},
		}})
		if err != nil {
			return load, err
		}
		load.Requests = append(load.Requests, pocketRequest(http.MethodPost, "/api/batch", token, body))
	}
	return load, nil
}

// getPocket reads single responses of n.
func getPocket(n int, token string) loadgen.Workload {
	load := loadgen.Workload{Status: http.StatusOK}
	for _, i := range fixture.ReadNumbers(n) {
		path := recordsPath(pocketbase.Responses) + "/" + pocketID(i)
		load.Requests = append(load.Requests, pocketRequest(http.MethodGet, path, token, nil))
	}
	return load
}

// listPocket reads a page of the campaign, newest first, with the total.
func listPocket(page int, sort string) loadgen.Workload {
	q := url.Values{
		"page": {fmt.Sprint(page)}, "perPage": {fmt.Sprint(bench.PageSize)}, "sort": {sort},
		"filter": {fmt.Sprintf("campaign=%q", database.InventedWorld().Campaign.ID)},
	}
	path := recordsPath(pocketbase.Responses) + "?" + q.Encode()
	return loadgen.Workload{Status: http.StatusOK, Requests: [][]byte{pocketRequest(http.MethodGet, path, "", nil)}}
}
