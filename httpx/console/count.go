package console

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// Limits of what is kept of counted responses.
const (
	maxCounts     = 64 // campaigns
	accountCounts = 4  // campaigns of one account
	mostGroups    = 31 // of the numbers or dates of a question; wider ones are used when there are more
	maxDigits     = 15 // that a float64 keeps
)

// counts has the counts of the campaigns whose summaries were looked at last, the last one first.
type counts struct {
	mu   sync.Mutex
	list []*count
}

// A countKey is a campaign as it is counted.
type countKey struct {
	formsvc.CampaignKey

	version int64
	zone    string
}

// of returns the count with the key of fresh, or fresh itself if there is none, or if that one is of all responses and these changed since.
func (c *counts) of(fresh *count, again bool) *count {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept, mine := []*count{fresh}, 1
	for _, x := range c.list {
		if x.countKey == fresh.countKey {
			if !again && (x.mark == fresh.mark || !x.all.Load()) {
				kept[0] = x
			}
			continue
		}
		if x.AccountID == fresh.AccountID {
			mine++
		}
		if x.AccountID != fresh.AccountID || mine <= accountCounts {
			kept = append(kept, x)
		}
	}
	c.list = kept[:min(len(kept), maxCounts)]
	return kept[0]
}

// A count is what was counted of a campaign's responses, from the oldest on. It keeps no text that somebody wrote.
type count struct {
	countKey
	mark string      // changes with the responses
	all  atomic.Bool // whether all were counted

	mu        sync.Mutex
	n         int64
	last      formsvc.ID     // the last response that was counted
	days      map[string]int // responses, by the day
	questions map[string]*tally
	files     bool           // whether there are questions for files
	old       map[string]int // answers to removed questions
}

// A tally is what was answered to one question.
type tally struct {
	*formsvc.Module

	answered, files int
	others          int // answers with a value that is no option any more
	counts          map[string]int
	// Of dates: how much of them is counted, such as 7 characters for months.
	length   int
	from, to string
	// Of numbers: the width of the ranges that are counted, by their beginnings. 0: each number.
	width            float64
	numbers          int
	sum, least, most float64
	fraction         bool // whether one isn't whole
}

func newCount(c *formsvc.Campaign, zone *time.Location, mark string) *count {
	n := &count{
		countKey: countKey{c.Key(), c.Version, zone.String()}, mark: mark,
		days: map[string]int{}, questions: map[string]*tally{}, old: map[string]int{},
	}
	for i := range c.Modules[:min(len(c.Modules), mostSummed)] {
		t := &tally{Module: &c.Modules[i], counts: map[string]int{}, length: len(time.DateOnly)}
		for _, option := range t.Options {
			t.counts[option] = 0
		}
		n.questions[t.Name], n.files = t, n.files || t.Type == formsvc.FileModule
	}
	return n
}

// goOn counts further responses until a time, but at least one page of them. It counts the days from first on.
func (c *count) goOn(ctx context.Context, svc *formsvc.Service, first, until time.Time) error {
	for !c.all.Load() {
		list, err := svc.Responses.List(ctx, formsvc.ResponseQuery{
			AccountID: c.AccountID, CampaignID: c.ID, NoTotal: true, Filter: formsvc.ResponseFilter{NotStatus: formsvc.StatusSpam},
			Page: formsvc.PageQuery{Limit: formsvc.MaxLimit, MaxBytes: maxPage, After: c.last, Ascending: true},
		})
		for i := range list.Items {
			r := &list.Items[i]
			c.n, c.last = c.n+1, r.ID
			if !r.CreatedAt.Before(first) {
				c.days[r.CreatedAt.In(first.Location()).Format(time.DateOnly)]++
			}
			err = cmp.Or(err, r.Answers.Each(c.add), c.addFiles(ctx, svc, r))
		}
		if c.all.Store(err == nil && !list.More); err != nil || !time.Now().Before(until) {
			return err
		}
	}
	return nil
}

// addFiles counts the files of a response.
func (c *count) addFiles(ctx context.Context, svc *formsvc.Service, r *formsvc.Response) error {
	if !c.files {
		return nil
	}
	list, err := svc.Files.List(ctx, r.Key(), formsvc.PageQuery{Limit: formsvc.MaxLimit})
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, formsvc.ErrNotFound) { // without a blob store, or deleted meanwhile
		return nil
	}
	names := map[string]bool{}
	for _, f := range list.Items {
		if t := c.questions[f.Module]; t != nil {
			if t.files++; !names[f.Module] {
				t.answered++
			}
			names[f.Module] = true
		}
	}
	return err
}

// add counts an answer.
func (c *count) add(name string, values []string) error {
	t := c.questions[name]
	switch {
	case len(values) == 0:
	case t != nil:
		t.add(values)
	case c.old[name] > 0 || len(c.old) < mostOld:
		c.old[name]++
	}
	return nil
}

// add counts the values of an answer. A choice or yes/no counts once.
func (t *tally) add(values []string) {
	t.answered++
	other, seen := 0, map[string]bool{}
	for _, value := range values {
		n, known := t.counts[value]
		switch kind := t.Type; {
		case kind == formsvc.NumberModule:
			t.addNumber(value)
		case kind == formsvc.DateModule:
			t.addDate(value)
		case kind == formsvc.BooleanModule && (value == "true" || value == "false"), kind == formsvc.ChoiceModule && known:
			if !seen[value] {
				t.counts[value], seen[value] = n+1, true
			}
		default:
			other = 1
		}
	}
	t.others += other
}

// addDate counts a date: by days, or by months, years or decades when there are too many.
func (t *tally) addDate(date string) {
	if _, err := time.Parse(time.DateOnly, date); err != nil {
		return
	}
	t.from, t.to = min(cmp.Or(t.from, date), date), max(t.to, date)
	t.counts[date[:t.length]]++
	for len(t.counts) > mostGroups {
		t.length = cmp.Or(map[int]int{len("2006-01-02"): len("2006-01"), len("2006-01"): len("2006")}[t.length], t.length-1)
		t.regroup(func(date string) string { return date[:t.length] })
	}
}

// addNumber counts a number: by itself, or in ranges when there are too many.
func (t *tally) addNumber(text string) {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || math.Abs(n) > 1e300 {
		return
	}
	if len(text) <= maxDigits || len(text) > shownText {
		text = decimal(n) // one of more digits would lose some
	}
	if t.numbers++; t.numbers == 1 {
		t.least, t.most = n, n
	}
	t.sum, t.least, t.most, t.fraction = t.sum+n, min(t.least, n), max(t.most, n), t.fraction || n != math.Trunc(n)
	if t.width > 0 {
		text = t.rangeOf(text)
	}
	t.counts[text]++
	for len(t.counts) > mostGroups {
		t.widen()
		t.regroup(t.rangeOf)
	}
}

// widen makes the ranges wider: 1, 5, 10, 50 and so on, or fractions of them.
func (t *tally) widen() {
	switch {
	case t.width == 0:
		span := max(t.most-t.least, math.Abs(t.most)*1e-9, 1e-300)
		t.width = math.Pow10(int(math.Floor(math.Log10(span / mostGroups))))
		if !t.fraction {
			t.width = max(t.width, 1)
		}
	case strings.HasPrefix(strconv.FormatFloat(t.width, 'e', -1, 64), "5"):
		t.width *= 2
	default:
		t.width *= 5
	}
}

// rangeOf returns the beginning of the range that has a number. It forgives the rounding of fractions.
func (t *tally) rangeOf(number string) string {
	return decimal(math.Floor(parsed(number)/t.width+1e-9) * t.width)
}

// regroup counts by wider groups.
func (t *tally) regroup(group func(string) string) {
	counts := map[string]int{}
	for text, n := range t.counts {
		counts[group(text)] += n
	}
	t.counts = counts
}

// ranges calls add with every number or range in order.
func (t *tally) ranges(add func(text string, n int)) {
	for _, text := range slices.SortedFunc(maps.Keys(t.counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(parsed(a), parsed(b)), cmp.Compare(a, b))
	}) {
		from, n := parsed(text), t.counts[text]
		switch {
		case t.width > 0 && t.fraction:
			text += " to below " + decimal(from+t.width)
		case t.width > 0:
			text += " to " + decimal(from+t.width-1)
		}
		add(text, n)
	}
}

// parsed returns the value of a number that was counted.
func parsed(number string) float64 {
	n, _ := strconv.ParseFloat(number, 64)
	return n
}

// decimal writes a number in plain digits. Only a number of more than 21 digits has an exponent.
func decimal(n float64) string {
	n = parsed(strconv.FormatFloat(n, 'g', maxDigits, 64))
	switch abs := math.Abs(n); {
	case abs == 0:
		return "0"
	case abs >= 1e21 || abs < 1e-9:
		return strconv.FormatFloat(n, 'g', -1, 64)
	}
	return strconv.FormatFloat(n, 'f', -1, 64)
}
