package formsvc

import (
	"archive/zip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
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
func (e Erasure) Export(ctx context.Context, account ID, email string, out io.Writer) (_ Receipt, err error) {
	defer wrap(&err, "export a person")
	p, err := e.person(ctx, account, email)
	if err != nil {
		return Receipt{}, err
	}
	x := &personExport{person: p, eraser: e.eraser(account), zip: zip.NewWriter(out), own: make(map[ID]bool), damaged: []ID{}}
	err = x.write(ctx)
	return x.receipt, err
}

// personExport writes the archive of one person.
type personExport struct {
	person  *person
	*eraser // for its receipt; nothing is erased
	zip     *zip.Writer
	keys    []ResponseKey // the person's responses, and own has their identifiers
	own     map[ID]bool
	damaged []ID
	err     error // the first one; nothing is written after it
}

func (x *personExport) write(ctx context.Context) error {
	if err := x.note(ctx, AuditExportBegun, x.receipt.ID, nil); err != nil {
		return err
	}
	var comments int // a receipt doesn't count them
	part(x, "responses", x.responses(ctx), &x.receipt.Responses)
	part(x, "comments", ofEach(ctx, x, x.store.Comments), &comments)
	part(x, "signatures", x.signatures(ctx), &x.receipt.Signatures)
	part(x, "files", ofEach(ctx, x, x.store.Files), &x.receipt.Files)
	part(x, "events", x.events(ctx), &x.receipt.Events)
	if x.err == nil {
		x.err = x.contents(ctx)
	}
	if x.err == nil {
		x.err = x.finish()
	}
	if x.err == nil {
		x.err = x.note(ctx, AuditExportDone, x.receipt.ID, x.receipt.counts())
	}
	return x.err
}

func (x *personExport) create(name string, method uint16, at time.Time) (io.Writer, error) {
	return x.zip.CreateHeader(&zip.FileHeader{Name: name, Method: method, Modified: at})
}

// part adds a file with each record in a line, and counts them.
func part[T interface{ AppendJSON([]byte) []byte }](x *personExport, name string, list iter.Seq2[T, error], count *int) {
	if x.err != nil {
		return
	}
	var (
		to   io.Writer
		line []byte
	)
	if to, x.err = x.create(name+".ndjson", zip.Deflate, x.receipt.StartedAt); x.err != nil {
		return
	}
	for record, err := range list {
		if err == nil {
			line = append(record.AppendJSON(line[:0]), '\n')
			_, err = to.Write(line)
		}
		if err != nil {
			x.err = err
			return
		}
		*count++
	}
}

// responses yields the person's responses, and keeps their keys for the other records.
func (x *personExport) responses(ctx context.Context) iter.Seq2[*Response, error] {
	return func(yield func(*Response, error) bool) {
		for r, err := range x.person.responses(ctx) {
			if err == nil {
				x.keys, x.own[r.ID] = append(x.keys, r.Key()), true
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// ofEach yields the records of each of the person's responses, which may be deleted meanwhile.
func ofEach[T any, P interface {
	*T
	id() ID
}](ctx context.Context, x *personExport, list func(context.Context, ResponseKey, PageQuery) (Page[T], error)) iter.Seq2[P, error] {
	return func(yield func(P, error) bool) {
		for _, key := range x.keys {
			of := records[T, P](erasePages(), func(page PageQuery) (Page[T], error) { return list(ctx, key, page) })
			for record, err := range of {
				if errors.Is(err, ErrNotFound) {
					break
				}
				if !yield(record, err) {
					return
				}
			}
		}
	}
}

// signatures yields those of the person's responses, by anybody, and the person's of other responses.
func (x *personExport) signatures(ctx context.Context) iter.Seq2[*Signature, error] {
	own := ofEach(ctx, x, x.store.Signatures)
	return func(yield func(*Signature, error) bool) {
		for sig, err := range own {
			if !yield(sig, err) {
				return
			}
		}
		for sig, err := range x.person.signatures(ctx) {
			if err == nil && x.own[sig.ResponseID] {
				continue
			}
			if !yield(sig, err) {
				return
			}
		}
	}
}

// events yields those about the person's responses and those that name the person.
func (x *personExport) events(ctx context.Context) iter.Seq2[*Event, error] {
	return func(yield func(*Event, error) bool) {
		for event, err := range x.person.events(ctx) {
			if err == nil && !x.own[event.ResponseID] && !x.person.named(event.Payload) {
				continue
			}
			if !yield(event, err) {
				return
			}
		}
	}
}

// contents writes the bytes of the files as they are: most kinds of files are compressed already.
func (x *personExport) contents(ctx context.Context) error {
	for listed, err := range ofEach(ctx, x, x.store.Files) {
		if err == nil {
			err = x.content(ctx, listed)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (x *personExport) content(ctx context.Context, listed *File) error {
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
