package server

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"os"
	"strconv"
	"sync"
)

// A copier is what anyone would write with net/http and io.Copy: uploads go into
// new files of a directory, downloads come from them. A careful one also hashes,
// and has a file on the disk before it answers.
type copier struct {
	dir     *os.Root
	careful bool

	mu   sync.Mutex
	sums []string // of the files, by number
}

// newCopier also returns what closes it.
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
		if err := c.send(w, r.PathValue("file_uuid")); err != nil {
			panic(http.ErrAbortHandler) // the generator notices
		}
	})
	return mux, root.Close, nil
}

// store copies a body to a new file.
func (c *copier) store(body io.Reader) (done Uploaded, err error) {
	c.mu.Lock()
	number := len(c.sums)
	c.sums = append(c.sums, "")
	c.mu.Unlock()
	done.UUID = strconv.Itoa(number)
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
	c.mu.Lock()
	c.sums[number] = done.SHA256
	c.mu.Unlock()
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

// send copies a file to the client.
func (c *copier) send(w http.ResponseWriter, id string) error {
	number, err := strconv.Atoi(id)
	if err != nil {
		return err
	}
	f, err := c.dir.Open(id)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.FormatInt(info.Size(), 10))
	if !c.careful {
		_, err = io.Copy(w, f) // the kernel copies
		return err
	}
	hashed := sha256.New()
	if _, err := io.Copy(w, io.TeeReader(f, hashed)); err != nil {
		return err
	}
	return c.check(number, hashed)
}

// check fails when a file has another hash than it was uploaded with.
func (c *copier) check(number int, hashed hash.Hash) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if sum := hex.EncodeToString(hashed.Sum(nil)); number >= len(c.sums) || sum != c.sums[number] {
		return fmt.Errorf("file %d has the hash %s", number, sum)
	}
	return nil
}

// Uploaded is what the servers answer with, and more.
type Uploaded struct {
	UUID   string `json:"uuid"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}
