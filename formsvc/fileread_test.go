package formsvc_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/blobstore"
	"github.com/formsvc/toolkit/formsvc"
)

func TestOpenReturnsRanges(t *testing.T) {
	const block = formsvc.BlockSize
	w := newFileWorld(t)
	content := pattern(2*block + 100)
	f := w.uploaded(content)
	size := f.Size
	for _, x := range []struct{ offset, length, begin, end int64 }{
		{0, -1, 0, size},
		{0, size + 1, 0, size},
		{0, 0, 0, 0},
		{0, 1, 0, 1},
		{block - 1, 2, block - 1, block + 1},
		{block, block, block, 2 * block},
		{block, -1, block, size},
		{2 * block, 1, 2 * block, 2*block + 1},
		{size - 1, -1, size - 1, size},
		{size, -1, size, size},
		{size, 5, size, size},
		{1, 1<<63 - 1, 1, size},
		{size, 1<<63 - 1, size, size},
	} {
		got, err := w.read(&f, x.offset, x.length)
		if err != nil || !bytes.Equal(got, content[x.begin:x.end]) {
			t.Errorf("%d+%d: %d bytes, %v", x.offset, x.length, len(got), err)
		}
	}
	for _, offset := range []int64{-1, size + 1} {
		wantError(t, failure(w.read(&f, offset, -1)), formsvc.ErrInvalid)
	}
}

// Reading damaged content fails, and no damaged byte is returned.
func TestReadDetectsDamage(t *testing.T) {
	const block = formsvc.BlockSize
	content := pattern(2*block + 100)
	flip := func(at int) func([]byte) []byte {
		return func(b []byte) []byte {
			b[at] ^= 1
			return b
		}
	}
	for _, x := range []struct {
		label string
		edit  func([]byte) []byte
		good  int64 // bytes that may be returned
	}{
		{"the first byte", flip(0), 0},
		{"the last byte of the first block", flip(block - 1), 0},
		{"the second block", flip(block), block},
		{"the last byte", flip(2*block + 99), 2 * block},
		{"a byte less", func(b []byte) []byte { return b[:len(b)-1] }, 0},
		{"a byte more", func(b []byte) []byte { return append(b, 0) }, 0},
		{"empty", func([]byte) []byte { return []byte{} }, 0},
		{"missing", func([]byte) []byte { return nil }, 0},
	} {
		w := newFileWorld(t)
		f := w.uploaded(content)
		w.shelf.damage(t, &f, x.edit)
		got, err := w.read(&f, 0, -1)
		wantError(t, err, formsvc.ErrCorrupt)
		if int64(len(got)) > x.good || !bytes.Equal(got, content[:len(got)]) {
			t.Errorf("%s: %d bytes were given out", x.label, len(got))
		}
		for offset := int64(0); offset < f.Size; offset += 100_000 {
			got, err := w.read(&f, offset, 100)
			if err == nil && !bytes.Equal(got, content[offset:offset+int64(len(got))]) {
				t.Errorf("%s: a wrong part at %d", x.label, offset)
			}
		}
		wantDamaged(t, w, f.ID)
	}
}

// The hash detects a blob that was changed with matching block checksums.
func TestHashDetectsTampering(t *testing.T) {
	w := newFileWorld(t, func(o *formsvc.Options) { o.HashDownloads = true })
	content := pattern(1000)
	f := w.uploaded(content)
	other := w.uploaded(bytes.Repeat([]byte{7}, 1000))
	w.shelf.damage(t, &f, func([]byte) []byte { return bytes.Repeat([]byte{7}, 1000) })
	f.Blocks = other.Blocks
	got, err := w.read(&f, 0, -1)
	wantError(t, err, formsvc.ErrCorrupt)
	if len(got) > 0 {
		t.Errorf("%d bytes were given out", len(got))
	}
	w.store.alter = func(f *formsvc.File) { f.Blocks = other.Blocks }
	wantDamaged(t, w, f.ID)
}

// wantDamaged checks that Verify reports exactly these files.
func wantDamaged(t *testing.T, w *fileWorld, want ...formsvc.ID) {
	t.Helper()
	var got []formsvc.ID
	_, err := w.svc.Files.Verify(w.ctx, func(f *formsvc.File, err error) error {
		wantError(t, err, formsvc.ErrCorrupt)
		got = append(got, f.ID)
		return nil
	})
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("damaged %q, %v; want %q", got, err, want)
	}
}

func TestVerify(t *testing.T) {
	w := newFileWorld(t)
	var files []formsvc.File
	for i := range 250 { // more than one batch
		files = append(files, w.uploaded(fmt.Appendf(nil, "content %d", i)))
	}
	wantDamaged(t, w)
	n, err := w.svc.Files.Verify(w.ctx, nil)
	if n != 250 || err != nil {
		t.Errorf("%d files, %v", n, err)
	}
	w.shelf.damage(t, &files[0], func([]byte) []byte { return nil })
	w.shelf.damage(t, &files[100], func(b []byte) []byte { return append(b, 'x') })
	w.shelf.damage(t, &files[249], func(b []byte) []byte { return bytes.ToUpper(b) })
	wantDamaged(t, w, files[0].ID, files[100].ID, files[249].ID)

	enough := errors.New("enough")
	if n, err = w.svc.Files.Verify(w.ctx, func(*formsvc.File, error) error { return enough }); n != 0 || !errors.Is(err, enough) {
		t.Errorf("%d files, %v", n, err)
	}
	w.shelf.disturb(func(string, string) error { return blobstore.ErrUnavailable })
	if n, err = w.svc.Files.Verify(w.ctx, nil); n != 0 || !errors.Is(err, formsvc.ErrUnavailable) {
		t.Errorf("a blob store that is down: %d files, %v", n, err)
	}
}

// An error of the blob store during a read isn't reported as damage.
func TestReadErrorIsNotDamage(t *testing.T) {
	w := newFileWorld(t)
	f := w.uploaded(pattern(10))
	w.shelf.disturb(func(string, string) error { return blobstore.ErrUnavailable })
	_, err := w.read(&f, 0, -1)
	wantError(t, err, formsvc.ErrUnavailable)
	if errors.Is(err, formsvc.ErrCorrupt) {
		t.Error(err)
	}
}

func TestContentType(t *testing.T) {
	w := newFileWorld(t)
	for in, want := range map[string]string{
		"":                                  "application/octet-stream",
		"text/plain":                        "text/plain",
		"Text/HTML; Charset=UTF-8":          "text/html; charset=UTF-8",
		"text":                              "application/octet-stream",
		"text/plain; charset":               "application/octet-stream",
		"a/b\r\nX: y":                       "application/octet-stream",
		"image/" + strings.Repeat("x", 300): "application/octet-stream",
		`text/plain; name="a \"b\".x"`:      `text/plain; name="a \"b\".x"`,
	} {
		f, err := w.upload(formsvc.FileInput{ContentType: in, Content: strings.NewReader("")})
		if err != nil || f.ContentType != want {
			t.Errorf("%q: got %q, %v; want %q", in, f.ContentType, err, want)
		}
	}
}
