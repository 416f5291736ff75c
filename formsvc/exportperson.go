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
	p, err := e.person(ctx, account, email, nil)
	if err != nil {
		return Receipt{}, fmt.Errorf("formsvc: export a person: %w", err)
	}
	x := &personExport{p: p, zip: zip.NewWriter(out), own: make(map[ID]bool), damaged: []ID{}}
	if err := x.write(ctx); err != nil {
		return p.receipt, fmt.Errorf("formsvc: export a person: %w", err)
	}
	return p.receipt, nil
}

// personExport writes the archive of one person.
type personExport struct {
	p       *person
	zip     *zip.Writer
	keys    []ResponseKey // the person's responses, and own has their identifiers
	own     map[ID]bool
	damaged []ID
}

func (x *personExport) write(ctx context.Context) error {
	p := x.p
	if err := p.note(ctx, AuditExportBegun, p.receipt.ID, nil); err != nil {
		return err
	}
	for _, part := range []struct {
		name  string
		write func(context.Context, *lines) error
	}{
		{"responses", x.responses}, {"comments", x.comments}, {"signatures", x.signatures}, {"files", x.files}, {"events", x.events},
	} {
		to, err := x.create(part.name+".ndjson", zip.Deflate, p.receipt.StartedAt)
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
	return p.note(ctx, AuditExportDone, p.receipt.ID, p.receipt.counts())
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

// eachOf calls do for all records that fetch finds, oldest first.
func eachOf[T any](fetch func(PageQuery) (Page[T], error), id func(*T) ID, do func(*T) error) error {
	q := PageQuery{Limit: eraseUnit, Ascending: true, MaxBytes: eraseBytes}
	for {
		page, err := fetch(q)
		if err != nil {
			return err
		}
		for i := range page.Items {
			if err := do(&page.Items[i]); err != nil {
				return err
			}
		}
		if !page.More || len(page.Items) == 0 {
			return nil
		}
		q.After = id(&page.Items[len(page.Items)-1])
	}
}

func (x *personExport) responses(ctx context.Context, to *lines) error {
	account := x.p.receipt.AccountID
	campaigns := func(q PageQuery) (Page[Campaign], error) {
		return x.p.store.Campaigns(ctx, CampaignQuery{AccountID: account, Page: q})
	}
	return eachOf(campaigns, func(c *Campaign) ID { return c.ID }, func(c *Campaign) error {
		theirs := ResponseQuery{
			AccountID: account, CampaignID: c.ID, Filter: ResponseFilter{Email: x.p.email, AnyCase: true}, NoTotal: true,
		}
		responses := func(q PageQuery) (Page[Response], error) {
			theirs.Page = q
			return x.p.store.Responses(ctx, theirs)
		}
		return eachOf(responses, func(r *Response) ID { return r.ID }, func(r *Response) error {
			x.keys = append(x.keys, r.Key())
			x.own[r.ID] = true
			x.p.receipt.Responses++
			return to.write(r.AppendJSON)
		})
	})
}

func (x *personExport) comments(ctx context.Context, to *lines) error {
	for _, key := range x.keys {
		comments := func(q PageQuery) (Page[Comment], error) {
			return x.p.store.Comments(ctx, CommentQuery{AccountID: key.AccountID, CampaignID: key.CampaignID, ResponseID: key.ID, Page: q})
		}
		err := eachOf(comments, func(c *Comment) ID { return c.ID }, func(c *Comment) error {
			x.p.receipt.Comments++
			return to.write(c.AppendJSON)
		})
		if ignoreNotFound(err) != nil { // the response may be deleted meanwhile
			return err
		}
	}
	return nil
}

// signatures writes those of the person's responses, by anybody, and the person's of other responses.
func (x *personExport) signatures(ctx context.Context, to *lines) error {
	write := func(sig *Signature) error {
		x.p.receipt.Signatures++
		return to.write(sig.AppendJSON)
	}
	id := func(sig *Signature) ID { return sig.ID }
	for _, key := range x.keys {
		of := SignatureQuery{AccountID: key.AccountID, CampaignID: key.CampaignID, ResponseID: key.ID}
		if err := eachOf(x.fetchSignatures(ctx, of), id, write); ignoreNotFound(err) != nil {
			return err
		}
	}
	by := SignatureQuery{AccountID: x.p.receipt.AccountID, Email: x.p.email}
	return eachOf(x.fetchSignatures(ctx, by), id, func(sig *Signature) error {
		if x.own[sig.ResponseID] {
			return nil
		}
		return write(sig)
	})
}

func (x *personExport) fetchSignatures(ctx context.Context, of SignatureQuery) func(PageQuery) (Page[Signature], error) {
	return func(q PageQuery) (Page[Signature], error) {
		of.Page = q
		return x.p.store.Signatures(ctx, of)
	}
}

func (x *personExport) files(ctx context.Context, to *lines) error {
	return x.eachFile(ctx, func(f *File) error {
		x.p.receipt.Files++
		return to.write(f.AppendJSON)
	})
}

func (x *personExport) eachFile(ctx context.Context, do func(*File) error) error {
	for _, key := range x.keys {
		files := func(q PageQuery) (Page[File], error) {
			return x.p.store.Files(ctx, FileQuery{AccountID: key.AccountID, CampaignID: key.CampaignID, ResponseID: key.ID, Page: q})
		}
		if err := eachOf(files, func(f *File) ID { return f.ID }, do); ignoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// contents writes the bytes of the files as they are: most kinds of files are compressed already.
func (x *personExport) contents(ctx context.Context) error {
	return x.eachFile(ctx, func(listed *File) error {
		f, err := x.p.store.File(ctx, FileKey{AccountID: listed.AccountID, ID: listed.ID})
		if err != nil {
			return ignoreNotFound(err)
		}
		to, err := x.create("files/"+string(f.ID), zip.Store, f.CreatedAt)
		if err != nil {
			return err
		}
		from, err := Files{x.p.core}.Open(ctx, &f, 0, -1)
		if err == nil {
			_, err = io.Copy(to, from)
			err = errors.Join(err, from.Close())
		}
		if errors.Is(err, ErrCorrupt) {
			x.damaged = append(x.damaged, f.ID)
			x.p.receipt.BlobsLeft++
			return nil
		}
		return err
	})
}

// events writes those about the person's responses and those that name the person.
func (x *personExport) events(ctx context.Context, to *lines) error {
	q := EventQuery{AccountID: x.p.receipt.AccountID, Limit: MaxLimit, Early: true}.Clamped()
	for {
		page, err := x.p.store.Events(ctx, q)
		if err != nil {
			return err
		}
		for i := range page.Items {
			event := &page.Items[i]
			if !x.own[event.ResponseID] && !x.p.named(event.Payload) {
				continue
			}
			x.p.receipt.Events++
			if err := to.write(func(b []byte) []byte { return append(b, event.Payload...) }); err != nil {
				return err
			}
		}
		if !page.More {
			return nil
		}
		q.After = page.Next
	}
}

// finish adds the receipt and ends the archive.
func (x *personExport) finish() error {
	r := &x.p.receipt
	r.FinishedAt = x.p.now()
	to, err := x.create("receipt.json", zip.Deflate, r.StartedAt)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(to).Encode(map[string]any{
		"receipt": r.ID, "accountUuid": r.AccountID, "startedAt": r.StartedAt, "finishedAt": r.FinishedAt, "responses": r.Responses,
		"comments": r.Comments, "signatures": r.Signatures, "files": r.Files, "events": r.Events, "damagedFiles": x.damaged,
	}); err != nil {
		return err
	}
	return x.zip.Close()
}
