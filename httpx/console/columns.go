package console

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

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
	Index       int // of the module
	Position    int // from 1; 0: not shown
}

// A row is a response in the table.
type row struct {
	formsvc.Response
	Cells []string // the answers, by column
}

// columnsCookie keeps the columns of a campaign in the browser. Its path is the campaign's.
const columnsCookie = "formsvc_columns"

// columns returns the columns to show, in order, and all others after them.
func (v *visit) columns(c *formsvc.Campaign) (shown, all []column) {
	var chosen []string
	if cookie, err := v.r.Cookie(columnsCookie); err == nil {
		for name := range strings.SplitSeq(cookie.Value, "!") {
			if name, err := url.QueryUnescape(name); err == nil {
				chosen = append(chosen, name)
			}
		}
	} else {
		for i := range c.Modules {
			if t := c.Modules[i].Type; t != formsvc.FileModule && t != formsvc.LongTextModule && len(chosen) < usualColumns {
				chosen = append(chosen, c.Modules[i].Name)
			}
		}
	}
	for i := range c.Modules {
		m := &c.Modules[i]
		if m.Type == formsvc.FileModule {
			continue
		}
		col := column{Name: m.Name, Label: short(shownCell, cmp.Or(m.Label, m.Name)), Index: i}
		if at := slices.Index(chosen, m.Name); at >= 0 && at < maxColumns {
			col.Position = at + 1
			shown = append(shown, col)
		}
		all = append(all, col)
	}
	slices.SortStableFunc(shown, func(a, b column) int { return a.Position - b.Position })
	return shown, all
}

// chooseColumns keeps the columns that the form numbers.
func (v *visit) chooseColumns() error {
	campaign, err := v.svc.Campaigns.Get(v.ctx(), v.campaignKey())
	if err != nil {
		return err
	}
	var chosen []column
	for i := range campaign.Modules {
		if n, err := strconv.Atoi(v.field("position." + strconv.Itoa(i))); err == nil && n > 0 {
			chosen = append(chosen, column{Name: campaign.Modules[i].Name, Position: n})
		}
	}
	slices.SortStableFunc(chosen, func(a, b column) int { return a.Position - b.Position })
	path := "/campaigns/" + string(campaign.ID)
	value := ""
	for _, c := range chosen[:min(len(chosen), maxColumns)] {
		if next := value + "!" + url.QueryEscape(c.Name); len(next) <= maxCookie {
			value = next
		}
	}
	http.SetCookie(v.w, &http.Cookie{ //nolint:gosec // without TLS the cookie can't be secure
		Name: columnsCookie, Value: strings.TrimPrefix(value, "!"), Path: v.base + path, MaxAge: 400 * 24 * 60 * 60,
		Secure: v.secure(), HttpOnly: true, SameSite: http.SameSiteLaxMode,
	})
	return v.redirect(path, nil)
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
				table[i].Cells[n] = short(shownCell, strings.Join(values, ", "))
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return table, nil
}

// changeSelected changes the status of the selected responses, or deletes them.
func (v *visit) changeSelected() error {
	if _, err := v.svc.Campaigns.Get(v.ctx(), v.campaignKey()); err != nil {
		return err
	}
	status, remove := v.field("status"), v.field("do") == "delete"
	changed, refused := 0, 0
	for _, text := range v.r.PostForm["response"][:min(len(v.r.PostForm["response"]), pageSize)] {
		key := formsvc.ResponseKey{AccountID: v.account(), CampaignID: v.id("campaign"), ID: readID(text)}
		var err error
		if remove {
			err = v.svc.Responses.Delete(v.ctx(), key, nil)
		} else {
			_, err = v.svc.Responses.Update(v.ctx(), key, formsvc.ResponsePatch{Status: &status})
		}
		switch {
		case err == nil:
			changed++
		case errors.Is(err, formsvc.ErrNotFound), errors.Is(err, formsvc.ErrTransition), errors.Is(err, formsvc.ErrInvalid):
			refused++
		default:
			return err
		}
	}
	query, err := url.ParseQuery(strings.TrimPrefix(v.r.PostForm.Get("view"), "?"))
	if err != nil {
		query = url.Values{}
	}
	query.Set("note", "selected")
	query.Set("n", strconv.Itoa(changed))
	query.Set("refused", strconv.Itoa(refused))
	return v.redirect("/campaigns/"+string(v.id("campaign")), query)
}
