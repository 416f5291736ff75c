package httpx

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/internal/people"
)

// peopleHeaders are the headers of the fixed columns for people. The others aren't written.
var peopleHeaders = map[string]string{ //nolint:gochecknoglobals // immutable
	"reference": "Reference", "status": "Status", "firstName": "First name", "lastName": "Last name", "email": "E-mail", "createdAt": "Submitted", "completedAt": "Completed",
}

// A peopleTable writes a table for people.
type peopleTable struct {
	*people.Export

	h       *Handler
	modules map[string]*formsvc.Module
	names   []string // of columns, as [table] has them
	files   []string // questions for files, then "" for other files
}

// csvForPeople returns the format of a table for people, with the chosen columns and files, or with all if there are none. It begins with
// a byte order mark, without which Excel takes UTF-8 for another encoding.
func (h *Handler) csvForPeople(p *people.Export, chosen []string) exportFormat {
	return func(ctx context.Context, e *formsvc.Export, to *bufio.Writer) error {
		t := &peopleTable{Export: p, h: h, modules: modulesByName(e.Modules()), names: chosen}
		if len(chosen) == 0 {
			names, err := columnsOf(ctx, e)
			if err != nil {
				return err
			}
			t.names = []string{"reference", "status"}
			for _, name := range names {
				t.names = append(t.names, answerPrefix+name)
			}
			t.names = append(t.names, "firstName", "lastName", "email", "createdAt", "completedAt")
		}
		for _, m := range e.Modules() {
			if m.Type == formsvc.FileModule {
				t.files = append(t.files, m.Name)
			}
		}
		t.files = append(t.files, "")
		_, _ = to.WriteString("\ufeff") // an error remains
		record := appendRecord(nil, t.header())
		_, _ = to.Write(record)
		for r, err := range e.All(ctx) {
			var cells []string
			if err == nil {
				cells, err = t.cells(ctx, r)
			}
			if err == nil {
				record = appendRecord(record[:0], cells)
				_, err = to.Write(record)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
}

func (t *peopleTable) header() (labels []string) {
	label := func(name string) string {
		if m := t.modules[name]; m != nil {
			name = cmp.Or(m.Label, name)
		}
		return defused(name)
	}
	for _, name := range t.names {
		fixed, ok := peopleHeaders[name]
		switch {
		case !ok:
			fixed = label(strings.TrimPrefix(name, answerPrefix))
		case strings.HasSuffix(name, "At"):
			fixed += " (" + t.Zone.String() + ")"
		}
		labels = append(labels, fixed)
	}
	for _, name := range t.files[:len(t.files)-1] {
		labels = append(labels, label(name))
	}
	return append(labels, "Other files")
}

func (t *peopleTable) cells(ctx context.Context, r *formsvc.Response) (cells []string, err error) {
	answers := map[string]string{
		"reference": defused(r.Reference), "status": defused(r.Status), "firstName": defused(r.User.FirstName), "lastName": defused(r.User.LastName),
		"email": defused(r.User.Email), "createdAt": t.time(r.CreatedAt), "completedAt": t.time(r.CompletedAt),
	}
	err = r.Answers.Each(func(name string, values []string) error {
		m := t.modules[name]
		shown := make([]string, len(values))
		for i, value := range values {
			shown[i] = m.Shown(value)
		}
		answers[answerPrefix+name] = answerCell(m, shown)
		return nil
	})
	for _, name := range t.names {
		cells = append(cells, answers[name])
	}
	if err != nil {
		return nil, err
	}
	list, err := t.h.svc.Files.List(ctx, r.Key(), formsvc.PageQuery{Limit: formsvc.MaxLimit, Ascending: true})
	if err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, formsvc.ErrNotFound) { // deleted meanwhile
		return nil, err
	}
	links := make([]string, len(t.files))
	for i := range list.Items {
		f := &list.Items[i]
		at := slices.Index(t.files, f.Module)
		if at < 0 {
			at = len(links) - 1
		}
		links[at] = strings.TrimPrefix(links[at]+"\n"+t.Files+string(f.ID), "\n")
	}
	return append(cells, links...), nil
}

func (t *peopleTable) time(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.In(t.Zone).Format("2006-01-02 15:04")
}

func modulesByName(list []formsvc.Module) map[string]*formsvc.Module {
	modules := make(map[string]*formsvc.Module, len(list))
	for i := range list {
		modules[list[i].Name] = &list[i]
	}
	return modules
}
