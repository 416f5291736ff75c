package backup_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/keyring"
	"github.com/formsvc/toolkit/storage/sqlite"
	"github.com/formsvc/toolkit/storage/sqlite/backup"
)

// backedUp returns a backup of a few responses with files, and the place it was made of.
func backedUp(t testing.TB, withKeys bool) (dir string, p *place) {
	t.Helper()
	p = stocked(t)
	for _, content := range []string{"a", "b", "c"} {
		p.submit(t.Context(), t, []byte(content))
	}
	dir = filepath.Join(t.TempDir(), "backup")
	from := backup.Source{Store: p.rows, Files: p.files}
	if withKeys {
		from.KeyFile = p.keys()
	}
	must(backup.Write(t.Context(), dir, from))
	return dir, p
}

// names returns the files below a directory.
func names(t testing.TB, dir string) (list []string) {
	t.Helper()
	noError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			name, _ := filepath.Rel(dir, path)
			list = append(list, name)
		}
		return err
	}))
	return list
}

// Restore overwrites nothing, and its error names what is in the way.
func TestRestoreRefusesNonEmptyTarget(t *testing.T) {
	t.Parallel()
	dir, p := backedUp(t, true)
	for name, prepare := range map[string]func(dir string) error{
		"forms.db":     func(to string) error { return os.WriteFile(filepath.Join(to, "forms.db"), nil, 0o600) },
		"forms.db-wal": func(to string) error { return os.WriteFile(filepath.Join(to, "forms.db-wal"), nil, 0o600) },
		"secret.keys": func(to string) error {
			_, err := keyring.OpenFile(filepath.Join(to, "secret.keys"))
			return err
		},
	} {
		to := t.TempDir()
		noError(t, prepare(to))
		before := names(t, to)
		_, err := backup.Restore(t.Context(), dir, target(t, to))
		if !errors.Is(err, backup.ErrNotEmpty) || !strings.Contains(err.Error(), name) {
			t.Errorf("beside %s: %v", name, err)
		}
		if after := names(t, to); !slices.Equal(after, before) {
			t.Errorf("beside %s: there was %v, and is %v", name, before, after)
		}
	}
	// Restore into the running service itself.
	if _, err := backup.Restore(t.Context(), dir, target(t, p.dir)); !errors.Is(err, backup.ErrNotEmpty) {
		t.Errorf("over the service: %v", err)
	}
	p.sound(t)
}

// A restore of a damaged or foreign backup changes nothing.
func TestRestoreRefusesBadBackups(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		damage func(dir string) error
		want   error
	}{
		{"no sums", func(dir string) error { return os.Remove(filepath.Join(dir, "SHA256SUMS")) }, backup.ErrNoBackup},
		{"empty sums", func(dir string) error { return os.WriteFile(filepath.Join(dir, "SHA256SUMS"), nil, 0o600) }, backup.ErrDamaged},
		{"other keys", func(dir string) error { return replace(filepath.Join(dir, "secret.keys"), "#", "# ") }, backup.ErrDamaged},
		{"other database", func(dir string) error { return replace(filepath.Join(dir, "formsvc.db"), "ada@", "eve@") }, backup.ErrDamaged},
		{"no database", func(dir string) error { return os.Remove(filepath.Join(dir, "formsvc.db")) }, backup.ErrDamaged},
	} {
		dir, _ := backedUp(t, true)
		noError(t, c.damage(dir))
		to := t.TempDir()
		if _, err := backup.Restore(t.Context(), dir, target(t, to)); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
		if left := names(t, to); len(left) > 0 {
			t.Errorf("%s: it left %v", c.name, left)
		}
	}
}

func replace(path, from, to string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	changed := strings.Replace(string(text), from, to, 1)
	if changed == string(text) {
		return errors.New("there is no " + from)
	}
	return os.WriteFile(path, []byte(changed), 0o600)
}

// A backup without keys is restored only with the keys that open its secrets.
func TestRestoreWithSeparateKeys(t *testing.T) {
	t.Parallel()
	dir, p := backedUp(t, false)
	to := t.TempDir()
	at := target(t, to)
	if _, err := backup.Restore(t.Context(), dir, at); !errors.Is(err, keyring.ErrUnknownKey) {
		t.Errorf("without keys: %v", err)
	}
	at.Keyring, _ = keyring.Parse(strings.Repeat("ab", 32)) // never fails
	if _, err := backup.Restore(t.Context(), dir, at); !errors.Is(err, keyring.ErrUnknownKey) {
		t.Errorf("with another key: %v", err)
	}
	if left := names(t, to); len(left) > 0 {
		t.Errorf("it left %v", left)
	}
	own := must(keyring.OpenFile(p.keys()))
	at.Keyring = own
	must(backup.Restore(t.Context(), dir, at))
	text, err := os.ReadFile(p.keys())
	if err != nil || os.WriteFile(filepath.Join(to, "secret.keys"), text, 0o600) != nil {
		t.Fatal(err)
	}
	opened(t, to).sound(t)
}

// An interrupted restore leaves no database under its name, and resumes when called
// again.
func TestRestoreResumes(t *testing.T) {
	t.Parallel()
	dir, _ := backedUp(t, true)
	to := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	at := target(t, to)
	at.Progress = func(int64) { cancel() }
	_, err := backup.Restore(ctx, dir, at)
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	left := names(t, to)
	if slices.Contains(left, "forms.db") || !slices.Contains(left, filepath.Base(backup.Unfinished("forms.db"))) || len(left) < 2 {
		t.Errorf("it left %v", left)
	}
	must(backup.Restore(t.Context(), dir, target(t, to)))
	if ids := opened(t, to).sound(t); len(ids) != 3 {
		t.Errorf("%d files are back", len(ids))
	}
	if left := names(t, to); slices.ContainsFunc(left, func(name string) bool { return strings.Contains(name, "restoring") }) {
		t.Errorf("there is %v", left)
	}
}

// A place that has files of the same database gets those that are missing. One of another size stays, and is named.
func TestRestoreAddsMissingFiles(t *testing.T) {
	t.Parallel()
	dir, p := backedUp(t, true)
	ids := p.sound(t)
	to := t.TempDir()
	noError(t, os.CopyFS(filepath.Join(to, "files"), os.DirFS(filepath.Join(p.dir, "files"))))
	missing := filepath.Join(to, "files", filepath.FromSlash(formsvc.BlobKey(ids[1])))
	noError(t, os.Truncate(missing, 0))
	_, err := backup.Restore(t.Context(), dir, target(t, to))
	if _, gone := os.Stat(missing); gone != nil || !errors.Is(err, fs.ErrExist) || !strings.Contains(err.Error(), formsvc.BlobKey(ids[1])) {
		t.Errorf("with an empty file: %v, %v", err, gone)
	}
	noError(t, os.Remove(missing))
	must(backup.Restore(t.Context(), dir, target(t, to)))
	if back := opened(t, to).sound(t); !slices.Equal(back, ids) {
		t.Errorf("there are %v, want %v", back, ids)
	}
}

// Files that are damaged in the backup are named, and everything else is restored.
func TestRestoreNamesDamagedFiles(t *testing.T) {
	t.Parallel()
	dir, p := backedUp(t, true)
	ids := p.sound(t)
	path := func(id formsvc.ID) string {
		return filepath.Join(dir, "files", filepath.FromSlash(formsvc.BlobKey(id)))
	}
	noError(t, errors.Join(os.Remove(path(ids[0])), os.WriteFile(path(ids[1]), []byte("x"), 0o600)))
	to := t.TempDir()
	m, err := backup.Restore(t.Context(), dir, target(t, to))
	if !errors.Is(err, backup.ErrDamaged) || !slices.Equal(m.Damaged, ids[:2]) {
		t.Errorf("damaged are %v, %v", m.Damaged, err)
	}
	broken := 0
	n, err := opened(t, to).svc.Files.Verify(t.Context(), func(*formsvc.File, error) error {
		broken++
		return nil
	})
	if err != nil || n != 3 || broken != 2 {
		t.Errorf("of %d files %d are broken, %v", n, broken, err)
	}
}

// A database that a server creates during the restore, started too early, is kept.
func TestRestoreKeepsDatabaseCreatedMeanwhile(t *testing.T) {
	t.Parallel()
	dir, _ := backedUp(t, true)
	to := t.TempDir()
	made := filepath.Join(to, "forms.db")
	at := target(t, to)
	at.Progress = func(int64) { _ = os.WriteFile(made, []byte("of another"), 0o600) }
	_, err := backup.Restore(t.Context(), dir, at)
	if !errors.Is(err, backup.ErrNotEmpty) {
		t.Errorf("restore: %v", err)
	}
	if text, err := os.ReadFile(made); err != nil || string(text) != "of another" {
		t.Errorf("the database of another is %q, %v", text, err)
	}
}

// A restored database has the same identity, and the blob store belongs to it.
func TestRestoreKeepsTheIdentity(t *testing.T) {
	t.Parallel()
	dir, p := backedUp(t, true)
	want := must(p.rows.Identity(t.Context()))
	for _, name := range []string{"nowhere before", "where its marker is"} {
		at := target(t, t.TempDir())
		if name == "where its marker is" {
			must(at.Files.Put(t.Context(), formsvc.MarkerKey, strings.NewReader(string(want))))
		}
		must(backup.Restore(t.Context(), dir, at))
		restored := must(sqlite.Open(t.Context(), at.Database, &sqlite.Options{SkipMigrations: true}))
		if got, err := restored.Identity(t.Context()); err != nil || got != want {
			t.Errorf("%s: the identity is %q, %v; want %q", name, got, err, want)
		}
		marker, _, err := at.Files.Open(t.Context(), formsvc.MarkerKey, 0, int64(len(want)))
		noError(t, err)
		if owner, err := io.ReadAll(marker); err != nil || formsvc.ID(owner) != want {
			t.Errorf("%s: the files belong to %q, %v; want %q", name, owner, err, want)
		}
		_ = marker.Close()
		noError(t, restored.Close())
	}
	if _, err := os.Stat(filepath.Join(dir, "files", formsvc.MarkerKey)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the backup has a marker (%v)", err)
	}
}

// A blob store of another database isn't changed, whether it has a marker or only files.
func TestRestoreRefusesFilesOfAnotherDatabase(t *testing.T) {
	t.Parallel()
	dir, _ := backedUp(t, true)
	for _, key := range []string{formsvc.MarkerKey, formsvc.BlobKey(formsvc.NewID(time.Now()))} {
		to := t.TempDir()
		at := target(t, to)
		must(at.Files.Put(t.Context(), key, strings.NewReader(string(formsvc.NewID(time.Now())))))
		before := names(t, to)
		if _, err := backup.Restore(t.Context(), dir, at); !errors.Is(err, formsvc.ErrOtherBlobs) {
			t.Errorf("%s: %v, want ErrOtherBlobs", key, err)
		}
		if after := names(t, to); !slices.Equal(after, before) {
			t.Errorf("%s: there was %v, and is %v", key, before, after)
		}
	}
}
