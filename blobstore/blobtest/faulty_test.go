package blobtest_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"os/exec"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/formsvc/toolkit/blobstore"
	"github.com/formsvc/toolkit/blobstore/blobtest"
	"github.com/formsvc/toolkit/blobstore/memblob"
)

// faultEnv names the fault of the stores in TestFaulty.
const faultEnv = "BLOBTEST_FAULT"

// TestFaulty tests a store that has the fault set by [TestFaults].
func TestFaulty(t *testing.T) {
	t.Parallel()
	fault := os.Getenv(faultEnv)
	blobtest.Run(t, func(testing.TB) blobstore.Store { return newStore(fault) }, blobtest.Options{
		Reopen: func(_ testing.TB, s blobstore.Store) blobstore.Store {
			if fault == "forgets" {
				return newStore(fault)
			}
			return s
		},
		CutOff: func(_ testing.TB, s blobstore.Store) { s.(*store).cutOff() },
	})
}

// For every fault the suite fails in the intended test.
func TestFaults(t *testing.T) {
	t.Parallel()
	if os.Getenv(faultEnv) != "" {
		t.Skip("this is the helper")
	}
	for fault, name := range map[string]string{
		"drops the end":                "sizes and readers",
		"rewinds readers":              "sizes and readers",
		"counts wrong":                 "sizes and readers",
		"reads on":                     "sizes and readers",
		"changes what it reads":        "sizes and readers",
		"opens without time":           "good keys",
		"reads after Close":            "two readers",
		"one byte more":                "ranges",
		"fails beyond the end":         "ranges",
		"takes negative offsets":       "ranges",
		"takes any key":                "bad keys",
		"knows base names":             "good keys",
		"overwrites":                   "taken keys",
		"two may win":                  "concurrent Puts of a key",
		"deletes with another error":   "missing keys",
		"deletes what is below":        "missing keys",
		"ends when deleted":            "Delete during reading",
		"keeps halves":                 "readers that fail",
		"takes wrapped ends":           "readers that fail",
		"hides the reader's error":     "readers that fail",
		"blocks keys of failures":      "readers that fail",
		"shows early":                  "invisible during Put",
		"ignores contexts":             "context ends during Put",
		"ends when cancelled":          "context ends during reading",
		"ends lists when cancelled":    "part of a list",
		"one page":                     "many keys",
		"any prefix":                   "prefixes",
		"prefixes are directories":     "prefixes",
		"lists twice":                  "part of a list",
		"forgets":                      "a second store",
		"cleans nothing":               "Clean",
		"cleans what is new":           "Clean",
		"cleans blobs":                 "Clean",
		"leaves its failures to Clean": "Clean",
		"survives Clean":               "Clean during Put",
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			name := strings.ReplaceAll(name, " ", "_")
			run := "-test.run=^TestFaulty$/^" + name + "$"
			cmd := exec.CommandContext(t.Context(), os.Args[0], run)
			cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", faultEnv+"="+fault)
			out, err := cmd.CombinedOutput()
			if !strings.Contains(string(out), "--- FAIL: TestFaulty/"+name+" ") {
				t.Errorf("the suite does not fail: %v\n%s", err, out)
			}
		})
	}
}

// A store is a store in memory with a fault and remains to clean.
type store struct {
	*memblob.Store
	fault string

	mu   sync.Mutex
	left map[*time.Time]bool // running or interrupted Puts, by their start
}

func newStore(fault string) *store {
	return &store{Store: memblob.New(), fault: fault, left: make(map[*time.Time]bool)}
}

func (s *store) begin() *time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := time.Now()
	s.left[&at] = true
	return &at
}

// finish reports whether the remains still exist.
func (s *store) finish(at *time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	ok := s.left[at]
	delete(s.left, at)
	return ok
}

func (s *store) cutOff() { s.begin() }

func (s *store) Put(ctx context.Context, key string, r io.Reader) (int64, error) {
	if err := blobstore.CheckKey(key); err != nil && s.fault != "takes any key" {
		return 0, err
	} else if err != nil {
		key = "any/key"
	}
	at := s.begin()
	cut := false
	n, err := s.put(ctx, key, func() io.Reader { return s.faultyReader(r) }, func() { cut = !s.finish(at) })
	if err == nil && cut && s.fault != "survives Clean" {
		_ = s.Store.Delete(context.WithoutCancel(ctx), key)
		return 0, blobstore.ErrUnavailable
	}
	if s.fault == "leaves its failures to Clean" && err != nil {
		s.begin()
	}
	if s.fault == "counts wrong" {
		n++
	}
	return n, err
}

func (s *store) put(ctx context.Context, key string, reader func() io.Reader, done func()) (int64, error) {
	r := reader()
	defer done()
	free := context.WithoutCancel(ctx)
	switch s.fault {
	case "overwrites":
		content, err := io.ReadAll(r)
		if err != nil || ctx.Err() != nil {
			return 0, errors.Join(err, ctx.Err())
		}
		_ = s.Store.Delete(free, key)
		return s.Store.Put(free, key, bytes.NewReader(content))
	case "two may win":
		_, taken := s.Store.Stat(free, key)
		content, err := io.ReadAll(r)
		if err != nil {
			return 0, err
		}
		if taken != nil {
			_ = s.Store.Delete(free, key)
		}
		return s.Store.Put(ctx, key, bytes.NewReader(content))
	case "keeps halves":
		content, err := io.ReadAll(r)
		n, failed := s.Store.Put(free, key, bytes.NewReader(content))
		return n, errors.Join(err, failed)
	case "hides the reader's error":
		n, err := s.Store.Put(ctx, key, r)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			err = blobstore.ErrUnavailable
		}
		return n, err
	case "blocks keys of failures":
		n, err := s.Store.Put(ctx, key, r)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			_, _ = s.Store.Put(free, key, strings.NewReader(""))
		}
		return n, err
	case "shows early":
		_, err := s.Store.Put(ctx, key, strings.NewReader(""))
		if err != nil {
			return 0, err
		}
		content, err := io.ReadAll(r)
		_ = s.Store.Delete(free, key)
		if err != nil {
			return 0, err
		}
		return s.Store.Put(ctx, key, bytes.NewReader(content))
	case "ignores contexts":
		return s.Store.Put(free, key, r)
	case "reads on":
		n, err := s.Store.Put(ctx, key, r)
		go func() { _, _ = r.Read(make([]byte, 1)) }()
		return n, err
	}
	return s.Store.Put(ctx, key, r)
}

// faultyReader returns the reader to use instead of r.
func (s *store) faultyReader(r io.Reader) io.Reader {
	switch s.fault {
	case "drops the end":
		return io.LimitReader(r, 5<<20)
	case "rewinds readers":
		if seeker, ok := r.(io.Seeker); ok {
			_, _ = seeker.Seek(0, io.SeekStart)
		}
	case "takes wrapped ends":
		return readerFunc(func(p []byte) (int, error) {
			n, err := r.Read(p)
			if errors.Is(err, io.EOF) {
				err = io.EOF
			}
			return n, err
		})
	}
	return r
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func (s *store) Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, blobstore.Info, error) {
	switch s.fault {
	case "one byte more":
		if length > 0 && length < 1<<62 {
			length++
		}
	case "takes negative offsets":
		offset = max(offset, 0)
	}
	r, info, err := s.Store.Open(ctx, key, offset, length)
	if err != nil {
		return nil, info, err
	}
	read := r.Read
	switch s.fault {
	case "fails beyond the end":
		if offset > info.Size {
			return nil, info, fs.ErrInvalid
		}
	case "opens without time":
		info.ModTime = time.Time{}
	case "reads after Close":
		return io.NopCloser(r), info, nil
	case "ends when deleted":
		read = func(p []byte) (int, error) {
			if _, err := s.Store.Stat(ctx, key); err != nil {
				return 0, io.EOF
			}
			return r.Read(p)
		}
	case "ends when cancelled":
		read = func(p []byte) (int, error) {
			if ctx.Err() != nil {
				return 0, io.EOF
			}
			return r.Read(p)
		}
	case "changes what it reads":
		read = func(p []byte) (int, error) {
			n, err := r.Read(p)
			clear(p[:min(n, 1)])
			return n, err
		}
	}
	return struct {
		io.Reader
		io.Closer
	}{readerFunc(read), r}, info, nil
}

func (s *store) Stat(ctx context.Context, key string) (blobstore.Info, error) {
	if s.fault == "knows base names" {
		for info, err := range s.Store.List(ctx, "") {
			if err == nil && path.Base(info.Key) == key {
				return info, nil
			}
		}
	}
	return s.Store.Stat(ctx, key)
}

func (s *store) List(ctx context.Context, prefix string) iter.Seq2[blobstore.Info, error] {
	asked := prefix
	if s.fault == "any prefix" {
		asked = ""
	}
	if s.fault == "prefixes are directories" {
		asked = strings.TrimSuffix(prefix, "/") + "/"
		if prefix == "" {
			asked = ""
		}
	}
	return func(yield func(blobstore.Info, error) bool) {
		n := 0
		for info, err := range s.Store.List(ctx, asked) {
			n++
			if s.fault == "one page" && n > 1000 || s.fault == "ends lists when cancelled" && err != nil {
				return
			}
			if s.fault == "lists twice" && n == 5 && !yield(info, err) || !yield(info, err) {
				return
			}
		}
	}
}

func (s *store) Delete(ctx context.Context, key string) error {
	err := s.Store.Delete(ctx, key)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	switch s.fault {
	case "deletes with another error":
		return blobstore.ErrUnavailable
	case "deletes what is below":
		for info, err := range s.Store.List(ctx, key+"/") {
			if err == nil {
				_ = s.Store.Delete(ctx, info.Key)
			}
		}
	}
	return err
}

// Clean implements blobstore.Cleaner.
func (s *store) Clean(ctx context.Context, before time.Time) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	switch s.fault {
	case "cleans nothing":
		return 0, nil
	case "cleans what is new":
		before = time.Now().Add(time.Hour)
	case "cleans blobs":
		for info, err := range s.Store.List(ctx, "") {
			if err == nil && info.ModTime.Before(before) {
				_ = s.Store.Delete(ctx, info.Key)
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for at := range s.left {
		if at.Before(before) {
			delete(s.left, at)
			n++
		}
	}
	return n, nil
}
