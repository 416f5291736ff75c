//go:build long

package main_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

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

// onEachPlace runs a test with each kind of blob store, on each kind of database.
func onEachPlace(t *testing.T, test func(t *testing.T, w *filing)) {
	t.Helper()
	t.Parallel()
	for _, db := range databases() {
		for name, open := range places() {
			t.Run(db.name+" and "+name, func(t *testing.T) {
				t.Parallel()
				test(t, &filing{dsn: db.dsn(t), place: open(t)})
			})
		}
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

// manage runs a management command on the database and the blob store.
func (w *filing) manage(t testing.TB, args ...string) result {
	t.Helper()
	return invocation{args: on(t, w.dsn, append(args, w.place.flags...)), env: w.place.env}.run(t)
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

// form uploads content as a form.
func (w *filing) form(t testing.TB, name, module string, content []byte) fileRecord {
	t.Helper()
	var body bytes.Buffer
	m := multipart.NewWriter(&body)
	part, err := m.CreateFormFile("file", name)
	if err == nil {
		_, err = part.Write(content)
	}
	if err == nil {
		err = m.WriteField("module", module)
	}
	if err == nil {
		err = m.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.client.url+w.response+"/files", &body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+w.key)
	req.Header.Set("Content-Type", m.FormDataContentType())
	a, err := w.answered(req)
	return w.taken(t, a, err, content)
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

// age makes stored files two days old.
func age(t testing.TB, paths ...string) {
	t.Helper()
	for _, path := range paths {
		old := time.Now().Add(-48 * time.Hour)
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
}

// bytesOf returns n bytes that are unique to the seed.
func bytesOf(seed byte, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7) ^ byte(i>>8) ^ byte(i>>16) ^ seed
	}
	return b
}

// Files that are uploaded either way are reported to webhooks and downloaded unchanged.
func TestFiles(t *testing.T) {
	onEachPlace(t, func(t *testing.T, w *filing) {
		w.serve(t, "--max-upload", "8MB")
		r := receiver(t)
		hook(t, w.dsn, r.URL(), "file.uploaded")
		small, large := bytesOf(1, 1000), bytesOf(2, 8_000_000)
		one := w.upload(t, "Überblick.txt", small)
		two := w.form(t, "../plan.pdf", "plan", large)
		if one.Name != "Überblick.txt" || one.ContentType != "application/x-test" || two.Name != "plan.pdf" || two.Module != "plan" {
			t.Errorf("%+v, %+v", one, two)
		}
		w.has(t, one.UUID, small)
		w.has(t, two.UUID, large)
		if list := w.listed(t); len(list) != 2 || list[0].UUID != two.UUID || list[1].UUID != one.UUID {
			t.Errorf("list %+v", list)
		}
		a, err := w.send(t.Context(), "large", bytes.NewReader(append(large, 0)), int64(len(large)+1))
		if err != nil || a.status != http.StatusRequestEntityTooLarge || !strings.Contains(string(a.body), "8000000") {
			t.Errorf("a byte too many: status %d, %v\n%s", a.status, err, a.body)
		}
		hashes := map[string]bool{}
		for _, got := range arrivals(t, r, 2) {
			var e struct{ Data struct{ File fileRecord } }
			if err := json.Unmarshal(got.Delivery.Body, &e); err != nil {
				t.Fatal(err)
			}
			hashes[e.Data.File.SHA256] = true
		}
		if !hashes[one.SHA256] || !hashes[two.SHA256] {
			t.Errorf("webhooks told of %v", hashes)
		}
		if strings.HasPrefix(w.dsn, "postgres") { // another node serves the same files
			node := execute(t, w.dsn, w.place.env, w.place.flags...).started(t)
			other := &filing{client: newClient(t, node.url, w.key)}
			other.has(t, one.UUID, small)
			other.has(t, two.UUID, large)
		}
		if blobs, left := w.stored(t); len(blobs) != 2 || len(left) != 0 {
			t.Errorf("stored %q and %q", blobs, left)
		}
		if got := w.manage(t, "files", "verify"); got.status != 0 || got.out != "" || !strings.Contains(got.err, "2 files checked, 0 damaged") {
			t.Errorf("verify: %+v", got)
		}
	})
}

// A blob that was changed or lost on the disk is detected, never served as intact, and listed by verify.
func TestDamagedFiles(t *testing.T) {
	onEachPlace(t, func(t *testing.T, w *filing) {
		w.serve(t)
		flipped := w.upload(t, "flipped", bytesOf(1, 1_000_000))
		short := w.upload(t, "short", bytesOf(2, 1_000_000))
		gone := w.upload(t, "gone", bytesOf(3, 1_000_000))
		whole := w.upload(t, "whole", bytesOf(4, 1_000_000))
		w.damage(t, flipped.UUID, func(b []byte) []byte { b[len(b)-1] ^= 1; return b })
		w.damage(t, short.UUID, func(b []byte) []byte { return b[:len(b)-1] })
		w.damage(t, gone.UUID, func([]byte) []byte { return nil })
		for _, uuid := range []string{flipped.UUID, short.UUID, gone.UUID} {
			a, err := w.download(t, uuid)
			if err == nil && a.status != http.StatusBadGateway {
				t.Errorf("a damaged file came with status %d and ended well", a.status)
			}
		}
		w.has(t, whole.UUID, bytesOf(4, 1_000_000))
		got := w.manage(t, "files", "verify", "--json")
		if got.status != 1 || strings.Count(got.out, "\n") != 3 || strings.Contains(got.out, whole.UUID) {
			t.Errorf("verify: %+v", got)
		}
		for _, uuid := range []string{flipped.UUID, short.UUID, gone.UUID} {
			if !strings.Contains(got.out, `"uuid":"`+uuid+`"`) {
				t.Errorf("verify does not name %s: %s", uuid, got.out)
			}
		}
	})
}

// damage changes the stored bytes of a file.
func (w *filing) damage(t testing.TB, uuid string, edit func([]byte) []byte) {
	t.Helper()
	blobs, _ := w.stored(t)
	for _, path := range blobs {
		if filepath.Base(path) != uuid {
			continue
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if b = edit(b); b == nil {
			err = os.Remove(path)
		} else {
			err = os.WriteFile(path, b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Fatalf("no blob of the file %s", uuid)
}

// A server that is killed during uploads leaves no incomplete file, and nothing that a sweep doesn't remove.
func TestFilesSurviveKill(t *testing.T) {
	onEachPlace(t, func(t *testing.T, w *filing) {
		w.serve(t)
		kept := map[string][]byte{}
		for life := range 3 {
			content := bytesOf(byte(life), 7_000_000)
			kept[w.upload(t, fmt.Sprint("kept ", life), content).UUID] = content
			w.cutOff(t, 6_000_000*life+100)
			w.serve(t)
		}
		list := w.listed(t)
		if len(list) != len(kept) {
			t.Errorf("%d files, want %d", len(list), len(kept))
		}
		for uuid, content := range kept {
			w.has(t, uuid, content)
		}
		w.sweepsUp(t, len(kept))
		if got := w.manage(t, "files", "verify"); got.status != 0 {
			t.Errorf("verify: %+v", got)
		}
	})
}

// cutOff kills the server when it has read n bytes of an upload.
func (w *filing) cutOff(t testing.TB, n int) {
	t.Helper()
	r, body := io.Pipe()
	done := make(chan error)
	go func() {
		a, err := w.send(t.Context(), "cut off", r, int64(n)+1)
		if err == nil {
			err = fmt.Errorf("status %d", a.status)
		}
		done <- err
	}()
	if _, err := body.Write(bytesOf(9, n)); err != nil {
		t.Errorf("the upload ended early: %v", err)
	}
	w.kill()
	_ = body.CloseWithError(io.ErrClosedPipe)
	if err := <-done; strings.HasPrefix(err.Error(), "status") {
		t.Errorf("an upload that was cut off was answered: %v", err)
	}
}

// sweepsUp adds an orphan and checks that a sweep removes only old bytes that belong to no file.
func (w *filing) sweepsUp(t testing.TB, files int) {
	t.Helper()
	const orphan = "01900000-0000-7000-8000-0000000000ab"
	path := filepath.Join(w.dir, "ab", orphan)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("orphan"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := w.manage(t, "files", "sweep", "--json"); got.status != 0 || !strings.Contains(got.out, `"removed":0,"leftovers":0`) {
		t.Errorf("a sweep of what is young: %+v", got)
	}
	blobs, left := w.stored(t)
	if len(blobs) != files+1 {
		t.Errorf("blobs before the sweep: %q", blobs)
	}
	age(t, slices.Concat(blobs, left)...)
	if got := w.manage(t, "files", "sweep", "--dry-run"); got.status != 0 {
		t.Errorf("a dry run: %+v", got)
	}
	if again, _ := w.stored(t); len(again) != len(blobs) {
		t.Errorf("a dry run removed some of %q", blobs)
	}
	if got := w.manage(t, "files", "sweep"); got.status != 0 {
		t.Errorf("sweep: %+v", got)
	}
	blobs, _ = w.stored(t)
	if len(blobs) != files || slices.Contains(blobs, path) {
		t.Errorf("blobs after the sweep: %q", blobs)
	}
	if w.server != nil && w.place.server == nil {
		if _, left = w.stored(t); len(left) > 0 {
			t.Errorf("leftovers after the sweep: %q", left)
		}
	}
}
