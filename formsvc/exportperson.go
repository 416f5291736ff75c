package formsvc

import (
	"archive/zip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// Export writes the data of the person with that e-mail address as a ZIP archive: the records that
// [Erasure.Person] would remove from the account. Each of responses.ndjson, comments.ndjson,
// signatures.ndjson, files.ndjson and events.ndjson has a record in a line, as the API and webhooks
// show it. The folder files has the content of each file under its identifier. receipt.json, the
// last one, has the counts and the identifiers of damaged files, whose content is missing or ends
// early.
//
// A page of records is in memory at once, and of each response its identifier. Records submitted
// during the call may be missing. The audit trail gets an entry before and one after, without
// personal data. The [Receipt] counts what was written, and in BlobsLeft the damaged files. If
// Export fails midway, the archive can't be used. It fails as Person does.
func (e Erasure) Export(ctx context.Context, account ID, email string, out io.Writer) (Receipt, error) {
	p, err := e.person(ctx, account, email)
	if err != nil {
		return Receipt{}, fmt.Errorf("formsvc: export a person: %w", err)
	}
	x := &personExport{person: p, eraser: e.eraser(account), zip: zip.NewWriter(out), own: make(map[ID]bool), damaged: []ID{}}
	if err := x.write(ctx); err != nil {
		return x.receipt, fmt.Errorf("formsvc: export a person: %w", err)
	}
	return x.receipt, nil
}

// personExport writes the archive of one person.
type personExport struct {
	person  *person
	*eraser // for its receipt; nothing is erased
	zip     *zip.Writer
	keys    []ResponseKey // the person's responses, and own has their identifiers
	own     map[ID]bool
	damaged []ID
}

func (x *personExport) write(ctx context.Context) error {
	if err := x.note(ctx, AuditExportBegun, x.receipt.ID, nil); err != nil {
		return err
	}
	for _, part := range []struct {
		name  string
		write func(context.Context, *lines) error
	}{
		{"responses", x.responses}, {"comments", x.comments}, {"signatures", x.signatures}, {"files", x.files}, {"events", x.events},
	} {
		to, err := x.create(part.name+".ndjson", zip.Deflate, x.receipt.StartedAt)
		if err != nil {
			return err
		}
		if err := part.write(ctx, &lines{to: to}); err != nil {
			return err
		}
	}
	if err := x.contents(ctx); err != nil {
		return err
	}
	if err := x.finish(); err != nil {
		return err
	}
	return x.note(ctx, AuditExportDone, x.receipt.ID, x.receipt.counts())
}

func (x *personExport) create(name string, method uint16, at time.Time) (io.Writer, error) {
	return x.zip.CreateHeader(&zip.FileHeader{Name: name, Method: method, Modified: at})
}

// lines writes JSON values, each in a line.
type lines struct {
	to  io.Writer
	buf []byte
}

func (l *lines) write(appendJSON func([]byte) []byte) error {
	l.buf = append(appendJSON(l.buf[:0]), '\n')
	_, err := l.to.Write(l.buf)
	return err
}

func (x *personExport) responses(ctx context.Context, to *lines) error {
	return x.person.responses(ctx, func(_ context.Context, r *Response) error {
		x.keys = append(x.keys, r.Key())
		x.own[r.ID] = true
		x.receipt.Responses++
		return to.write(r.AppendJSON)
	})
}

// ofEach calls do for the records of each of the person's responses, which may be deleted meanwhile.
func ofEach[T any](
	x *personExport, fetch func(ResponseKey, PageQuery) (Page[T], error), id func(*T) ID, do func(*T) error,
) error {
	for _, key := range x.keys {
		err := eachOf(func(q PageQuery) (Page[T], error) { return fetch(key, q) }, id, do)
		if ignoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

func (x *personExport) comments(ctx context.Context, to *lines) error {
	return ofEach(x, func(key ResponseKey, q PageQuery) (Page[Comment], error) {
		return x.store.Comments(ctx, CommentQuery{AccountID: key.AccountID, CampaignID: key.CampaignID, ResponseID: key.ID, Page: q})
	}, func(c *Comment) ID { return c.ID }, func(c *Comment) error { return to.write(c.AppendJSON) })
}

// signatures writes those of the person's responses, by anybody, and the person's of other responses.
func (x *personExport) signatures(ctx context.Context, to *lines) error {
	write := func(sig *Signature) error {
		x.receipt.Signatures++
		return to.write(sig.AppendJSON)
	}
	err := ofEach(x, func(key ResponseKey, q PageQuery) (Page[Signature], error) {
		return x.store.Signatures(ctx, SignatureQuery{AccountID: key.AccountID, CampaignID: key.CampaignID, ResponseID: key.ID, Page: q})
	}, func(sig *Signature) ID { return sig.ID }, write)
	if err != nil {
		return err
	}
	return x.person.signatures(ctx, func(sig *Signature) error {
		if x.own[sig.ResponseID] {
			return nil
		}
		return write(sig)
	})
}

func (x *personExport) files(ctx context.Context, to *lines) error {
	return x.eachFile(ctx, func(f *File) error {
		x.receipt.Files++
		return to.write(f.AppendJSON)
	})
}

func (x *personExport) eachFile(ctx context.Context, do func(*File) error) error {
	return ofEach(x, func(key ResponseKey, q PageQuery) (Page[File], error) {
		return x.store.Files(ctx, FileQuery{AccountID: key.AccountID, CampaignID: key.CampaignID, ResponseID: key.ID, Page: q})
	}, func(f *File) ID { return f.ID }, do)
}

// contents writes the bytes of the files as they are: most kinds of files are compressed already.
func (x *personExport) contents(ctx context.Context) error {
	return x.eachFile(ctx, func(listed *File) error {
		f, err := x.store.File(ctx, FileKey{AccountID: listed.AccountID, ID: listed.ID})
		if err != nil {
			return ignoreNotFound(err)
		}
		to, err := x.create("files/"+string(f.ID), zip.Store, f.CreatedAt)
		if err != nil {
			return err
		}
		from, err := Files{x.core}.Open(ctx, &f, 0, -1)
		if err == nil {
			_, err = io.Copy(to, from)
			err = errors.Join(err, from.Close())
		}
		if errors.Is(err, ErrCorrupt) {
			x.damaged = append(x.damaged, f.ID)
			x.receipt.BlobsLeft++
			return nil
		}
		return err
	})
}

// events writes those about the person's responses and those that name the person.
func (x *personExport) events(ctx context.Context, to *lines) error {
	return x.person.allEvents(ctx, func(event *Event) error {
		if !x.own[event.ResponseID] && !x.person.named(event.Payload) {
			return nil
		}
		x.receipt.Events++
		return to.write(func(b []byte) []byte { return append(b, event.Payload...) })
	})
}

// finish adds the receipt and ends the archive.
func (x *personExport) finish() error {
	r := &x.receipt
	r.FinishedAt = x.now()
	to, err := x.create("receipt.json", zip.Deflate, r.StartedAt)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(to).Encode(map[string]any{
		"receipt": r.ID, "accountUuid": r.AccountID, "startedAt": r.StartedAt, "finishedAt": r.FinishedAt, "responses": r.Responses,
		"signatures": r.Signatures, "files": r.Files, "events": r.Events, "damagedFiles": x.damaged,
	}); err != nil {
		return err
	}
	return x.zip.Close()
}
