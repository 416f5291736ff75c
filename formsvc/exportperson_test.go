package formsvc_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
)

// archive returns the texts of the files of an archive by their names.
func archive(t *testing.T, b []byte) map[string]string {
	t.Helper()
	r := must(zip.NewReader(bytes.NewReader(b), int64(len(b))))
	texts := make(map[string]string)
	for _, f := range r.File {
		from := must(f.Open())
		text, err := io.ReadAll(from)
		if err != nil {
			t.Fatal(f.Name, err)
		}
		texts[f.Name] = string(text)
	}
	return texts
}

// An export has what an erasure would remove, and nothing of others.
func TestExportPerson(t *testing.T) {
	g := newGuestbook(t)
	own := g.by(&g.campaigns[0], eve) // which eve signs herself
	g.sign(&own, eve)
	taken := g.by(&g.campaigns[0], "carol@example.com") // the first event names another person
	g.updated(&taken, formsvc.ResponsePatch{Email: new(eve)})
	audited := len(g.trail())
	var out bytes.Buffer
	receipt, err := g.svc.Accounts.ExportPerson(g.ctx, g.account, strings.ToUpper(eve), &out)
	if err != nil || receipt.FinishedAt.IsZero() {
		t.Fatalf("%+v, %v", receipt, err)
	}
	want := counts{responses: g.want.responses + 2, files: g.want.files, signatures: g.want.signatures + 3 + 1, events: g.want.events + 4}
	equal(t, countsOf(&receipt), want, "exported %+v")
	texts := archive(t, out.Bytes())
	for name, n := range map[string]int{
		"responses": want.responses, "files": want.files, "comments": 3, "signatures": want.signatures, "events": want.events,
	} {
		text := texts[name+".ndjson"]
		equal(t, strings.Count(text, "\n"), n, "%s has\n%s\nwhich has %d lines", name, text)
		for line := range strings.Lines(text) {
			if !json.Valid([]byte(line)) {
				t.Errorf("%s has %s", name, line)
			}
		}
		for _, other := range g.others {
			if name != "events" && strings.Contains(text, `{"uuid":"`+string(other.ID)) {
				t.Errorf("%s has something of another person: %s", name, text)
			}
		}
	}
	if text := texts["comments.ndjson"]; !strings.Contains(strings.ToLower(text), "of "+eve) {
		t.Errorf("the comments are %s", text)
	}
	contents := 0
	for name, text := range texts {
		if strings.HasPrefix(name, "files/") && strings.EqualFold(text, "from "+eve) && strings.Contains(texts["files.ndjson"], name[len("files/"):]) {
			contents++
		}
	}
	if contents != want.files || len(texts) != 6+contents {
		t.Errorf("%d files have their content, want %d; the archive has %d entries", contents, want.files, len(texts))
	}
	if text := texts["receipt.json"]; !strings.Contains(text, string(receipt.ID)) || !strings.Contains(text, `"damagedFiles":[]`) {
		t.Errorf("the receipt is %s", text)
	}
	entries := g.trail()[audited:]
	if len(entries) != 2 || entries[0].Action != formsvc.AuditExportBegun || entries[1].Action != formsvc.AuditExportDone ||
		entries[1].Target != receipt.ID || entries[1].Details["responses"] != "5" || strings.Contains(strings.ToLower(entries[1].Details["email"]), eve) {
		t.Errorf("the audit trail has %+v", entries)
	}
}

// A damaged file doesn't keep the rest from its person, and is named.
func TestExportPersonWithDamagedFile(t *testing.T) {
	g := newGuestbook(t)
	key := g.shelf.keys(t)[0]
	wantError(t, g.shelf.Delete(g.ctx, key), nil)
	var out bytes.Buffer
	receipt, err := g.svc.Accounts.ExportPerson(g.ctx, g.account, eve, &out)
	if err != nil || receipt.BlobsLeft != 1 || receipt.Files != g.want.files {
		t.Fatalf("%+v, %v", receipt, err)
	}
	if text := archive(t, out.Bytes())["receipt.json"]; !strings.Contains(text, `"damagedFiles":["`+key[len(key)-36:]+`"]`) {
		t.Errorf("the receipt is %s, want the file of %s", text, key)
	}
}

// Wherever writing fails, the error is returned, and the audit trail has no end of the export.
func TestExportPersonFails(t *testing.T) {
	g := newGuestbook(t)
	var whole bytes.Buffer
	must(g.svc.Accounts.ExportPerson(g.ctx, g.account, eve, &whole))
	full := errors.New("the disk is full")
	for n := 0; n < whole.Len()-50; n += 97 { // buffers hide where writing fails exactly
		audited := len(g.trail())
		receipt, err := g.svc.Accounts.ExportPerson(g.ctx, g.account, eve, &limitedWriter{left: n, err: full})
		if !errors.Is(err, full) {
			t.Fatalf("after %d bytes: %+v, %v", n, receipt, err)
		}
		if entries := g.trail()[audited:]; len(entries) != 1 || entries[0].Action != formsvc.AuditExportBegun {
			t.Fatalf("after %d bytes the audit trail has %+v", n, entries)
		}
	}
	wantError(t, failure(g.svc.Accounts.ExportPerson(g.ctx, g.account, "eve", io.Discard)), formsvc.ErrInvalid)
	wantError(t, failure(g.svc.Accounts.ExportPerson(g.ctx, someID, eve, io.Discard)), formsvc.ErrNotFound)
	if receipt, err := g.svc.Accounts.ExportPerson(g.ctx, g.account, "nobody@example.com", io.Discard); err != nil || !receipt.IsZero() {
		t.Errorf("of nobody: %+v, %v", receipt, err)
	}
}

// A limitedWriter fails after some bytes.
type limitedWriter struct {
	left int
	err  error
}

func (w *limitedWriter) Write(p []byte) (int, error) {
	if w.left -= len(p); w.left < 0 {
		return 0, w.err
	}
	return len(p), nil
}
