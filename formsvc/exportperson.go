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

// ExportPerson writes the data of the person with that e-mail address as a ZIP archive: the records that
// [Accounts.ErasePerson] would remove, except the events of what a former member did, which are about others. Each of responses.ndjson, comments.ndjson, signatures.ndjson, files.ndjson and
// events.ndjson has a record in a line, as the API and webhooks show it; people.ndjson has the person as a former member. The folder files has the content of each file
// under its identifier. receipt.json, the last one, has the counts and the identifiers of damaged files, whose content
// is missing or ends early.
//
// A page of records is in memory at once, and of each response and signature its identifier. Records
// submitted during the call may be missing. The audit trail gets an entry before and one after,
// without personal data. The [Receipt] counts what was written, and in BlobsLeft the damaged files. If
// ExportPerson fails midway, the archive can't be used. It fails as ErasePerson does.
func (a Accounts) ExportPerson(ctx context.Context, account ID, email string, out io.Writer) (_ Receipt, err error) {
	defer wrap(&err, "export a person")
	w, err := a.s.person(ctx, account, email)
	if err != nil {
		return Receipt{}, err
	}
	x := &personExport{erasure: w, zip: zip.NewWriter(out), damaged: []ID{}}
	err = x.write(ctx)
	return x.receipt, err
}

// personExport writes the archive of one person.
type personExport struct {
	*erasure // for its lists and its receipt; nothing is erased

	zip     *zip.Writer
	keys    []ResponseKey // the person's responses
	damaged []ID
	err     error // the first one; nothing is written after it
}

func (x *personExport) write(ctx context.Context) error {
	if err := x.note(ctx, AuditExportBegun, x.receipt.ID, nil); err != nil {
		return err
	}
	var comments int // a receipt doesn't count them
	part(x, "responses", &x.receipt.Responses, func(r *Response) bool {
		x.keys, x.own[r.ID] = append(x.keys, r.Key()), true
		return true
	}, x.responses(ctx))
	part(x, "comments", &comments, nil, ofEach(ctx, x, x.store.Comments))
	signed := make(map[ID]bool) // by anybody to a response of the person, and by the person to any
	part(x, "signatures", &x.receipt.Signatures, func(sig *Signature) bool {
		known := signed[sig.ID]
		signed[sig.ID] = true
		return !known
	}, ofEach(ctx, x, x.store.Signatures), x.signatures(ctx))
	part(x, "files", &x.receipt.Files, nil, ofEach(ctx, x, x.store.Files))
	part(x, "events", &x.receipt.Events, nil, x.events(ctx))
	if x.err == nil {
		x.err = x.people(ctx)
	}
	for f, err := range ofEach(ctx, x, x.store.Files) {
		if x.err == nil {
			x.err = err
		}
		if x.err != nil {
			break
		}
		x.err = x.content(ctx, f)
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

// part adds a file with a line for each record of the lists, and counts them. keep chooses records; nil means all.
func part[T interface{ AppendJSON([]byte) []byte }](
	x *personExport, name string, count *int, keep func(T) bool, lists ...iter.Seq2[T, error],
) {
	var to io.Writer
	if x.err == nil {
		to, x.err = x.create(name+".ndjson", zip.Deflate, x.receipt.StartedAt)
	}
	var line []byte
	for _, list := range lists {
		if x.err != nil {
			return
		}
		for record, err := range list {
			if err == nil && keep != nil && !keep(record) {
				continue
			}
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
}

// people adds the person as a former member, if there is one.
func (x *personExport) people(ctx context.Context) error {
	list, err := x.store.Members(ctx, MemberQuery{AccountID: x.receipt.AccountID, Email: x.email, Removed: true})
	if err != nil || len(list) == 0 {
		return err
	}
	to, err := x.create("people.ndjson", zip.Deflate, x.receipt.StartedAt)
	for i := 0; i < len(list) && err == nil; i++ {
		m := &list[i]
		err = json.NewEncoder(to).Encode(map[string]any{
			"uuid": m.ID, "email": m.Email, "name": m.Name, "role": m.Role, "createdAt": m.CreatedAt, "signedInAt": m.SignedInAt, "removedAt": m.RemovedAt,
		})
	}
	return err
}

// ofEach yields the records of each of the person's responses, which may be deleted meanwhile.
func ofEach[T any, P interface {
	*T
	id() ID
}](ctx context.Context, x *personExport, list func(context.Context, ResponseKey, PageQuery) (Page[T], error)) iter.Seq2[P, error] {
	return func(yield func(P, error) bool) {
		for _, key := range x.keys {
			of := All[T, P](erasePages(), func(page PageQuery) (Page[T], error) { return list(ctx, key, page) })
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

// content writes the bytes of a file as they are: most kinds of files are compressed already.
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
