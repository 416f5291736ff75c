package server

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/formsvc/toolkit/cmd/formbench/internal/fixture"
	"github.com/formsvc/toolkit/formsvc"
)

// A copier is a typical handler with net/http and io.Copy: it writes uploads to new files of a directory, and sends
// downloads from them. A careful copier also hashes uploads, and makes a file durable before it responds.
type copier struct {
	dir     *os.Root
	careful bool
	stored  atomic.Int64
}

// newCopier also returns a function that closes the copier.
func newCopier(dir string, careful bool) (http.Handler, func() error, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, nil, err
	}
	c := &copier{dir: root, careful: careful}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/campaigns/{uuid}/responses/{response_uuid}/files", func(w http.ResponseWriter, r *http.Request) {
		done, err := c.store(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		SendJSON(w, http.StatusCreated, done)
	})
	mux.HandleFunc("GET /v1/files/{file_uuid}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/octet-stream")
		http.ServeFileFS(w, r, root.FS(), r.PathValue("file_uuid")) //nolint:gosec // below the root; the kernel copies
	})
	return mux, root.Close, nil
}

// store copies a body to a new file.
func (c *copier) store(body io.Reader) (done Uploaded, err error) {
	done.UUID = strconv.FormatInt(c.stored.Add(1), 10)
	f, err := c.dir.Create(done.UUID)
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if !c.careful {
		done.Size, err = io.Copy(f, body)
		return done, err
	}
	hashed := sha256.New()
	if done.Size, err = io.Copy(f, io.TeeReader(body, hashed)); err != nil {
		return done, err
	}
	done.SHA256 = hex.EncodeToString(hashed.Sum(nil))
	return done, errors.Join(f.Sync(), c.syncDir())
}

// syncDir makes the names of files durable.
func (c *copier) syncDir() error {
	d, err := c.dir.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Uploaded is the response of the servers, which may have more fields.
type Uploaded struct {
	UUID   string `json:"uuid"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// singleConns is the number of Postgres connections that suited the handler best.
const singleConns = 32

// SingleSchema is the schema that such a service would have: our columns of a response, an event and a delivery, and
// the indexes that reading them takes.
const SingleSchema = `
CREATE TABLE single_responses (
	id text PRIMARY KEY, campaign text NOT NULL, reference text NOT NULL UNIQUE, status text NOT NULL,
	respondent text NOT NULL, answers text NOT NULL, created_at timestamptz NOT NULL);
CREATE INDEX single_responses_page ON single_responses (campaign, created_at, id);
CREATE TABLE single_events (id text PRIMARY KEY, type text NOT NULL, payload text NOT NULL, created_at timestamptz NOT NULL);
CREATE TABLE single_deliveries (
	id text PRIMARY KEY, event_id text NOT NULL, webhook text NOT NULL, state smallint NOT NULL, due_at timestamptz NOT NULL);
CREATE INDEX single_deliveries_due ON single_deliveries (due_at) WHERE state = 0`

const (
	insertResponse = `INSERT INTO single_responses (id, campaign, reference, status, respondent, answers, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7)`
	insertThree = `WITH response AS (` + insertResponse + `), event AS (
		INSERT INTO single_events (id, type, payload, created_at) VALUES ($8, 'response.created', $9, $7))
		INSERT INTO single_deliveries (id, event_id, webhook, state, due_at) VALUES ($10, $8, $11, 0, $7)`
)

// A single is a typical handler on Postgres with our guarantees: it decodes, stores the response, its event and its
// delivery with one statement, and encodes. It checks nothing.
type single struct{ pool *pgxpool.Pool }

// newSingle also returns a function that closes the handler.
func newSingle(ctx context.Context, dsn string) (http.Handler, func() error, error) {
	cfg, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, nil, errors.New("the database is not valid") // the error may contain a password
	}
	cfg.MaxConns = singleConns
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, nil, err
	}
	s := &single{pool: pool}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/campaigns/{uuid}/responses", func(w http.ResponseWriter, r *http.Request) {
		var in fixture.InputJSON
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		out, err := s.create(r.Context(), formsvc.ID(r.PathValue("uuid")), in)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		SendJSON(w, http.StatusCreated, out)
	})
	return mux, func() error { pool.Close(); return nil }, nil
}

func (s *single) create(ctx context.Context, campaign formsvc.ID, in fixture.InputJSON) (*fixture.ResponseJSON, error) {
	at := time.Now().UTC()
	text := at.Format("2006-01-02T15:04:05.000Z")
	out := &fixture.ResponseJSON{
		UUID: formsvc.ID(rand.Text()), Reference: rand.Text()[:11], Status: formsvc.StatusPending, User: in.User,
		Responses: in.Responses, CreatedAt: text, CampaignUUID: campaign, UpdatedAt: text,
	}
	respondent, err := json.Marshal(in.User)
	if err != nil {
		return nil, err
	}
	answers, err := json.Marshal(in.Responses)
	if err != nil {
		return nil, err
	}
	event := rand.Text()
	payload, err := json.Marshal(map[string]any{"uuid": event, "type": "response.created", "createdAt": text, "data": out})
	if err != nil {
		return nil, err
	}
	_, err = s.pool.Exec(ctx, insertThree, string(out.UUID), string(campaign), out.Reference, out.Status, string(respondent), string(answers), at,
		event, string(payload), rand.Text(), "webhook")
	return out, err
}
