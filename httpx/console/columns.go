package console

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// Limits of the table of responses.
const (
	usualColumns = 4  // answers shown unless the visitor chooses
	maxColumns   = 12 // answers
	shownCell    = 60 // characters of an answer
	shownFiles   = 5
)

// A column is an answer that the table of responses can show, files, or when the response changed.
type column struct {
	Name, Label string
	ID          string // in addresses
	Shown       bool   // whether the table has it
	module      *formsvc.Module
}

// Files reports whether it has files.
func (c column) Files() bool { return c.module != nil && c.module.Type == formsvc.FileModule }

// A row is a response in the table.
type row struct {
	formsvc.Response
	Cells []cell // by column
	Why   string // why it is spam
}

// A cell has a text, files, or a time.
type cell struct {
	Text  string
	Files formsvc.Page[formsvc.File]
	At    *time.Time
}

// changedColumn is the name of the column with the time of the last change, which isn't shown unless it is chosen.
const changedColumn = "~changed"

// columnsCookie keeps the columns that were chosen last for a campaign, for addresses without columns. Its path is the campaign's.
const columnsCookie = "formsvc_columns"

// columnID returns a short text for a question in addresses: its name, or a hash of a long one.
func columnID(name string) string {
	if len(url.QueryEscape(name)) <= longID {
		return name
	}
	return "~" + hash(name)
}

// hash returns a short text that differs for other texts.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// longID is the limit of a name in an address, in bytes.
const longID = 40

// columns returns the columns to show, in order, and all others after them: those of the address, or those chosen last, or the first.
// Removed questions come last. They are found in the address and in the responses on the page; the summary leads to all of them.
func (v *visit) columns(list []formsvc.Response) (shown, all []column) {
	asked := v.campaign.Questions()
	chosen, given := v.viewed()["c"]
	last, before := v.kept(columnsCookie)["c"]
	switch {
	case given:
	case before:
		chosen = last
	default:
		for i := range asked {
			if t := asked[i].Type; t != formsvc.FileModule && t != formsvc.LongTextModule && len(chosen) < usualColumns {
				chosen = append(chosen, columnID(asked[i].Name))
			}
		}
	}
	chosen = chosen[:min(len(chosen), maxColumns)]
	add := func(name, label string, m *formsvc.Module) {
		all = append(all, column{Name: name, Label: short(shownCell, label), ID: columnID(name), module: m})
	}
	for i := range asked {
		if m := &asked[i]; m.Type != formsvc.FileModule || v.who.permits(formsvc.FilesRead) {
			add(m.Name, cmp.Or(m.Label, m.Name), m)
		}
	}
	add(changedColumn, "Changed", nil)
	removed := map[bool]string{true: " (removed)"}[len(asked) > 0]
	for _, name := range v.oldNames(list, chosen) {
		add(name, name+removed, nil)
	}
	for _, id := range chosen {
		if i := slices.IndexFunc(all, func(c column) bool { return c.ID == id }); i >= 0 {
			all[i].Shown = true
			shown, all = append(shown, all[i]), slices.Delete(all, i, i+1)
		}
	}
	return shown, slices.Concat(shown, all)
}

// mostOld is the limit of names of removed questions.
const mostOld = 50

// eachAnswer calls do with each answer. Stored answers can be read, so it has no error.
func eachAnswer(list []formsvc.Response, do func(name string, values []string)) {
	for i := range list {
		_ = list[i].Answers.Each(func(name string, values []string) error {
			do(name, values)
			return nil
		})
	}
}

// oldNames returns the names of answers that no question has, sorted.
func (v *visit) oldNames(list []formsvc.Response, chosen []string) []string {
	old, asked := map[string]bool{}, map[string]bool{"": true}
	for _, m := range v.campaign.Questions() {
		name := m.Name
		asked[name], asked[columnID(name)] = true, true
	}
	for _, id := range chosen {
		if !strings.HasPrefix(id, "~") && !asked[id] {
			old[id] = true
		}
	}
	eachAnswer(list, func(name string, values []string) {
		if len(values) > 0 && !asked[name] && len(old) < mostOld {
			old[name] = true
		}
	})
	return slices.Sorted(maps.Keys(old))
}

// chooseColumns keeps the selected columns in the order of the form, with one of them moved if that was its button.
func (v *visit) chooseColumns() error {
	chosen := slices.Clone(v.r.PostForm["column"])
	move, moved, _ := strings.Cut(v.field("do"), ".")
	if i, step := slices.Index(chosen, moved), map[string]int{"up": -1, "down": 1}[move]; i >= 0 && i+step >= 0 && i+step < len(chosen) {
		chosen[i], chosen[i+step] = chosen[i+step], chosen[i]
	}
	query, path := v.viewed(), v.path("")
	if len(chosen) > maxColumns {
		chosen = chosen[:maxColumns]
		query.Set("note", "columns-cut")
	}
	if query["c"] = chosen; len(chosen) == 0 {
		query["c"] = []string{""} // none, not the usual ones
	}
	v.setCookie(columnsCookie, url.Values{"c": query["c"]}.Encode(), v.base+path, 400*24*time.Hour)
	query.Set("columns", "open")
	return v.redirect(nil, path, query)
}

// tableColumns returns the columns of the table as the API's export names them.
func tableColumns(answers []column) []string {
	names := []string{"reference", "status"}
	for i := range answers {
		switch c := &answers[i]; {
		case c.Name == changedColumn:
			names = append(names, "updatedAt")
		case !c.Files(): // files have columns of their own
			names = append(names, "responses."+c.Name)
		}
	}
	return append(names, "firstName", "lastName", "email", "createdAt")
}

// rows returns the responses with their answers by column.
func (v *visit) rows(list []formsvc.Response, shown []column) ([]row, error) {
	at := make(map[string]int, len(shown))
	for i := range shown {
		at[shown[i].Name] = i
	}
	table := make([]row, len(list))
	for i := range list {
		table[i] = row{Response: list[i], Cells: make([]cell, len(shown)), Why: v.h.heldText(&list[i])}
		err := list[i].Answers.Each(func(name string, values []string) error {
			if n, ok := at[name]; ok {
				table[i].Cells[n].Text = short(shownCell, shown[n].module.ShownValues(values))
			}
			return nil
		})
		if n, ok := at[changedColumn]; ok {
			table[i].Cells[n].At = &table[i].UpdatedAt
		}
		if err = cmp.Or(err, v.addFiles(&table[i], shown, at)); err != nil {
			return nil, err
		}
	}
	return table, nil
}

// addFiles adds the files of a response to their columns, if there are any. at has the places of the columns.
func (v *visit) addFiles(r *row, shown []column, at map[string]int) error {
	if !slices.ContainsFunc(shown, column.Files) {
		return nil
	}
	list, err := v.svc.Files.List(v.ctx(), r.Key(), formsvc.PageQuery{Limit: shownRecords})
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, formsvc.ErrNotFound) { // without a blob store, or deleted meanwhile
		return nil
	}
	for i := range list.Items {
		if n, ok := at[list.Items[i].Module]; ok && shown[n].Files() {
			files := &r.Cells[n].Files
			if files.Total++; files.Total <= shownFiles {
				files.Items = append(files.Items, list.Items[i])
			}
		}
	}
	return err
}
