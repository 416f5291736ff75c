//go:build linux

package lossyfs_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/formsvc/toolkit/cmd/formsvc/torture/internal/lossyfs"
)

const (
	pageSize   = 4096
	sectorSize = 512
	// byteRounds is the number of power losses for each rule about bytes.
	byteRounds = 40
)

// fill returns pages of one byte.
func fill(b byte, pages int) []byte { return bytes.Repeat([]byte{b}, pages*pageSize) }

// edit opens a file for writing, calls change and closes it.
func edit(t testing.TB, path string, change func(*os.File)) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	change(f)
	must(t, f.Close())
}

func writeAt(t testing.TB, f *os.File, b []byte, offset int64) {
	t.Helper()
	_, err := f.WriteAt(b, offset)
	must(t, err)
}

// Synced bytes stay, whatever is written elsewhere. Each overwritten page arrives completely, not at all, or only in its
// first sectors.
func TestPagesSurviveOrTear(t *testing.T) {
	t.Parallel()
	f := lossyfs.Mount(t, 41)
	path := filepath.Join(f.Dir, "file")
	durableFile(t, path, fill('a', 1))
	kinds := make(map[string]int)
	for range byteRounds {
		edit(t, path, func(file *os.File) {
			writeAt(t, file, fill('a', 12), 0)
			must(t, file.Sync())
			writeAt(t, file, fill('b', 8), 2*pageSize)
		})
		was := f.Dropped()
		f.PowerLoss(t)
		got, err := os.ReadFile(path)
		must(t, err)
		if len(got) != 12*pageSize {
			t.Fatalf("%d bytes, want %d", len(got), 12*pageSize)
		}
		lost := lossyfs.Loss{Pages: f.Dropped().Pages - was.Pages, Torn: f.Dropped().Torn - was.Torn}
		for i := range 12 {
			kind := kindOf(got[i*pageSize:][:pageSize], 'a', 'b')
			if i < 2 || i >= 10 {
				if kind != "old" {
					t.Fatalf("page %d was synced and is %s", i, kind)
				}
				continue
			}
			kinds[kind]++
			if kind != "new" {
				lost.Pages--
			}
			if kind == "torn" {
				lost.Torn--
			}
		}
		if lost != (lossyfs.Loss{}) {
			t.Errorf("counts %+v more than there is", lost)
		}
	}
	if kinds["old"] == 0 || kinds["new"] == 0 || kinds["torn"] == 0 || len(kinds) != 3 {
		t.Errorf("pages: %v, want old, new and torn ones", kinds)
	}
}

// kindOf returns whether a page has old bytes, new ones, or new sectors before old ones.
func kindOf(page []byte, before, after byte) string {
	arrived := bytes.Count(page, []byte{after})
	switch {
	case !bytes.Equal(page, append(bytes.Repeat([]byte{after}, arrived), bytes.Repeat([]byte{before}, len(page)-arrived)...)):
		return "damaged"
	case arrived == 0:
		return "old"
	case arrived == len(page):
		return "new"
	case arrived%sectorSize != 0:
		return "damaged"
	}
	return "torn"
}

// A page that is written twice may survive in its first version.
func TestRewrittenPageMayKeepFirstVersion(t *testing.T) {
	t.Parallel()
	f := lossyfs.Mount(t, 42)
	path := filepath.Join(f.Dir, "file")
	seen := make(map[byte]bool)
	for range byteRounds {
		durableFile(t, path, fill('a', 4))
		edit(t, path, func(file *os.File) {
			writeAt(t, file, fill('b', 4), 0)
			writeAt(t, file, fill('c', 4), 0)
		})
		f.PowerLoss(t)
		got, err := os.ReadFile(path)
		must(t, err)
		for i := range len(got) / pageSize {
			seen[got[(i+1)*pageSize-1]] = true
		}
	}
	if !seen['a'] || !seen['b'] || !seen['c'] || len(seen) != 3 {
		t.Errorf("pages end in %v, want a, b and c", seen)
	}
}

// A file that grew without fsync has the old size, the new one or one in between, and zeros where nothing arrived.
func TestGrownFileMayLoseSize(t *testing.T) {
	t.Parallel()
	f := lossyfs.Mount(t, 43)
	path := filepath.Join(f.Dir, "file")
	const before, after = pageSize + 100, 6*pageSize + 200
	sizes := make(map[string]bool)
	zeros := false
	for range byteRounds {
		durableFile(t, path, bytes.Repeat([]byte{'a'}, before))
		edit(t, path, func(file *os.File) { writeAt(t, file, bytes.Repeat([]byte{'b'}, after-before), before) })
		f.PowerLoss(t)
		got, err := os.ReadFile(path)
		must(t, err)
		switch size := len(got); {
		case size == before:
			sizes["before"] = true
		case size == after:
			sizes["after"] = true
		case size > before && size < after:
			sizes["between"] = true
		default:
			t.Fatalf("%d bytes", size)
		}
		if !bytes.Equal(got[:before], bytes.Repeat([]byte{'a'}, before)) {
			t.Fatal("what was synced is different")
		}
		if bytes.Trim(got[before:], "b\x00") != nil {
			t.Fatalf("there is something that nobody wrote: %q", bytes.Trim(got[before:], "b\x00"))
		}
		zeros = zeros || bytes.IndexByte(got, 0) >= 0
		must(t, os.Truncate(path, after))
		longer, err := os.ReadFile(path)
		must(t, err)
		if bytes.IndexByte(longer[len(got):], 'b') >= 0 {
			t.Fatal("what was behind the end comes back")
		}
	}
	if len(sizes) != 3 || !zeros {
		t.Errorf("sizes: %v, zeros %v", sizes, zeros)
	}
}

// A file that was truncated and rewritten without fsync is the old one with earlier writes, or as short as the truncation,
// or has grown from there. Truncated bytes never reappear behind new ones.
func TestTruncatedBytesStayGone(t *testing.T) {
	t.Parallel()
	f := lossyfs.Mount(t, 44)
	path := filepath.Join(f.Dir, "file")
	seen := make(map[string]bool)
	for range byteRounds {
		durableFile(t, path, fill('a', 4))
		edit(t, path, func(file *os.File) {
			must(t, file.Truncate(pageSize+100))
			for range 4 {
				writeAt(t, file, fill('b', 1), 2*pageSize)
			}
		})
		f.PowerLoss(t)
		got, err := os.ReadFile(path)
		must(t, err)
		if bytes.Equal(got, fill('a', 4)) {
			seen["old"] = true
			continue
		}
		if len(got) < pageSize+100 || len(got) > 3*pageSize {
			t.Fatalf("%d bytes", len(got))
		}
		if got := bytes.Count(got, []byte{'a'}); got != pageSize+100 {
			t.Fatalf("%d old bytes, want %d", got, pageSize+100)
		}
		seen[fmt.Sprint("new ", len(got) == 3*pageSize)] = true
	}
	if len(seen) != 3 {
		t.Errorf("outcomes: %v, want 3", seen)
	}
	durableFile(t, path, fill('a', 4))
	edit(t, path, func(file *os.File) {
		must(t, file.Truncate(100))
		must(t, file.Truncate(200))
		must(t, file.Sync())
	})
	f.PowerLoss(t)
	got, err := os.ReadFile(path)
	must(t, err)
	if want := append(bytes.Repeat([]byte{'a'}, 100), make([]byte, 100)...); !bytes.Equal(got, want) {
		t.Errorf("after fsync %d bytes, want %d", len(got), len(want))
	}
}

// Writes, truncations, syncs and reads behave as in any other file system, and synced data survives a power loss.
func TestMatchesOrdinaryFile(t *testing.T) {
	t.Parallel()
	f := lossyfs.Mount(t, 45)
	random := rand.New(rand.NewPCG(45, 45))
	paths := []string{filepath.Join(f.Dir, "file"), filepath.Join(t.TempDir(), "file")}
	for _, path := range paths {
		durableFile(t, path, nil)
	}
	const most = 10 * pageSize
	for step := range 2000 {
		what, offset, b := random.IntN(12), random.Int64N(most), content(uint64(step), most/4)
		for _, path := range paths {
			edit(t, path, func(file *os.File) {
				switch {
				case what < 7:
					writeAt(t, file, b, offset)
				case what == 7:
					must(t, file.Truncate(offset))
				case what == 8:
					_, err := file.Seek(0, io.SeekEnd)
					must(t, err)
					_, err = file.Write(b)
					must(t, err)
				case what < 11:
					must(t, file.Sync())
				}
			})
		}
		if what == 10 && step%5 == 0 {
			f.PowerLoss(t)
		}
		got, err := os.ReadFile(paths[0])
		must(t, err)
		want, err := os.ReadFile(paths[1])
		must(t, err)
		if !bytes.Equal(got, want) {
			t.Fatalf("step %d: %d bytes, which differ from the %d they should be", step, len(got), len(want))
		}
	}
}
