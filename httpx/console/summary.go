package console

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// Limits of a summary.
const (
	countTime    = 300 * time.Millisecond // that one view counts for
	latestLooked = 100                    // responses that the latest texts are from
	latestTexts  = 5
	shownLabel   = 100 // characters
	shownText    = 200
	mostSummed   = 100 // questions
)

type summaryPage struct {
	Counted   int64
	All       int64 // responses, without spam
	Spam      int64
	More      bool // whether there are responses to count
	At        time.Time
	By, Dates string   // in the query: the question whose answers are compared, and the period of dates
	ByChoices []choice // questions
	Statuses  []group  // without spam
	Groups    []string // of responses: all, and those that are compared
	Per       string   // the period of the chart
	Days      chart
	Questions []*summary
	Left      int        // questions that aren't summarized
	Old       []*summary // questions that were removed, but have answers
}

// A summary tells what was answered to one question.
type summary struct {
	Label    string
	Type     formsvc.ModuleType
	Answered int64
	Figures  [][]string // of numbers, ratings, dates and files, by the group of responses
	Groups   []group    // of choices, numbers, dates, times
	Per      string     // the period that dates are shown by
	Texts    []string   // the latest, of all other types
	Table    string     // the query of the table with the answers
}

// A group is how often something was answered, in each group of responses.
type group struct {
	Text  string
	Cells []portion
}

// A portion is a number of responses, of those that answer the question.
type portion struct{ Count, Of int64 }

// Share returns the part in percent. Only none is 0 and only all is 100.
func (c portion) Share() string {
	percent := (c.Count*200 + c.Of) / max(2*c.Of, 1)
	switch {
	case percent == 0 && c.Count > 0:
		return "<1"
	case percent == 100 && c.Count < c.Of:
		return ">99"
	}
	return strconv.FormatInt(percent, 10)
}

// summary shows what was answered to each question, and when. Each view counts further responses until all are counted.
func (v *visit) summary() error {
	c, p, err := v.count(false)
	texts, errTexts := v.latestTexts()
	if err = cmp.Or(err, errTexts); err != nil {
		return err
	}
	c.mu.Lock() // until the page is sent to its slow reader
	err = c.goOn(v.ctx(), v.svc, v.zone, time.Now().Add(v.h.countTime))
	p.fill(c, v.campaign.Modules, dayOf(v.svc.Now(), v.zone), texts)
	c.mu.Unlock()
	if err != nil {
		return err
	}
	return v.show(http.StatusOK, "summary", "Summary of "+v.campaign.Title, p)
}

// count returns what is counted of the campaign, and a page with the numbers of its responses.
func (v *visit) count(again bool) (*count, *summaryPage, error) {
	counts, err := v.svc.Responses.Counts(v.ctx(), v.campaign.Key())
	if err != nil {
		return nil, nil, err
	}
	event, err := v.seenEvents()
	mark := fmt.Sprint(counts, event) // erasures raise no events
	p := &summaryPage{Spam: counts[formsvc.StatusSpam], At: v.svc.Now(), Dates: v.viewed().Get("dates")}
	delete(counts, formsvc.StatusSpam)
	for _, n := range counts {
		p.All += n
	}
	for _, status := range slices.Sorted(maps.Keys(counts)) {
		p.Statuses = append(p.Statuses, group{status, []portion{{counts[status], p.All}}})
	}
	var by *formsvc.Module
	v.campaign.Modules = slices.Clone(v.campaign.Questions())
	for i := range v.campaign.Modules {
		m := &v.campaign.Modules[i]
		m.Options = m.Choices()
		if id := columnID(m.Name); m.Options != nil {
			p.ByChoices = append(p.ByChoices, choice{Value: id, Text: cmp.Or(m.Label, m.Name)})
			if id == v.viewed().Get("by") {
				by, p.By = m, id
			}
		}
	}
	return v.h.counts.of(newCount(&v.campaign, by, v.zone, mark), again), p, err
}

// fill shows what was counted.
func (p *summaryPage) fill(c *count, asked []formsvc.Module, today time.Time, texts map[string][]string) {
	p.Counted, p.More = c.sent.of[0].answered, !c.all.Load()
	var shown []int
	for i, name := range c.names {
		if n := c.sent.of[i].answered; name != "" && (i <= mostGroups || n > 0) {
			shown, p.Groups = append(shown, i), append(p.Groups, name+" ("+thousands(n)+")")
		}
	}
	p.chart(c.sent, today)
	for i := range asked[:min(len(asked), mostSummed)] {
		t := c.questions[asked[i].Name]
		s := &summary{Label: cmp.Or(t.Label, t.Name), Type: t.Type, Answered: t.of[0].answered, Table: tableOf(t.Name)}
		if s.fill(t, shown, p.Dates); len(s.Groups)+len(s.Figures) == 0 {
			s.Texts = texts[t.Name]
		}
		p.Questions = append(p.Questions, s)
	}
	p.Left = len(asked) - len(p.Questions)
	for _, name := range slices.Sorted(maps.Keys(c.old)) {
		p.Old = append(p.Old, &summary{Label: short(shownLabel, name), Answered: c.old[name], Table: tableOf(name)})
	}
}

// tableOf returns the query of the table with the answers to a question.
func tableOf(name string) string { return "?" + url.Values{"c": {columnID(name)}}.Encode() }

// chart draws when the responses were submitted: in the last 30 days, or 12 longer periods.
func (p *summaryPage) chart(sent *tally, today time.Time) {
	per := sent.dateScales(p.Dates)[0]
	counts, now := make([]int, 12), per.place(parsed(today.Format(dateDigits)))
	if per.name == "day" {
		counts = make([]int, 30)
	}
	for x, n := range sent.counts {
		if ago := int(now - per.place(parsed(x.value))); ago >= 0 && ago < len(counts) {
			counts[len(counts)-1-ago] += int(n)
		}
	}
	p.Per = per.name
	p.Days = countChart("Responses per "+per.name, fmt.Sprint(len(counts), " ", per.name, "s"), counts, func(i int) string {
		return per.text(now - float64(len(counts)-1-i))
	})
}

// countAgain begins to count again.
func (v *visit) countAgain() error {
	_, _, err := v.count(true)
	return v.redirect(err, v.path("/summary"), v.viewed())
}

// latestTexts returns the latest answers, by question. They aren't kept with the counts, so that an erased one is gone.
func (v *visit) latestTexts() (map[string][]string, error) {
	list, err := v.svc.Responses.List(v.ctx(), formsvc.ResponseQuery{
		AccountID: v.account(), CampaignID: v.campaign.ID, NoTotal: true, Page: formsvc.PageQuery{Limit: latestLooked, MaxBytes: maxPage},
		Filter: formsvc.ResponseFilter{NotStatus: formsvc.StatusSpam},
	})
	texts := map[string][]string{}
	eachAnswer(list.Items, func(name string, values []string) {
		for _, value := range values {
			if len(texts[name]) < latestTexts && strings.TrimSpace(value) != "" {
				texts[name] = append(texts[name], short(shownText, value))
			}
		}
	})
	return texts, err
}

// fill makes groups of what was counted in the shown groups of responses.
func (s *summary) fill(t *tally, shown []int, dates string) {
	add := func(text string, values ...string) {
		g := group{Text: text}
		for _, in := range shown {
			c := portion{0, t.of[in].answered}
			for _, value := range values {
				c.Count += t.counts[countOf{value, in}]
			}
			g.Cells = append(g.Cells, c)
		}
		s.Groups = append(s.Groups, g)
	}
	each := t.Options
	if t.of[0].numbers > 0 {
		values := t.values()
		for _, in := range shown {
			s.Figures = append(s.Figures, t.figures(values, in))
		}
		switch {
		case t.Type == formsvc.DateModule && dates != "":
			s.Per = t.show(t.dateScales(dates), values, mostRows, mostRows, add)
		case t.Type == formsvc.DateModule:
			s.Per = t.show(t.dateScales(""), values, usualRows, mostBars, add)
		case t.Type.Numeric() && t.width == 0 && (t.Type.Steps() || len(values) <= mostBars):
			each = values
		case t.Type.Numeric():
			t.show(t.rangeScales(), values, mostBars, 0, add)
		}
	}
	if t.Type == formsvc.TimeModule {
		each = t.values()
	}
	for _, value := range each {
		add(t.Shown(value), value)
	}
	if t.counts[countOf{others, 0}] > 0 && len(s.Groups) > 0 {
		add(map[bool]string{true: "Other answers", false: "Others, which can't be chosen any more"}[t.Other], others)
	}
}

// A chart has bars side by side, each a stack of parts. The server draws it as SVG.
type chart struct {
	Label string // the text for screen readers
	Bars  []bar
	Top   string // the value at full height
	Since string // how long ago the first bar is
	Empty bool   // whether all bars are zero
	most  float64
}

// A bar is one bar of a chart.
type bar struct {
	X     int
	Parts []part
	Text  string // for the tooltip and the table
}

// A part is one part of a bar. Parts are stacked from the bottom.
type part struct {
	Class     string // a class of the style sheet
	Height, Y float64
}

// barStep is the distance from bar to bar in the units of the drawing, in which a chart is 100 high.
const barStep = 18

// newChart returns a chart without bars. The value most has full height.
func newChart(label, since, top string, most float64) chart {
	return chart{Label: label, Since: since, Top: top, Empty: true, most: most}
}

// add adds a bar of parts whose heights are values. Any value above zero is visible.
func (c *chart) add(text string, parts ...part) {
	foot := 100.0
	for i := range parts {
		p := &parts[i]
		if p.Height > 0 {
			p.Height, c.Empty = min(max(math.Round(p.Height/c.most*100), 2), foot), false
		}
		foot -= p.Height
		p.Y = foot
	}
	c.Bars = append(c.Bars, bar{len(c.Bars) * barStep, parts, text})
}

// countChart draws how many there were at each time.
func countChart(what, since string, counts []int, at func(i int) string) chart {
	sum, most := 0, max(slices.Max(counts), 1)
	for _, n := range counts {
		sum += n
	}
	c := newChart(what+" in the last "+since+", "+thousands(int64(sum))+" in all", since, thousands(int64(most)), float64(most))
	for i, n := range counts {
		c.add(at(i)+": "+thousands(int64(n)), part{Class: "neutral", Height: float64(n)})
	}
	return c
}

// Width returns the width of the drawing.
func (c chart) Width() int { return len(c.Bars) * barStep }
