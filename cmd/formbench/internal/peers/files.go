package peers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path/filepath"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/files"
	"github.com/formsvc/toolkit/cmd/formbench/internal/pocketbase"
	"github.com/formsvc/toolkit/cmd/formbench/internal/result"
)

// uploads measures a large file: ours as it is and as a form, and PocketBase's as a
// form, since it takes no other.
func (p *runner) uploads(ctx context.Context, round int) error {
	f, err := files.NewRunner(p.Bench)
	if err != nil {
		return err
	}
	cells := []result.Key{{What: bench.UploadWhat, System: bench.APISystem}, {What: bench.FormWhat, System: bench.APISystem}, {What: bench.FormWhat, System: bench.PocketSystem}}
	for _, key := range bench.Rotated(cells, round) {
		key.Part, key.Store = bench.PeerFilesPart, bench.DiskPlace
		c := result.Cell{Key: key, Round: round + 1}
		if err := p.uploadCell(ctx, f, &c); err != nil {
			return fmt.Errorf("%s: %w", &c, err)
		}
		f.Done(&c)
	}
	return f.Compare(bench.PocketSystem)
}

func (p *runner) uploadCell(ctx context.Context, f *files.Runner, c *result.Cell) (err error) {
	var s *files.Scene
	if c.System == bench.PocketSystem {
		s, err = p.pocketFiles(ctx, f, c)
	} else {
		s, err = f.NewScene(ctx, c)
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err != nil {
		return err
	}
	return s.One(ctx, f.FileLarge)
}

// pocketFiles returns a scene with PocketBase. Unless it is nil it has to be closed,
// also when this fails.
func (p *runner) pocketFiles(ctx context.Context, f *files.Runner, c *result.Cell) (*files.Scene, error) {
	peer, err := p.newPocket(ctx)
	if err != nil {
		return nil, err
	}
	s := f.PeerScene(c, peer.dir, &pocketFileScene{peer})
	s.Server, err = p.startPocket(ctx, c, peer.dir)
	return s, err
}

// A pocketFileScene is a directory of PocketBase that gets files.
type pocketFileScene struct{ *pocketScene }

// Holds fails unless as many files are there as were acknowledged, as records and
// in the directory.
func (s *pocketFileScene) Holds(ctx context.Context, stored int) error {
	if err := s.holds(ctx, stored, pocketbase.Files); err != nil {
		return err
	}
	files := 0
	err := filepath.WalkDir(filepath.Join(s.dir, "storage"), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() && filepath.Ext(path) != ".attrs" { // beside each file
			files++
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // it is made for the first file
	}
	if err == nil && files != stored {
		err = fmt.Errorf("PocketBase acknowledged %d files and has %d", stored, files)
	}
	return err
}

// A pocketCourier is a client of PocketBase.
type pocketCourier struct{ *files.Conn }

// NewMover implements files.Peer.
func (s *pocketFileScene) NewMover(ctx context.Context, addr string, bytes int64) (files.Mover, error) {
	conn, err := files.Dial(ctx, addr, bytes)
	if err != nil {
		return nil, err
	}
	return &pocketCourier{conn}, nil
}

// Upload returns the path of the file.
func (c *pocketCourier) Upload(_ context.Context, what *files.Content) (string, error) {
	head := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: formbench\r\nAccept: application/json\r\n"+
		"Content-Type: multipart/form-data; boundary=%s\r\nContent-Length: %d\r\n\r\n%s",
		recordsPath(pocketbase.Files), files.FormBoundary, int64(len(files.FormBegin))+what.Size+int64(len(files.FormEnd)), files.FormBegin)
	body, err := c.Send(head, what, files.FormEnd, http.StatusOK)
	if err != nil {
		return "", err
	}
	var got struct{ ID, File string }
	if err := json.Unmarshal(body, &got); err != nil {
		return "", fmt.Errorf("upload: %w", err)
	}
	if got.ID == "" || got.File == "" {
		return "", fmt.Errorf("upload: answered %.300s", body)
	}
	return got.ID + "/" + got.File, nil
}

func (c *pocketCourier) Download(_ context.Context, id string, w io.Writer) (int64, error) {
	return c.Fetch(pocketRequest(http.MethodGet, "/api/files/"+pocketbase.Files+"/"+id, "", nil), w)
}
