package httpx

import (
	"archive/zip"
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path"
	"regexp"
	"strings"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/internal/people"
)

// Limits of an archive, whose list of files is in memory until its end.
const (
	maxArchived = 20_000 // files
	maxMissing  = 1_000  // files that are named as missing
)

// An archive is a ZIP file with the responses as a workbook and their files.
type archive struct {
	*zip.Writer

	call    *call
	files   int
	missing []string
	begun   bool // whether an entry isn't whole yet
}

// exportZIP sends the responses as a workbook, then their files.
func (h *Handler) exportZIP(c *call) error {
	return h.exportForPeople(c, typeZIP, ".zip", func(p *people.Request, chosen []string) exportFormat {
		return func(ctx context.Context, e *formsvc.Export, to *bufio.Writer) error {
			a := &archive{Writer: zip.NewWriter(to), call: c}
			table, err := a.CreateHeader(&zip.FileHeader{Name: "table.xlsx", Method: zip.Store, Modified: h.svc.Now()})
			if err == nil {
				err = h.writeWorkbook(ctx, e, table, p, chosen, archivePlaces)
			}
			if err != nil {
				return err
			}
			for r, err := range e.All(ctx) {
				if err == nil {
					err = a.addFiles(ctx, r)
				}
				if err != nil {
					return err
				}
			}
			return a.end()
		}
	})
}

// addFiles adds the files of a response.
func (a *archive) addFiles(ctx context.Context, r *formsvc.Response) error {
	h, place := a.call.h, archivePlaces(r)
	for f, err := range h.filesOf(ctx, r) {
		if err != nil {
			return err
		}
		name, why := place(f), fmt.Sprintf("the archive has %d files already; export fewer responses", h.archived)
		if a.files++; a.files <= h.archived {
			why = "the stored file " + string(f.ID) + " is damaged or missing"
			err = a.add(ctx, name, formsvc.FileKey{AccountID: f.AccountID, ID: f.ID})
			if err == nil || errors.Is(err, formsvc.ErrNotFound) { // deleted meanwhile
				continue
			}
			if a.begun || !errors.Is(err, formsvc.ErrCorrupt) {
				return err
			}
			h.logger.LogAttrs(ctx, slog.LevelError, "damaged file left out of an export", a.call.logged(slog.String("error", err.Error()))...)
		}
		switch n := len(a.missing); {
		case n < maxMissing:
			a.missing = append(a.missing, name+": "+why)
		case n == maxMissing:
			a.missing = append(a.missing, "and others")
		}
	}
	return nil
}

// end names the missing files and ends the archive.
func (a *archive) end() error {
	if len(a.missing) > 0 {
		to, err := a.Create("missing.txt")
		if err == nil {
			_, err = io.WriteString(to, "These files are not in the archive:\r\n\r\n"+strings.Join(a.missing, "\r\n")+"\r\n")
		}
		if err != nil {
			return err
		}
	}
	return a.Close()
}

// packedType matches types of content that is compressed already.
var packedType = regexp.MustCompile(`^(image/(jpeg|png|gif|webp|avif|hei[cf])|audio/(mpeg|mp4|ogg|aac)|video/|application/(zip|gzip|pdf|x-7z|vnd\.(openxml|oasis)))`)

// add adds a file. A large one is read twice, since damage must be found before the entry begins.
func (a *archive) add(ctx context.Context, name string, key formsvc.FileKey) error {
	h := a.call.h
	f, err := h.svc.Files.Get(ctx, key)
	if err != nil {
		return err
	}
	a.call.slot.Release() // the blob store may take long; the next write or page acquires one
	for _, verify := range []bool{true, false} {
		if verify && f.Size <= formsvc.BlockSize {
			continue
		}
		content, err := h.svc.Files.Open(ctx, &f, 0, -1)
		if err != nil {
			return err
		}
		if verify {
			_, err = io.Copy(io.Discard, content)
		} else {
			err = a.copy(name, &f, bufio.NewReader(content))
		}
		if err = errors.Join(err, content.Close()); err != nil {
			return err
		}
	}
	return nil
}

func (a *archive) copy(name string, f *formsvc.File, content *bufio.Reader) error {
	if _, err := content.Peek(1); err != nil && !errors.Is(err, io.EOF) { // the first block is verified
		return err
	}
	header := zip.FileHeader{Name: name, Method: zip.Deflate, Modified: f.CreatedAt}
	if packedType.MatchString(f.ContentType) {
		header.Method = zip.Store
	}
	a.begun = true
	to, err := a.CreateHeader(&header)
	if err == nil {
		_, err = io.Copy(to, content)
	}
	a.begun = err != nil
	return err
}

// A filePlace returns the address of a file in a table. It is called once for each file of a response, in their order.
type filePlace func(*formsvc.File) string

// unsafeName matches what Windows doesn't take in the name of a file.
var unsafeName = regexp.MustCompile(`(?i)[<>:"/\\|?*[:cntrl:]]|[. ]+$|^(con|prn|aux|nul|com\d|lpt\d)(\.|$)`)

// archivePlaces returns the paths of a response's files in an archive. Each is another one, also where case doesn't count.
func archivePlaces(r *formsvc.Response) filePlace {
	folder := unsafeName.ReplaceAllString(r.Reference, "_$1$2")
	if folder != r.Reference { // another reference may become the same
		folder += " " + string(r.ID)
	}
	taken := map[string]int{}
	return func(f *formsvc.File) string {
		name := unsafeName.ReplaceAllString(f.Name, "_$1$2")
		base, ext := strings.TrimSuffix(name, path.Ext(name)), path.Ext(name)
		first := strings.ToLower(name)
		for n := taken[first]; taken[strings.ToLower(name)] > 0; {
			n++
			taken[first] = n
			name = fmt.Sprintf("%s (%d)%s", strings.ToValidUTF8(base[:min(len(base), 180)], ""), n, ext)
		}
		taken[strings.ToLower(name)]++
		return "files/" + folder + "/" + name
	}
}
