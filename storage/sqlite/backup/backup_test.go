package backup_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/formsvc/toolkit/blobstore"
	"github.com/formsvc/toolkit/blobstore/fileblob"
	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/keyring"
	"github.com/formsvc/toolkit/storage/sqlite"
	"github.com/formsvc/toolkit/storage/sqlite/backup"
	"github.com/formsvc/toolkit/webhook"
)

// A place is where a service keeps its data.
type place struct {
	dir   string
	ring  *keyring.Keyring
	rows  *sqlite.Store
	files *fileblob.Store
	svc   *formsvc.Service

	account, campaign formsvc.ID
}

func (p *place) database() string { return filepath.Join(p.dir, "forms.db") }
func (p *place) keys() string     { return filepath.Join(p.dir, "secret.keys") }

// opened opens the service in a directory, which may be empty.
func opened(t testing.TB, dir string) *place {
	t.Helper()
	p := &place{dir: dir}
	p.ring = must(keyring.OpenFile(p.keys()))
	p.rows = must(sqlite.Open(t.Context(), p.database(), &sqlite.Options{Keyring: p.ring}))
	t.Cleanup(func() { _ = p.rows.Close() })
	p.files = openFiles(t, filepath.Join(dir, "files"))
	p.svc = must(formsvc.New(p.rows, &formsvc.Options{Blobs: p.files}))
	return p
}

func openFiles(t testing.TB, dir string) *fileblob.Store {
	t.Helper()
	files := must(fileblob.Open(dir))
	t.Cleanup(func() { _ = files.Close() })
	return files
}

// stocked returns a place with a campaign, and a webhook with a secret.
func stocked(t testing.TB) *place {
	t.Helper()
	p := opened(t, t.TempDir())
	a := must(p.svc.Accounts.Create(t.Context(), "a"))
	c := must(p.svc.Campaigns.Create(t.Context(), a.ID, formsvc.CampaignInput{Title: "c"}))
	if _, _, err := p.svc.Webhooks.Create(t.Context(), a.ID, formsvc.WebhookInput{
		URL: "https://example.com/", Secret: "a secret of ours", Events: []formsvc.EventType{webhook.ResponseCreated},
	}); err != nil {
		t.Fatal(err)
	}
	p.account, p.campaign = a.ID, c.ID
	return p
}

// submit creates a response with a file.
func (p *place) submit(ctx context.Context, t testing.TB, content []byte) formsvc.File {
	r, err := p.svc.Responses.Create(ctx, formsvc.CampaignKey{AccountID: p.account, ID: p.campaign}, formsvc.ResponseInput{User: formsvc.User{Email: "ada@example.com"}})
	if err != nil {
		t.Error(err)
		return formsvc.File{}
	}
	f, err := p.svc.Files.Upload(ctx, formsvc.ResponseKey{AccountID: p.account, CampaignID: p.campaign, ID: r.ID},
		formsvc.FileInput{Name: "f", Content: bytes.NewReader(content)})
	if err != nil {
		t.Error(err)
	}
	return f
}

func (p *place) write(t testing.TB, dir string) backup.Summary {
	t.Helper()
	return must(backup.Write(t.Context(), dir, backup.Source{Store: p.rows, Files: p.files, KeyFile: p.keys()}))
}

// target returns the target of a restore in a directory.
func target(t testing.TB, dir string) backup.Target {
	return backup.Target{
		Database: filepath.Join(dir, "forms.db"), KeyFile: filepath.Join(dir, "secret.keys"), Files: openFiles(t, filepath.Join(dir, "files")),
	}
}

// sound checks that every file is what was uploaded and that the secret can be opened,
// and returns the identifiers of the files.
func (p *place) sound(t testing.TB) []formsvc.ID {
	t.Helper()
	n := must(p.svc.Files.Verify(t.Context(), func(f *formsvc.File, problem error) error {
		t.Errorf("file %s: %v", f.ID, problem)
		return nil
	}))
	var list []formsvc.File
	q := formsvc.PageQuery{Limit: formsvc.MaxLimit, Ascending: true}
	for more := true; more; {
		page := must(p.rows.AllFiles(t.Context(), q))
		if list, more = append(list, page.Items...), page.More; more {
			q.After = list[len(list)-1].ID
		}
	}
	if len(list) != n {
		t.Fatalf("%d files, %d were verified", len(list), n)
	}
	accounts, err := p.svc.Accounts.List(t.Context())
	if err != nil || len(accounts) != 1 {
		t.Fatalf("%d accounts, %v", len(accounts), err)
	}
	hooks, err := p.svc.Webhooks.List(t.Context(), accounts[0].ID)
	if err != nil || len(hooks) != 1 || hooks[0].Secret != "a secret of ours" {
		t.Errorf("the webhook and its secret are not there (%v)", err)
	}
	ids := make([]formsvc.ID, len(list))
	for i := range list {
		ids[i] = list[i].ID
	}
	return ids
}

// racing deletes a response at the moment its file is read.
type racing struct {
	blobstore.Store
	p       *place
	files   map[string]formsvc.File
	deleted func() // called after each
}

func (s *racing) Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, blobstore.Info, error) {
	if f, ok := s.files[key]; ok {
		err := s.p.svc.Responses.Delete(ctx, formsvc.ResponseKey{AccountID: f.AccountID, CampaignID: f.CampaignID, ID: f.ResponseID}, nil)
		if err != nil {
			return nil, blobstore.Info{}, err
		}
		delete(s.files, key)
		if s.deleted != nil {
			s.deleted()
		}
	}
	return s.Store.Open(ctx, key, offset, length)
}

// The backup has neither rows nor bytes of files that were deleted meanwhile, before or after their bytes were copied.
func TestFileDeletedDuringBackup(t *testing.T) {
	t.Parallel()
	p := stocked(t)
	stays := p.submit(t.Context(), t, []byte("stays"))
	copied := p.submit(t.Context(), t, []byte("goes, after its bytes were copied"))
	goes := p.submit(t.Context(), t, []byte("goes, before its bytes are copied"))
	files := &racing{Store: p.files, p: p, files: map[string]formsvc.File{formsvc.BlobKey(goes.ID): goes}}
	files.deleted = func() {
		key := formsvc.ResponseKey{AccountID: copied.AccountID, CampaignID: copied.CampaignID, ID: copied.ResponseID}
		if err := p.svc.Responses.Delete(t.Context(), key, nil); err != nil {
			t.Error(err)
		}
	}
	dir := filepath.Join(t.TempDir(), "backup")
	m := must(backup.Write(t.Context(), dir, backup.Source{Store: p.rows, Files: files, KeyFile: p.keys()}))
	if in := names(t, filepath.Join(dir, "files")); !slices.Equal(in, []string{filepath.FromSlash(formsvc.BlobKey(stays.ID))}) {
		t.Errorf("in the backup are %v", in)
	}
	to := t.TempDir()
	must(backup.Restore(t.Context(), dir, target(t, to)))
	if ids := opened(t, to).sound(t); !slices.Equal(ids, []formsvc.ID{stays.ID}) || m.Files != 1 {
		t.Errorf("back are %v, with %d files told of; want %s", ids, m.Files, stays.ID)
	}
}

// A backup ends where files come and go all the time: each time a snapshot knows a file
// whose bytes are deleted before they are read, the next snapshot begins at once.
func TestFileDeletedDuringManySnapshots(t *testing.T) {
	t.Parallel()
	p := stocked(t)
	stays := p.submit(t.Context(), t, []byte("stays"))
	files := &racing{Store: p.files, p: p, files: make(map[string]formsvc.File)}
	add := func() {
		f := p.submit(t.Context(), t, []byte(rand.Text()))
		files.files[formsvc.BlobKey(f.ID)] = f
	}
	deleted := 0
	files.deleted = func() {
		if deleted++; deleted < 15 {
			add()
		}
	}
	add()
	dir := filepath.Join(t.TempDir(), "backup")
	m, err := backup.Write(t.Context(), dir, backup.Source{Store: p.rows, Files: files, KeyFile: p.keys()})
	if err != nil || deleted != 15 || m.Files != 1 {
		t.Fatalf("%d files after %d deletions, %v", m.Files, deleted, err)
	}
	to := t.TempDir()
	must(backup.Restore(t.Context(), dir, target(t, to)))
	if ids := opened(t, to).sound(t); !slices.Equal(ids, []formsvc.ID{stays.ID}) {
		t.Errorf("restored are %v, want %s", ids, stays.ID)
	}
}

// Keys replaced between the copies of the database and of the keys don't lead to a
// backup that can't be opened.
func TestKeyReplacedDuringBackup(t *testing.T) {
	t.Parallel()
	p := stocked(t)
	dir := filepath.Join(t.TempDir(), "backup")
	var rotations sync.WaitGroup
	rotations.Go(func() {
		for range 20 {
			fresh, err := keyring.AddKey(p.keys())
			if err == nil {
				_ = p.ring.Seal("") // reads the file
				_, err = p.rows.RotateSecrets(t.Context())
			}
			if err == nil {
				_, err = keyring.RemoveKeys(p.keys(), fresh.Primary())
			}
			if err != nil {
				t.Error(err)
			}
		}
	})
	_, err := backup.Write(t.Context(), dir, backup.Source{Store: p.rows, Files: p.files, KeyFile: p.keys()})
	if rotations.Wait(); err != nil {
		t.Fatal(err)
	}
	to := t.TempDir()
	must(backup.Restore(t.Context(), dir, target(t, to)))
	opened(t, to).sound(t)
}

// A directory with the name of a backup is always complete: its checksums pass sha256sum,
// and only the owner can read it.
func TestBackupIsCompleteOrAbsent(t *testing.T) {
	t.Parallel()
	p := stocked(t)
	for range 5 {
		p.submit(t.Context(), t, []byte(rand.Text()))
	}
	above := t.TempDir()
	dir := filepath.Join(above, "backup")
	ctx, cancel := context.WithCancel(t.Context())
	_, err := backup.Write(ctx, dir, backup.Source{Store: p.rows, Files: p.files, KeyFile: p.keys(), Progress: func(int64) { cancel() }})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a backup that was given up: %v", err)
	}
	if left, _ := os.ReadDir(above); len(left) > 0 {
		t.Errorf("it left %v", left)
	}

	p.write(t, dir)
	sums := exec.Command("sha256sum", "--strict", "--quiet", "-c", "SHA256SUMS")
	sums.Dir = dir
	if out, err := sums.CombinedOutput(); err != nil {
		t.Errorf("sha256sum: %v\n%s", err, out)
	}
	listed := must(os.ReadFile(filepath.Join(dir, "SHA256SUMS")))
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if info, err := d.Info(); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
		name, _ := filepath.Rel(dir, path)
		if !d.IsDir() && name != "SHA256SUMS" && !strings.Contains(string(listed), "  "+name+"\n") {
			t.Errorf("%s is not among the sums", name)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if _, err := backup.Write(t.Context(), dir, backup.Source{Store: p.rows, Files: p.files}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a second backup at the same place: %v", err)
	}
	if left, _ := os.ReadDir(above); len(left) != 1 {
		t.Errorf("there is %v", left)
	}
}

// Files that were damaged before the backup are named, and the rest is backed up.
func TestBackupNamesDamagedFiles(t *testing.T) {
	t.Parallel()
	p := stocked(t)
	good, missing, other := p.submit(t.Context(), t, []byte("good")), p.submit(t.Context(), t, []byte("gone")), p.submit(t.Context(), t, []byte("other"))
	path := func(f formsvc.File) string {
		return filepath.Join(p.dir, "files", filepath.FromSlash(formsvc.BlobKey(f.ID)))
	}
	noError(t, errors.Join(os.Remove(path(missing)), os.WriteFile(path(other), []byte("OTHER"), 0o600)))
	dir := filepath.Join(t.TempDir(), "backup")
	m, err := backup.Write(t.Context(), dir, backup.Source{Store: p.rows, Files: p.files, KeyFile: p.keys()})
	if !errors.Is(err, backup.ErrDamaged) || !slices.Equal(m.Damaged, []formsvc.ID{missing.ID, other.ID}) {
		t.Errorf("damaged are %v, %v", m.Damaged, err)
	}
	to := t.TempDir()
	if m, err := backup.Restore(t.Context(), dir, target(t, to)); !errors.Is(err, backup.ErrDamaged) || len(m.Damaged) != 2 {
		t.Errorf("restore: damaged are %v, %v", m.Damaged, err)
	}
	var broken []formsvc.ID
	n, err := opened(t, to).svc.Files.Verify(t.Context(), func(f *formsvc.File, _ error) error {
		broken = append(broken, f.ID)
		return nil
	})
	if err != nil || n != 3 || slices.Contains(broken, good.ID) || len(broken) != 2 {
		t.Errorf("after the restore, of %d files %v are broken, %v", n, broken, err)
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
