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
	summedDays   = 30
	latestLooked = 100 // responses that the latest texts are from
	latestTexts  = 5
	shownLabel   = 100 // characters
	shownText    = 200
	mostSummed   = 100 // questions, and choices of one
)

type summaryPage struct {
	Counted   int64
	All       int64 // responses, without spam
	Spam      int64
	More      bool // whether there are responses to count
	At        time.Time
	Days      chart
	Questions []*summary
	Old       []oldQuestion
}

// An oldQuestion is one that was removed, but has answers.
type oldQuestion struct {
	Name     string
	Answered int64
	Table    string // the query of the table with its answers
}

// A summary tells what was answered to one question.
type summary struct {
	Label    string
	Answered int64
	Groups   []group  // of choices, numbers, dates
	About    string   // the range of numbers, or which dates are shown
	Texts    []string // the latest, of all other types
}

// A group is how often something was answered.
type group struct {
	Text  string
	Count int64
	Share string  // of the responses that answer the question, in percent
	Width float64 // of its bar
}

// share writes a part of a whole in percent. Only none is 0 and only all is 100.
func share(n, of int64) string {
	percent := (n*200 + of) / max(2*of, 1)
	switch {
	case percent == 0 && n > 0:
		return "<1"
	case percent == 100 && n < of:
		return ">99"
	}
	return strconv.FormatInt(percent, 10)
}

// summary shows what was answered to each question, and when. Each view counts further responses until all are counted.
func (v *visit) summary() error {
	c, p, err := v.count(false)
	if err != nil {
		return err
	}
	texts, err := v.latestTexts()
	if err != nil {
		return err
	}
	first := dayOf(v.svc.Now(), v.zone).AddDate(0, 0, 1-summedDays)
	c.mu.Lock() // until the page is sent to its slow reader
	err = c.goOn(v.ctx(), v.svc, first, time.Now().Add(v.h.countTime))
	p.fill(c, v.campaign.Modules, first, texts)
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
	p := &summaryPage{Spam: counts[formsvc.StatusSpam], At: v.svc.Now()}
	for _, n := range counts {
		p.All += n
	}
	p.All -= p.Spam
	return v.h.counts.of(newCount(&v.campaign, v.zone, fmt.Sprint(counts, event)), again), p, err // erasures raise no events
}

// fill shows what was counted.
func (p *summaryPage) fill(c *count, asked []formsvc.Module, first time.Time, texts map[string][]string) {
	p.Counted, p.More = c.n, !c.all.Load()
	day := func(i int) string { return first.AddDate(0, 0, i).Format(time.DateOnly) }
	days := make([]int, summedDays)
	for i := range days {
		days[i] = c.days[day(i)]
	}
	p.Days = countChart("Responses per day", fmt.Sprint(summedDays, " days"), days, day)
	for _, m := range asked {
		if t := c.questions[m.Name]; t != nil {
			s := &summary{Label: short(shownLabel, cmp.Or(m.Label, m.Name)), Answered: int64(t.answered)}
			if s.group(t); len(s.Groups) == 0 {
				s.Texts = texts[m.Name]
			}
			p.Questions = append(p.Questions, s)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.old)) {
		p.Old = append(p.Old, oldQuestion{short(shownLabel, name), int64(c.old[name]), "?" + url.Values{"c": {columnID(name)}}.Encode()})
	}
}

// countAgain begins to count again.
func (v *visit) countAgain() error {
	_, _, err := v.count(true)
	return v.redirect(err, "/campaigns/"+string(v.campaign.ID)+"/summary", nil)
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

// group makes groups of what was counted.
func (s *summary) group(t *tally) {
	add := func(text string, n int) {
		s.Groups = append(s.Groups, group{short(shownText, text), int64(n), share(int64(n), s.Answered), float64(n) * 100 / float64(max(s.Answered, 1))})
	}
	switch {
	case t.Type == formsvc.FileModule:
		s.About = "Files: " + thousands(int64(t.files)) + "."
	case t.numbers > 0:
		average := math.Round(t.sum/float64(t.numbers)*1e4) / 1e4
		s.About = "From " + decimal(t.least) + " to " + decimal(t.most) + ", on average " + decimal(average) + "."
		t.ranges(add)
	case t.to != "":
		s.About = "From " + t.from + " to " + t.to + "."
		for _, date := range slices.Sorted(maps.Keys(t.counts)) {
			if missing := len("2006") - len(date); missing > 0 { // decades
				add(date+strings.Repeat("0", missing)+"s", t.counts[date])
				continue
			}
			add(date, t.counts[date])
		}
	case t.Type == formsvc.BooleanModule:
		add("Yes", t.counts["true"])
		add("No", t.counts["false"])
	case t.Type == formsvc.ChoiceModule:
		for _, option := range t.Options[:min(len(t.Options), mostSummed)] {
			add(option, t.counts[option])
		}
	}
	if t.others > 0 && len(s.Groups) > 0 {
		add("Others, which can't be chosen any more", t.others)
	}
}
