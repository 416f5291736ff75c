package httpx

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/internal/people"
)

// peopleHeaders are the headers of the fixed columns for people. The others aren't written.
var peopleHeaders = map[string]string{ //nolint:gochecknoglobals // immutable
	"reference": "Reference", "status": "Status", "firstName": "First name", "lastName": "Last name", "email": "E-mail", "createdAt": "Submitted", "completedAt": "Completed",
}

// csvForPeople returns the format of a table for people, with the chosen columns and files, or with all if there are none. It begins with
// a byte order mark, without which Excel takes UTF-8 for another encoding.
func (h *Handler) csvForPeople(p *people.Request, chosen []string) exportFormat {
	return func(ctx context.Context, e *formsvc.Export, to *bufio.Writer) error {
		names := chosen
		if len(names) == 0 {
			answers, err := columnsOf(ctx, e)
			if err != nil {
				return err
			}
			names = []string{"reference", "status"}
			for _, name := range answers {
				names = append(names, answerPrefix+name)
			}
			names = append(names, "firstName", "lastName", "email", "createdAt", "completedAt")
		}
		t := chosenTable(names)
		t.modules, t.people = modulesByName(e.Modules()), p
		for i, name := range names {
			fixed, ok := peopleHeaders[name]
			switch {
			case !ok:
				fixed = t.label(strings.TrimPrefix(name, answerPrefix))
			case strings.HasSuffix(name, "At"):
				fixed += " (" + p.Zone.String() + ")"
			}
			t.header[i] = fixed
		}
		var files []string
		for _, m := range e.Modules() {
			if m.Type == formsvc.FileModule {
				files, t.header = append(files, m.Name), append(t.header, t.label(m.Name))
			}
		}
		t.header = append(t.header, "Other files")
		t.links = func(ctx context.Context, r *formsvc.Response) ([]string, error) {
			return h.fileLinks(ctx, r, p.Files, files)
		}
		_, _ = to.WriteString("\ufeff") // an error remains
		return t.write(ctx, e, to)
	}
}

// label returns what people call a question.
func (t *table) label(name string) string {
	if m := t.modules[name]; m != nil {
		name = cmp.Or(m.Label, name)
	}
	return defused(name)
}

// fileLinks returns the addresses of a response's files, by the questions that they are for, and last those of other files.
func (h *Handler) fileLinks(ctx context.Context, r *formsvc.Response, base string, questions []string) ([]string, error) {
	links := make([]string, len(questions)+1)
	list, err := h.svc.Files.List(ctx, r.Key(), formsvc.PageQuery{Limit: formsvc.MaxLimit, Ascending: true})
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, formsvc.ErrNotFound) { // deleted meanwhile
		return links, nil
	}
	for i := range list.Items {
		at := slices.Index(questions, list.Items[i].Module)
		if at < 0 {
			at = len(questions)
		}
		links[at] = strings.TrimPrefix(links[at]+"\n"+base+string(list.Items[i].ID), "\n")
	}
	return links, err
}

func modulesByName(list []formsvc.Module) map[string]*formsvc.Module {
	modules := make(map[string]*formsvc.Module, len(list))
	for i := range list {
		modules[list[i].Name] = &list[i]
	}
	return modules
}
