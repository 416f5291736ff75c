package console

import (
	"cmp"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// Limits of the table of responses.
const (
	usualColumns = 4  // answers shown unless the visitor chooses
	maxColumns   = 12 // answers
	shownCell    = 60 // characters of an answer
	maxCookie    = 3_000
)

// A column is an answer that the table of responses can show.
type column struct {
	Name, Label string
	Type        formsvc.ModuleType
	Index       int // of the module
	Place       int // maxColumns: not shown
}

// Shown reports whether the table has the column.
func (c column) Shown() bool { return c.Place < maxColumns }

// A row is a response in the table.
type row struct {
	formsvc.Response
	Cells []string // the answers, by column
}

// columnsCookie keeps the columns of a campaign in the browser. Its path is the campaign's.
const columnsCookie = "formsvc_columns"

// columns returns the columns to show, in order, and all others after them.
func (v *visit) columns() (shown, all []column) {
	c := &v.campaign
	var chosen []string
	if cookie, err := v.r.Cookie(columnsCookie); err == nil {
		query, _ := url.ParseQuery(cookie.Value) // what it can't read isn't shown
		chosen = query["c"]
	} else {
		for i := range c.Modules {
			if t := c.Modules[i].Type; t != formsvc.FileModule && t != formsvc.LongTextModule && len(chosen) < usualColumns {
				chosen = append(chosen, c.Modules[i].Name)
			}
		}
	}
	for i := range c.Modules {
		if m := &c.Modules[i]; m.Type != formsvc.FileModule {
			place := slices.Index(chosen, m.Name)
			if place < 0 {
				place = maxColumns
			}
			all = append(all, column{m.Name, short(shownCell, cmp.Or(m.Label, m.Name)), m.Type, i, min(place, maxColumns)})
		}
	}
	slices.SortStableFunc(all, func(a, b column) int { return a.Place - b.Place })
	n := slices.IndexFunc(all, func(c column) bool { return !c.Shown() })
	if n < 0 {
		n = len(all)
	}
	return all[:n], all
}

// chooseColumns keeps the selected columns in the order of the form, with one of them moved if that was its button.
func (v *visit) chooseColumns() error {
	chosen := slices.Clone(v.r.PostForm["column"])
	move, moved, _ := strings.Cut(v.field("do"), ".")
	if i, step := slices.Index(chosen, moved), map[string]int{"up": -1, "down": 1}[move]; i >= 0 && i+step >= 0 && i+step < len(chosen) {
		chosen[i], chosen[i+step] = chosen[i+step], chosen[i]
	}
	var value strings.Builder
	for _, text := range chosen[:min(len(chosen), maxColumns)] {
		i, err := strconv.Atoi(text)
		if err != nil || i < 0 || i >= len(v.campaign.Modules) {
			continue
		}
		if name := url.QueryEscape(v.campaign.Modules[i].Name); value.Len()+len(name) < maxCookie {
			value.WriteString("&c=" + name)
		}
	}
	path := "/campaigns/" + string(v.campaign.ID)
	v.setCookie(columnsCookie, strings.TrimPrefix(value.String(), "&"), v.base+path, 400*24*time.Hour)
	query := v.viewed()
	query.Set("columns", "open")
	return v.redirect(path, query)
}

// viewed returns the query of the page that a form came from.
func (v *visit) viewed() url.Values {
	query, err := url.ParseQuery(v.r.PostForm.Get("view"))
	if err != nil {
		return url.Values{}
	}
	return query
}

// tableColumns returns the columns of the table as the API's export names them.
func tableColumns(answers []column) []string {
	names := []string{"reference", "status"}
	for i := range answers {
		names = append(names, "responses."+answers[i].Name)
	}
	return append(names, "firstName", "lastName", "email", "createdAt")
}

// rows returns the responses with their answers by column.
func rows(list []formsvc.Response, shown []column) ([]row, error) {
	at := make(map[string]int, len(shown))
	for i := range shown {
		at[shown[i].Name] = i
	}
	table := make([]row, len(list))
	for i := range list {
		table[i] = row{Response: list[i], Cells: make([]string, len(shown))}
		err := list[i].Answers.Each(func(name string, values []string) error {
			if n, ok := at[name]; ok {
				var shownValues []string
				for _, value := range values {
					shownValues = append(shownValues, readable(shown[n].Type, value))
				}
				table[i].Cells[n] = short(shownCell, strings.Join(shownValues, ", "))
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return table, nil
}

// readable returns a value as people read it.
func readable(t formsvc.ModuleType, value string) string {
	if words := map[string]string{"true": "Yes", "false": "No"}; t == formsvc.BooleanModule && words[value] != "" {
		return words[value]
	}
	return value
}

// changeSelected changes the status of the selected responses, or deletes them.
func (v *visit) changeSelected() error {
	status, remove := v.field("status"), v.field("do") == "delete"
	query, err := v.eachSelected("response", func(id formsvc.ID) (err error) {
		key := formsvc.ResponseKey{AccountID: v.account(), CampaignID: v.campaign.ID, ID: id}
		if remove {
			return v.svc.Responses.Delete(v.ctx(), key, nil)
		}
		_, err = v.svc.Responses.Update(v.ctx(), key, formsvc.ResponsePatch{Status: &status})
		return err
	})
	if err != nil {
		return err
	}
	return v.redirect("/campaigns/"+string(v.campaign.ID), query)
}

// eachSelected changes each selected record, and returns the query of the page that says how many could be changed.
func (v *visit) eachSelected(field string, change func(formsvc.ID) error) (url.Values, error) {
	changed, refused := 0, 0
	for _, text := range v.r.PostForm[field][:min(len(v.r.PostForm[field]), pageSize)] {
		err := change(readID(text))
		switch {
		case err == nil:
			changed++
		case errors.Is(err, formsvc.ErrNotFound), errors.Is(err, formsvc.ErrTransition), errors.Is(err, formsvc.ErrInvalid), errors.Is(err, formsvc.ErrConflict):
			refused++
		default:
			return nil, err
		}
	}
	query := v.viewed()
	query.Set("note", "selected")
	query.Set("n", strconv.Itoa(changed))
	query.Set("refused", strconv.Itoa(refused))
	return query, nil
}
