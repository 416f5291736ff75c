package client

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"iter"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook"
)

// An Upload is a new file.
type Upload struct {
	Name        string
	ContentType string    // "" means application/octet-stream
	Module      string    // the question that it answers, or ""
	Content     io.Reader // only an io.Seeker too, such as an *os.File, can be sent again after a broken connection
}

// Files uploads, lists and downloads the files of responses.
type Files struct{ c *Client }

// All returns all files of a response, page after page. An error ends them.
func (s Files) All(ctx context.Context, campaign, id string, q *PageQuery, opts ...CallOption) iter.Seq2[webhook.File, error] {
	return all[webhook.File](ctx, s.c, response(campaign, id)+"/files", or(q).values(), opts)
}

// Upload adds a file to a response. It streams the content, and fails with [formsvc.ErrDigest] if other bytes arrived.
func (s Files) Upload(ctx context.Context, campaign, id string, in Upload, opts ...CallOption) (webhook.File, error) {
	k := s.c.newCall(http.MethodPost, response(campaign, id)+"/files", nil, opts)
	k.query = url.Values{}
	set(k.query, "module", in.Module)
	k.header["Content-Type"] = []string{cmp.Or(in.ContentType, "application/octet-stream")}
	k.header["Content-Disposition"] = []string{mime.FormatMediaType("attachment", map[string]string{"filename": in.Name})}
	var sum hash.Hash
	content, seeks := in.Content.(io.Seeker)
	start, size := int64(0), int64(-1)
	if seeks {
		if start, k.err = content.Seek(0, io.SeekCurrent); k.err == nil {
			size, k.err = content.Seek(0, io.SeekEnd)
			size -= start
		}
	}
	k.open = func() (_ io.Reader, _ int64, err error) {
		switch {
		case seeks:
			_, err = content.Seek(start, io.SeekStart)
		case sum != nil:
			err = errors.New("the content can't be sent again, since it is no io.Seeker")
		}
		sum = sha256.New()
		return io.TeeReader(in.Content, sum), size, err
	}
	f, err := send[webhook.File](ctx, s.c, k)
	if err == nil && f.SHA256 != hex.EncodeToString(sum.Sum(nil)) {
		err = fmt.Errorf("formsvc client: upload of %s: %w", f.UUID, formsvc.ErrDigest)
	}
	return f, err
}

// A Download is the content of a file. Read continues after broken connections, and ends with [formsvc.ErrCorrupt] if the
// content isn't what was uploaded. The caller must close it.
type Download struct {
	Name        string // given by the uploader: don't use it as a path
	ContentType string
	Size        int64

	*stream

	sum hash.Hash
	tag string
	at  int64
}

// Download opens a file. ctx ends the reading, too.
func (s Files) Download(ctx context.Context, id string, opts ...CallOption) (*Download, error) {
	got, err := s.c.newStream(ctx, s.c.newCall(http.MethodGet, "/v1/files"+segment(id), nil, opts))
	if err != nil {
		return nil, err
	}
	d := &Download{ContentType: got.header.Get("Content-Type"), stream: got, sum: sha256.New(), tag: got.header.Get("Etag")}
	_, names, _ := mime.ParseMediaType(got.header.Get("Content-Disposition"))
	d.Name = names["filename"]
	d.Size, err = strconv.ParseInt(got.header.Get("Content-Length"), 10, 64)
	return d, err
}

// Read implements io.Reader.
func (d *Download) Read(p []byte) (int, error) {
	for {
		n, err := d.body.Read(p)
		_, _ = d.sum.Write(p[:n])
		d.at += int64(n)
		switch {
		case n > 0 || err == nil:
			d.broken = 0
			return n, nil
		case d.at < d.Size:
			if err = d.resume(err); err != nil {
				return 0, err
			}
		case d.at > d.Size || hex.EncodeToString(d.sum.Sum(nil)) != strings.Trim(d.tag, `"`):
			return 0, fmt.Errorf("formsvc client: download: %w", formsvc.ErrCorrupt)
		default:
			return 0, io.EOF
		}
	}
}

// resume continues after the connection broke with err.
func (d *Download) resume(err error) error {
	d.call.header["Range"] = []string{fmt.Sprintf("bytes=%d-", d.at)}
	d.call.header["If-Match"] = []string{d.tag}
	if err = d.again(err); err == nil && d.status == http.StatusOK { // a proxy ignored the range
		_, err = io.CopyN(io.Discard, d.body, d.at)
	}
	return err
}
