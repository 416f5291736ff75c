//go:build linux

package lossyfs_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/formsvc/toolkit/cmd/formsvc/torture/internal/lossyfs"
)

// nameRounds is the number of power losses for each change of names: enough for each possible outcome to occur.
const nameRounds = 25

// Every change of names is durable after fsync of its directory. Without fsync it survives or is lost, but never in part.
func TestNameChangesAreAtomic(t *testing.T) {
	t.Parallel()
	in := filepath.Join
	for name, c := range map[string]struct {
		before []string // files, or directories if they end in a slash
		change func(dir string) error
		sync   string // the directory to sync
		want   string
		lost   string // the state when the change did not reach the disk
	}{
		"create": {
			nil, func(dir string) error { return os.WriteFile(in(dir, "new"), nil, 0o600) },
			".", "new=", "",
		},
		"mkdir": {
			nil, func(dir string) error { return os.Mkdir(in(dir, "new"), 0o700) },
			".", "new/", "",
		},
		"link": {
			[]string{"a"}, func(dir string) error { return os.Link(in(dir, "a"), in(dir, "b")) },
			".", "a=a b=a", "a=a",
		},
		"rename": {
			[]string{"a"}, func(dir string) error { return os.Rename(in(dir, "a"), in(dir, "b")) },
			".", "b=a", "a=a",
		},
		"rename over": {
			[]string{"a", "b"}, func(dir string) error { return os.Rename(in(dir, "a"), in(dir, "b")) },
			".", "b=a", "a=a b=b",
		},
		"rename of a directory": {
			[]string{"d/", "d/a"}, func(dir string) error { return os.Rename(in(dir, "d"), in(dir, "e")) },
			".", "e/ e/a=a", "d/ d/a=a",
		},
		"rename into a directory, from": {
			[]string{"a", "d/"}, func(dir string) error { return os.Rename(in(dir, "a"), in(dir, "d/a")) },
			".", "d/ d/a=a", "a=a d/",
		},
		"rename into a directory, to": {
			[]string{"a", "d/"}, func(dir string) error { return os.Rename(in(dir, "a"), in(dir, "d/a")) },
			"d", "d/ d/a=a", "a=a d/",
		},
		"unlink": {
			[]string{"a", "b"}, func(dir string) error { return os.Remove(in(dir, "a")) },
			".", "b=b", "a=a b=b",
		},
		"rmdir": {
			[]string{"d/"}, func(dir string) error { return os.Remove(in(dir, "d")) },
			".", "", "d/",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := lossyfs.Mount(t, 31)
			for _, synced := range []bool{true, false} {
				got := make(map[string]int)
				for round := range nameRounds {
					dir := durableDir(t, f.Dir, fmt.Sprintf("%d-%v", round, synced))
					for _, path := range c.before {
						if path[len(path)-1] == '/' {
							durableDir(t, dir, path)
						} else {
							durableFile(t, in(dir, path), []byte(filepath.Base(path)))
						}
					}
					must(t, c.change(dir))
					if synced {
						fsync(t, in(dir, c.sync))
					}
					f.PowerLoss(t)
					got[state(t, dir)]++
				}
				want := []string{c.want}
				if !synced {
					want = append(want, c.lost)
				}
				slices.Sort(want)
				if all := slices.Sorted(maps.Keys(got)); !slices.Equal(all, want) {
					t.Errorf("synced %v: there is %v, want %q", synced, got, want)
				}
			}
		})
	}
}

// The name of a new file is lost although the file was synced. A file whose name was synced and whose bytes were not
// exists and is empty, or has a part of them.
func TestNewFileMayLoseName(t *testing.T) {
	t.Parallel()
	f := lossyfs.Mount(t, 32)
	got := make(map[string]bool)
	for round := range nameRounds {
		dir := durableDir(t, f.Dir, fmt.Sprint(round))
		must(t, os.WriteFile(filepath.Join(dir, "bytes"), []byte("whole"), 0o600))
		fsync(t, filepath.Join(dir, "bytes"))
		f.PowerLoss(t)
		got[state(t, dir)] = true
	}
	if want := map[string]bool{"": true, "bytes=whole": true}; !maps.Equal(got, want) {
		t.Errorf("there is %v, want %v", got, want)
	}
	clear(got)
	for round := range nameRounds {
		dir := durableDir(t, f.Dir, fmt.Sprint("name", round))
		must(t, os.WriteFile(filepath.Join(dir, "name"), []byte("whole"), 0o600))
		fsync(t, dir)
		f.PowerLoss(t)
		got[state(t, dir)] = true
	}
	if got[""] || !got["name="] || !got["name=whole"] {
		t.Errorf("there is %v, want a file that is empty or not", got)
	}
}

// If a new version is renamed over a file without fsync, sometimes neither survives.
func TestRenameWithoutSync(t *testing.T) {
	t.Parallel()
	f := lossyfs.Mount(t, 33)
	neither := 0
	for round := range nameRounds {
		dir := durableDir(t, f.Dir, fmt.Sprint(round))
		name := filepath.Join(dir, "file")
		durableFile(t, name, []byte("old"))
		must(t, os.WriteFile(name+".new", []byte("new"), 0o600))
		must(t, os.Rename(name+".new", name))
		f.PowerLoss(t)
		if b, err := os.ReadFile(name); err != nil || string(b) != "old" && string(b) != "new" {
			neither++
		}
	}
	if neither == 0 {
		t.Errorf("one of both is there in all of %d rounds", nameRounds)
	}
}

// Changes in one directory reach the disk in their order, independent of another directory.
func TestNameChangesKeepOrder(t *testing.T) {
	t.Parallel()
	f := lossyfs.Mount(t, 34)
	lengths := make(map[int]bool)
	different := false
	for round := range nameRounds {
		var there [2]int
		var dirs [2]string
		for i := range dirs {
			dirs[i] = durableDir(t, f.Dir, fmt.Sprint(round, i))
		}
		for n := range 5 {
			for _, dir := range dirs {
				must(t, os.Mkdir(filepath.Join(dir, fmt.Sprint(n)), 0o700))
			}
		}
		was := f.Dropped().Names
		f.PowerLoss(t)
		for i, dir := range dirs {
			entries, err := os.ReadDir(dir)
			must(t, err)
			for n, e := range entries {
				if e.Name() != fmt.Sprint(n) {
					t.Fatalf("%s is there, and one that was made before is not", e.Name())
				}
			}
			there[i] = len(entries)
			lengths[len(entries)] = true
		}
		different = different || there[0] != there[1]
		if lost := f.Dropped().Names - was; lost != 10-there[0]-there[1] {
			t.Errorf("of 10 names %d and %d are there, and %d are counted as lost", there[0], there[1], lost)
		}
	}
	if len(lengths) != 6 || !different {
		t.Errorf("of 5 names there are so many: %v; different in two directories: %v", lengths, different)
	}
}

// A rename between directories makes earlier changes in both durable, and no later ones.
func TestRenameMakesEarlierChangesDurable(t *testing.T) {
	t.Parallel()
	f := lossyfs.Mount(t, 35)
	kept := make(map[string]bool)
	for round := range nameRounds {
		dir := durableDir(t, f.Dir, fmt.Sprint(round))
		from, to := durableDir(t, dir, "from"), durableDir(t, dir, "to")
		must(t, os.Mkdir(filepath.Join(from, "a"), 0o700))
		must(t, os.Rename(filepath.Join(from, "a"), filepath.Join(to, "b")))
		must(t, os.Mkdir(filepath.Join(from, "later"), 0o700))
		fsync(t, to)
		f.PowerLoss(t)
		kept[state(t, dir)] = true
	}
	if want := map[string]bool{"from/ to/ to/b/": true, "from/ from/later/ to/ to/b/": true}; !maps.Equal(kept, want) {
		t.Errorf("there is %v, want %v", kept, want)
	}
}

// With very many changes of names, the oldest become durable by themselves.
func TestOldNameChangesBecomeDurable(t *testing.T) {
	t.Parallel()
	f := lossyfs.Mount(t, 36)
	for round := range 6 {
		one, other := durableDir(t, f.Dir, fmt.Sprint(round)), durableDir(t, f.Dir, fmt.Sprint("other", round))
		must(t, os.Mkdir(filepath.Join(one, "oldest"), 0o700))
		for range 2048 {
			must(t, os.Mkdir(filepath.Join(other, "a"), 0o700))
			must(t, os.Remove(filepath.Join(other, "a")))
		}
		f.PowerLoss(t)
		if got := state(t, one); got != "oldest/" {
			t.Errorf("there is %q", got)
		}
	}
}
