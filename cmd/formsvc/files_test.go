//go:build long

package main_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/blobstore/s3blob/s3test"
	"github.com/formsvc/toolkit/formsvc"
)

// A place is a blob store for files.
type place struct {
	flags  []string
	env    []string
	dir    string // which has each blob as a plain file
	server *s3test.Server
}

// places returns all kinds of blob stores. Tests of files run on each.
func places() map[string]func(t testing.TB) *place {
	return map[string]func(t testing.TB) *place{
		"disk": func(t testing.TB) *place {
			dir := filepath.Join(t.TempDir(), "files")
			return &place{flags: []string{"--blobs", "file:" + dir}, dir: dir}
		},
		"s3": func(t testing.TB) *place {
			s := s3test.Start(t)
			return &place{
				flags: []string{"--blobs", s.URL()}, server: s, dir: s.Dir,
				env: []string{"AWS_ACCESS_KEY_ID=" + s.AccessKey, "AWS_SECRET_ACCESS_KEY=" + s.SecretKey},
			}
		},
	}
}

// A filing is a server with a response that gets files.
type filing struct {
	*place
	*server
	*client

	dsn      string
	response string // its path
}

// serve starts the server. The first time it creates the response.
func (w *filing) serve(t testing.TB, flags ...string) {
	t.Helper()
	key := ""
	if w.client != nil {
		key = w.key
	}
	w.server = execute(t, w.dsn, w.place.env, slices.Concat(allowLoopback, unlimited, w.place.flags, flags)...).started(t)
	if key == "" {
		key = w.firstKey(t)
	}
	w.client = newClient(t, w.server.url, key)
	if w.response == "" {
		campaign := w.campaign(t, "Files")
		w.response = responsePath(campaign, w.submit(t, campaign, "files").UUID)
	}
}

// A fileRecord is a file in the API's form.
type fileRecord struct {
	UUID, Name, ContentType, SHA256, Module string
	Size                                    int64
}

// send uploads content as a raw body with Expect: 100-continue, so that the response to a rejected upload can always be
// read.
func (w *filing) send(ctx context.Context, name string, content io.Reader, size int64) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.client.url+w.response+"/files", content)
	if err != nil {
		return answer{}, err
	}
	req.ContentLength = size
	req.Header.Set("Expect", "100-continue")
	req.Header.Set("Authorization", "Bearer "+w.key)
	req.Header.Set("Content-Type", "application/x-test")
	req.Header.Set("Content-Disposition", `attachment; filename="`+name+`"`)
	return w.answered(req)
}

// upload uploads content, which must succeed.
func (w *filing) upload(t testing.TB, name string, content []byte) fileRecord {
	t.Helper()
	a, err := w.send(t.Context(), name, bytes.NewReader(content), int64(len(content)))
	return w.taken(t, a, err, content)
}

func (w *filing) taken(t testing.TB, a answer, err error, content []byte) fileRecord {
	t.Helper()
	var f fileRecord
	if err != nil || a.status != http.StatusCreated || json.Unmarshal(a.body, &f) != nil {
		t.Fatalf("upload: status %d, %v\n%s", a.status, err, a.body)
	}
	if sum := sha256.Sum256(content); f.SHA256 != hex.EncodeToString(sum[:]) || f.Size != int64(len(content)) {
		t.Fatalf("uploaded %d bytes with the hash %x, got %s", len(content), sum, a.body)
	}
	return f
}

// download reads a file as far as possible.
func (w *filing) download(t testing.TB, uuid string) (answer, error) {
	t.Helper()
	return w.do(t.Context(), http.MethodGet, "/v1/files/"+uuid, nil)
}

// has checks that a download returns the uploaded content.
func (w *filing) has(t testing.TB, uuid string, content []byte) {
	t.Helper()
	a, err := w.download(t, uuid)
	if err != nil || a.status != http.StatusOK || !bytes.Equal(a.body, content) {
		t.Errorf("download: status %d, %d bytes of %d, %v", a.status, len(a.body), len(content), err)
	}
}

// listed returns the files of the response.
func (w *filing) listed(t testing.TB) []fileRecord {
	t.Helper()
	var page struct{ Items []fileRecord }
	w.want(t, http.StatusOK, http.MethodGet, w.response+"/files", nil, &page)
	return page.Items
}

// stored returns the paths of all files in the blob store except the marker: blobs, and leftovers of interrupted uploads,
// whose names contain a dot.
func (p *place) stored(t testing.TB) (blobs, leftovers []string) {
	t.Helper()
	err := filepath.WalkDir(p.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == formsvc.MarkerKey {
			return err
		}
		rest, err := filepath.Rel(p.dir, path)
		if err != nil {
			return err
		}
		if strings.HasPrefix(rest, ".") || strings.Contains(rest, "/.") {
			leftovers = append(leftovers, path)
		} else {
			blobs = append(blobs, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return blobs, leftovers
}

// bytesOf returns n bytes that are unique to the seed.
func bytesOf(seed byte, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7) ^ byte(i>>8) ^ byte(i>>16) ^ seed
	}
	return b
}
