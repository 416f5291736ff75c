package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/formsvc/toolkit/blobstore"
	"github.com/formsvc/toolkit/blobstore/blobtest"
	"github.com/formsvc/toolkit/blobstore/fileblob"
	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/sqlite"
)

const key = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

func open(t testing.TB, dir string) *sealed {
	t.Helper()
	files := must(fileblob.Open(dir))
	t.Cleanup(func() { _ = files.Close() })
	return must(newSealed(files, key))
}

func TestConformance(t *testing.T) {
	var dirs sync.Map // by store
	blobtest.Run(t, func(t testing.TB) blobstore.Store {
		dir := t.TempDir()
		s := open(t, dir)
		dirs.Store(s, dir)
		return s
	}, blobtest.Options{
		Reopen: func(t testing.TB, s blobstore.Store) blobstore.Store {
			dir, _ := dirs.Load(s)
			return open(t, dir.(string))
		},
	})
}

// TestDiskHasNoPlaintext looks for the content of an upload in the files on the disk.
func TestDiskHasNoPlaintext(t *testing.T) {
	dir := t.TempDir()
	store := must(sqlite.Open(t.Context(), filepath.Join(dir, "forms.db"), nil))
	defer func() { _ = store.Close() }()
	if _, err := newAPI(store, dir+"/files", "too short"); err == nil || strings.Contains(err.Error(), "too short") {
		t.Errorf("a bad key: error %v, want one that keeps it", err)
	}
	api := must(newAPI(store, dir+"/files", key))
	response, bearer := newResponse(t.Context(), t, store)
	secret := strings.Repeat("nobody else may read this. ", 10_000)
	do := func(method, path, body string, header ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer "+bearer)
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		w := httptest.NewRecorder()
		api.ServeHTTP(w, r)
		return w
	}
	up := do("POST", response+"/files", secret, "Content-Type", "text/plain", "Content-Disposition", `attachment; filename="a.txt"`)
	if up.Code != http.StatusCreated {
		t.Fatalf("upload: %d %s", up.Code, up.Body)
	}
	if down := do("GET", up.Header().Get("Location"), "", "Range", "bytes=100000-100026"); down.Body.String() != secret[100000:100027] {
		t.Errorf("a part of the file is %q, want %q", down.Body, secret[100000:100027])
	}
	found := 0
	if err := fs.WalkDir(os.DirFS(dir+"/files"), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		f, err := os.Open(filepath.Join(dir, "files", path))
		if err != nil {
			return err
		}
		content, err := io.ReadAll(f)
		if bytes.Contains(content, []byte("nobody")) {
			t.Errorf("%s is readable", path)
		}
		found += len(content)
		return errors.Join(err, f.Close())
	}); err != nil || found < len(secret) {
		t.Errorf("%d bytes on the disk (%v)", found, err)
	}
}

// newResponse returns the path of a response, and a key.
func newResponse(ctx context.Context, t *testing.T, store formsvc.Store) (path, bearer string) {
	t.Helper()
	forms := must(formsvc.New(store, nil))
	account, first, err := forms.Accounts.CreateWithKey(ctx, "a", formsvc.KeyInput{Name: "k", Permissions: formsvc.AllPermissions()})
	if err != nil {
		t.Fatal(err)
	}
	c := must(forms.Campaigns.Create(ctx, account.ID, formsvc.CampaignInput{Title: "c"}))
	r := must(forms.Responses.Create(ctx, c.Key(), formsvc.ResponseInput{User: formsvc.User{Email: "a@example.com"}}))
	return "/v1/campaigns/" + string(c.ID) + "/responses/" + string(r.ID), first.Value
}

// must returns the result of a call that can't fail here.
func must[T any](result T, err error) T {
	if err != nil {
		panic(err)
	}
	return result
}
