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
	maxCounts     = 64   // campaigns
	accountCounts = 4    // campaigns of one account
	mostRanges    = 30   // of numbers
	mostDates     = 1000 // days, then months, of one question
	mostOld       = 50   // names of answers to removed questions
	maxDigits     = 15   // that a float64 keeps
)

// counts has the counts of the campaigns whose summaries were looked at last, in that order.
type counts struct {
	mu   sync.Mutex
	list []*count
}

// of returns the count of a campaign in a time zone: a new one if it is to begin again, if the campaign has changed, or if all was counted
// and mark, which changes with the responses, has changed since it began.
func (c *counts) of(campaign *formsvc.Campaign, zone *time.Location, mark string, again bool) *count {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.list, func(x *count) bool {
		return x.key == campaign.Key() && x.version == campaign.Version && x.zone.String() == zone.String() && (x.mark == mark || !x.done.Load())
	})
	found := newCount(campaign, zone, mark)
	if i >= 0 && !again {
		found = c.list[i]
	}
	kept := []*count{found}
	for _, x := range slices.Backward(c.list) {
		same := 0
		for _, k := range kept {
			if k.key.AccountID == x.key.AccountID {
				same++
			}
		}
		if x.key != found.key && same < accountCounts && len(kept) < maxCounts {
			kept = append(kept, x)
		}
	}
	slices.Reverse(kept)
	c.list = kept
	return found
}

// old returns the names of answers to removed questions, as far as they were counted.
func (c *counts) old(campaign formsvc.CampaignKey) map[string]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	names := map[string]bool{}
	for _, x := range c.list {
		if x.key == campaign && x.mu.TryLock() {
			for name := range x.old {
				names[name] = true
			}
			x.mu.Unlock()
		}
	}
	return names
}

// A count is what was counted of a campaign's responses, from the oldest on. It keeps no text that somebody wrote.
type count struct {
	key     formsvc.CampaignKey
	version int64 // of the campaign
	zone    *time.Location
	mark    string
	done    atomic.Bool // whether all were counted

	mu        sync.Mutex
	n         int64
	last      formsvc.ID    // the last response that was counted
	days      map[int64]int // responses of a day, by its beginning in Unix time
	questions map[string]*tally
	files     bool           // whether there are questions for files
	old       map[string]int // answers to removed questions
}

// A tally is what was answered to one question.
type tally struct {
	module   *formsvc.Module
	answered int
	files    int
	others   int            // values that are no options any more
	counts   map[string]int // options, and dates
	length   int            // of the dates: days, months or years
	seen     map[string]bool
	numbers  numbers
}

func newCount(c *formsvc.Campaign, zone *time.Location, mark string) *count {
	n := &count{
		key: c.Key(), version: c.Version, zone: zone, mark: mark, days: map[int64]int{}, questions: map[string]*tally{}, old: map[string]int{},
	}
	for i := range c.Modules {
		if m := &c.Modules[i]; len(n.questions) < mostSummed {
			t := &tally{module: m, counts: map[string]int{}, seen: map[string]bool{}, length: len(time.DateOnly), numbers: numbers{counts: map[number]int{}}}
			for _, option := range m.Options {
				t.counts[option] = 0
			}
			n.questions[m.Name], n.files = t, n.files || m.Type == formsvc.FileModule
		}
	}
	return n
}

// goOn counts further responses until a time, but at least one page of them. It counts the days from first on.
func (c *count) goOn(ctx context.Context, svc *formsvc.Service, first, until time.Time) error {
	for !c.done.Load() {
		list, err := svc.Responses.List(ctx, formsvc.ResponseQuery{
			AccountID: c.key.AccountID, CampaignID: c.key.ID, NoTotal: true, Filter: formsvc.ResponseFilter{NotStatus: formsvc.StatusSpam},
			Page: formsvc.PageQuery{Limit: formsvc.MaxLimit, MaxBytes: maxPage, After: c.last, Ascending: true},
		})
		if err != nil {
			return err
		}
		for i := range list.Items {
			r := &list.Items[i]
			c.n, c.last = c.n+1, r.ID
			if !r.CreatedAt.Before(first) {
				c.days[dayOf(r.CreatedAt, c.zone).Unix()]++
			}
			if err := cmp.Or(r.Answers.Each(c.add), c.addFiles(ctx, svc, r)); err != nil {
				return err
			}
		}
		c.done.Store(!list.More)
		if !time.Now().Before(until) {
			return nil
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

// add counts the values of an answer, each once.
func (t *tally) add(values []string) {
	t.answered++
	clear(t.seen)
	other := false
	for _, value := range values {
		n, known := t.counts[value]
		switch kind := t.module.Type; {
		case kind == formsvc.NumberModule:
			t.numbers.add(value)
		case kind == formsvc.DateModule:
			t.addDate(value)
		case kind == formsvc.BooleanModule && (value == "true" || value == "false"), kind == formsvc.ChoiceModule && known:
			if !t.seen[value] {
				t.counts[value], t.seen[value] = n+1, true
			}
		default:
			other = true
		}
	}
	if other {
		t.others++
	}
}

// addDate counts a date: by days, and by months or years when those are too many.
func (t *tally) addDate(value string) {
	if _, err := time.Parse(time.DateOnly, value); err != nil {
		return
	}
	t.counts[value[:t.length]]++
	for len(t.counts) > mostDates && t.length > len("2006") {
		t.length -= len("-01")
		t.counts = shorter(t.counts, t.length)
	}
}

// shorter returns the counts of dates that are cut to a length.
func shorter(dates map[string]int, length int) map[string]int {
	cut := map[string]int{}
	for date, n := range dates {
		cut[date[:min(length, len(date))]] += n
	}
	return cut
}

// A number is one that was answered: as it was written if a float64 has fewer digits than it, otherwise "".
type number struct {
	value float64
	text  string
}

func (n number) String() string { return cmp.Or(n.text, decimal(n.value, -1)) }

func compareNumbers(a, b number) int {
	return cmp.Or(cmp.Compare(a.value, b.value), cmp.Compare(a.text, b.text))
}

// numbers counts numbers: each one while few are different, then in ranges that get wider until there are few.
type numbers struct {
	n           int
	sum         float64
	least, most number
	fraction    bool           // whether one isn't whole
	width       float64        // of the ranges; 0: none
	counts      map[number]int // by number, or by range: the number divided by the width, rounded down
}

func (s *numbers) add(text string) {
	value, err := strconv.ParseFloat(text, 64)
	if err != nil || math.Abs(value) > 1e300 {
		return
	}
	n := number{value: value}
	if digits := strings.Trim(text, "-0."); len(digits) > maxDigits && len(text) <= shownText && !strings.ContainsAny(text, "eE") {
		n.text = text
	}
	if s.n == 0 || compareNumbers(n, s.least) < 0 {
		s.least = n
	}
	if s.n == 0 || compareNumbers(n, s.most) > 0 {
		s.most = n
	}
	s.n, s.sum, s.fraction = s.n+1, s.sum+value, s.fraction || value != math.Trunc(value)
	if s.width > 0 {
		n = slot(value, s.width)
	}
	s.counts[n]++
	for len(s.counts) > mostRanges {
		s.widen()
	}
}

// widen makes the ranges wider: 1, 5, 10, 50 and so on, or fractions of them.
func (s *numbers) widen() {
	before, width := s.width, 0.0
	switch {
	case before == 0:
		before, width = 1, math.Pow10(int(math.Floor(math.Log10(max(s.most.value-s.least.value, 1e-300)/mostRanges))))
		if !s.fraction {
			width = max(width, 1)
		}
	case strings.HasPrefix(strconv.FormatFloat(before, 'e', -1, 64), "5"):
		width = before * 2
	default:
		width = before * 5
	}
	counts := map[number]int{}
	for at, n := range s.counts {
		counts[slot(at.value*before, width)] += n
	}
	s.counts, s.width = counts, width
}

// slot returns the number of the range that has a value. It forgives the rounding of fractions.
func slot(value, width float64) number { return number{value: math.Floor(value/width + 1e-9)} }

// about returns the range of the numbers in words, or "" if there are none.
func (s *numbers) about() string {
	if s.n == 0 {
		return ""
	}
	average := s.sum / float64(s.n)
	places := max(2, 3-int(math.Floor(math.Log10(max(math.Abs(average), 1e-9))))) // at least four digits
	return "From " + s.least.String() + " to " + s.most.String() + ", on average " + decimal(average, places) + "."
}

// each calls add with every number or range in order.
func (s *numbers) each(add func(text string, n int)) {
	places := max(0, -int(math.Floor(math.Log10(max(s.width, 1e-300)))))
	for _, at := range slices.SortedFunc(maps.Keys(s.counts), compareNumbers) {
		text := at.String()
		if from, to := at.value*s.width, (at.value+1)*s.width; s.width > 0 {
			text = decimal(from, places) + " to below " + decimal(to, places)
			if !s.fraction {
				text = decimal(from, 0) + " to " + decimal(to-1, 0)
			}
		}
		add(text, s.counts[at])
	}
}

// decimal writes a number in plain digits, with up to that many after the point, -1 for all. Only a number of more than 21 digits has an
// exponent.
func decimal(n float64, places int) string {
	if math.Abs(n) >= 1e21 || n != 0 && math.Abs(n) < 1e-9 {
		return strconv.FormatFloat(n, 'g', 4, 64)
	}
	text := strconv.FormatFloat(n, 'f', places, 64)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	if text == "-0" {
		return "0"
	}
	return text
}
