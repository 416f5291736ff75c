// Package server has the HTTP servers that are measured, each in a process of its own: the API, and handlers that do
// less, which show the limits.
package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/formsvc/toolkit/blobstore"
	"github.com/formsvc/toolkit/blobstore/fileblob"
	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/child"
	"github.com/formsvc/toolkit/cmd/formbench/internal/database"
	"github.com/formsvc/toolkit/cmd/formbench/internal/fixture"
	"github.com/formsvc/toolkit/cmd/formbench/internal/s3server"
	"github.com/formsvc/toolkit/cmd/formbench/internal/worker"
	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx"
)

// Command is the argument that makes this program a server. It reads a Config from standard input, writes a Ready to
// standard output and serves until standard input ends, so that it never outlives its parent.
const Command = "serve-cell"

// A Config configures a server.
type Config struct {
	System    string
	DSN       string
	Responses int    // in the campaign of the ceiling
	Profile   string // file for a CPU profile
	Files     string // directory of files; "" for none
	Endpoint  string // of the S3 server with the files; "" for none
	MaxFile   int64  // bytes

	Processors int           // that it may use; 0 for all
	SlowWrite  time.Duration // how long the database takes for each response, one after the other
}

// A Ready has the server's address. A peer adds a token.
type Ready struct{ Addr, Token string }

// gcPercent is the setting of "formsvc serve"; the ceiling uses it, too.
const gcPercent = 200

// Serve runs the server process.
func Serve(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer) (err error) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	in := json.NewDecoder(stdin)
	var cfg Config
	if err := in.Decode(&cfg); err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	if cfg.Processors > 0 {
		runtime.GOMAXPROCS(cfg.Processors)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, stdin)
		cancel()
	}()
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer func() { _ = listener.Close() }()
	logger := slog.New(slog.NewTextHandler(stderr, nil))
	addr := listener.Addr().String()
	handler, closeStore, err := cfg.handler(ctx, addr, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeStore()) }()
	stopProfile, err := worker.StartProfile(cfg.Profile)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stopProfile()) }()
	if err := json.NewEncoder(stdout).Encode(Ready{Addr: addr}); err != nil {
		return err
	}
	return serveHTTP(ctx, listener, handler, logger)
}

// handler returns the handler and a function that closes it.
func (c *Config) handler(ctx context.Context, addr string, logger *slog.Logger) (http.Handler, func() error, error) {
	switch c.System {
	case bench.CeilingSystem:
		return newCeiling(c.Responses), func() error { return nil }, nil
	case bench.CopySystem, bench.CarefulSystem:
		return newCopier(c.Files, c.System == bench.CarefulSystem)
	case bench.SingleSystem:
		return newSingle(ctx, c.DSN)
	}
	groupLimit, quota, maxRequests := 0, 0, 0 // the default limits of groups and requests, and no quota
	switch c.System {
	case bench.EachSystem:
		groupLimit = 1
	case bench.QuotaSystem, bench.KeyedSystem:
		quota = 1_000_000_000
	case bench.UnboundedSystem:
		maxRequests = math.MaxInt32
	}
	s, err := database.OpenStore(ctx, c.DSN, groupLimit)
	if err != nil {
		return nil, nil, err
	}
	if c.SlowWrite > 0 {
		s = &slowStore{Store: s, took: c.SlowWrite}
	}
	blobs, closeBlobs, err := c.blobs()
	if err != nil {
		return nil, nil, errors.Join(err, s.Close())
	}
	closeAll := func() error { return errors.Join(closeBlobs(), s.Close()) }
	svc, err := formsvc.New(s, &formsvc.Options{Blobs: blobs, MaxFile: c.MaxFile, Quota: &quota})
	if err != nil {
		return nil, nil, errors.Join(err, closeAll())
	}
	handler, err := httpx.New(svc, &httpx.Options{BaseURL: "http://" + addr, Logger: logger, Ready: s.Ping, MaxRequests: maxRequests})
	if err != nil {
		return nil, nil, errors.Join(err, closeAll())
	}
	return handler, closeAll, nil
}

// blobs returns the API's file storage, if it has one.
func (c *Config) blobs() (blobstore.Store, func() error, error) {
	switch {
	case c.Endpoint != "":
		s, err := s3server.OpenBucket(c.Endpoint)
		return s, func() error { return nil }, err
	case c.Files != "":
		s, err := fileblob.Open(c.Files, nil)
		if err != nil {
			return nil, nil, err
		}
		return s, s.Close, nil
	}
	return nil, func() error { return nil }, nil
}

func serveHTTP(ctx context.Context, l net.Listener, h http.Handler, logger *slog.Logger) error {
	server := &http.Server{ // with the limits of "formsvc serve"
		Handler: h, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 60 * time.Second, WriteTimeout: 90 * time.Second,
		IdleTimeout: 120 * time.Second, MaxHeaderBytes: 64 << 10, ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	patience, done := context.WithTimeout(context.WithoutCancel(ctx), child.ShutdownTimeout)
	defer done()
	err := server.Shutdown(patience)
	if serveErr := <-served; !errors.Is(serveErr, http.ErrServerClosed) {
		err = errors.Join(err, serveErr)
	}
	return err
}

// A Process is a server process, of this program or of a peer.
type Process struct {
	*child.Process
	Ready
}

// Start starts a server of this program and returns when it replies.
func Start(ctx context.Context, self string, cfg Config, log io.Writer) (*Process, error) {
	return StartProgram(ctx, cfg, log, self, Command)
}

// StartProgram starts a program with a configuration and returns when it replies.
func StartProgram(ctx context.Context, cfg any, log io.Writer, program, command string) (*Process, error) {
	s := &Process{}
	var err error
	if s.Process, err = child.Start(ctx, log, cfg, &s.Ready, program, command); err != nil {
		return nil, err
	}
	return s, nil
}

// The ceiling is a typical handler with net/http and encoding/json. It sends the same bytes as the API and does nothing
// else.

// newCeiling returns the handler, with a campaign of n responses.
func newCeiling(n int) http.Handler {
	campaign := database.InventedWorld().Campaign.ID
	template := fixture.NewResponseJSON(0, campaign)
	byID := make(map[string]*fixture.ResponseJSON)
	for _, i := range fixture.ReadNumbers(n) {
		r := fixture.NewResponseJSON(i, campaign)
		byID[string(r.UUID)] = r
	}
	page := &fixture.ListJSON{Total: n, Limit: bench.PageSize, NextCursor: strings.Repeat("A", 34)}
	for i := n - 1; i >= max(n-bench.PageSize, 0); i-- {
		page.Items = append(page.Items, fixture.NewResponseJSON(i, campaign))
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/campaigns/{uuid}/responses", func(w http.ResponseWriter, r *http.Request) {
		var in fixture.InputJSON
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		out := *template
		out.User, out.Responses = in.User, in.Responses
		SendJSON(w, http.StatusCreated, &out)
	})
	mux.HandleFunc("GET /v1/campaigns/{uuid}/responses", func(w http.ResponseWriter, _ *http.Request) {
		SendJSON(w, http.StatusOK, page)
	})
	mux.HandleFunc("GET /v1/campaigns/{uuid}/responses/{response_uuid}", func(w http.ResponseWriter, r *http.Request) {
		response, ok := byID[r.PathValue("response_uuid")]
		if !ok {
			http.NotFound(w, r)
			return
		}
		SendJSON(w, http.StatusOK, response)
	})
	return mux
}

// SendJSON responds with a value.
func SendJSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // the generator notices
}

// A slowStore creates responses one after the other, each in a time that doesn't depend on the processor.
type slowStore struct {
	database.Store

	took time.Duration
	mu   sync.Mutex
}

// CreateResponse implements formsvc.Store.
func (s *slowStore) CreateResponse(ctx context.Context, r formsvc.Response, version int64, c formsvc.Change) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	time.Sleep(s.took)
	return s.Store.CreateResponse(ctx, r, version, c)
}
