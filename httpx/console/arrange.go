package console

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/formsvc/toolkit/formsvc"
)

// A removedQuestion is what undoes a removal.
type removedQuestion struct {
	At     int
	Stored string // its name in the stored campaign
	Module formsvc.Module
}

// arrange changes the list of questions: do is "add", or "insert" with the number of the question before and a type, or "copy", "up", "down",
// "remove" or "stay" with the question's number, or "undo" for the removed one.
func (f *campaignForm) arrange(do, newType, removed string) {
	what, number, _ := strings.Cut(do, ".")
	number, kind, _ := strings.Cut(number, ".")
	i, err := strconv.Atoi(number)
	inRange := err == nil && i >= 0 && i < len(f.Modules)
	if inRange && i < len(f.places) {
		i = f.places[i]
	}
	insert := func(i int, m formsvc.Module, stored string) {
		if len(f.Modules) >= maxQuestions {
			f.Problem = fmt.Sprintf("A campaign can have %d questions here, and more over the API.", maxQuestions)
			return
		}
		f.Modules, f.stored, f.Focus, f.Open = slices.Insert(f.Modules, i, m), slices.Insert(f.stored, i, stored), i+1, 0
	}
	var m formsvc.Module
	switch {
	case what == "add":
		setType(&m, cmp.Or(number, newType, "text"))
		insert(len(f.Modules), m, "")
	case what == "insert" && inRange:
		setType(&m, cmp.Or(kind, "text"))
		insert(i+1, m, "")
	case what == "copy" && inRange:
		m = f.Modules[i]
		m.Name = f.freeName(m.Label)
		insert(i+1, m, "")
	case what == "remove" && inRange:
		text, _ := json.Marshal(removedQuestion{i, f.stored[i], f.Modules[i]}) // has no value that JSON lacks
		f.Removed = string(text)
		f.Modules, f.stored, f.Open = slices.Delete(f.Modules, i, i+1), slices.Delete(f.stored, i, i+1), 0
	case what == "undo":
		var r removedQuestion
		if json.Unmarshal([]byte(removed), &r) == nil && r.At >= 0 {
			insert(min(r.At, len(f.Modules)), r.Module, r.Stored)
		}
	case what == "up" && inRange:
		f.move(i, i-1)
	case what == "down" && inRange:
		f.move(i, i+1)
	case what == "stay" && inRange:
		f.Open = i + 1
	}
}

// move moves a question to another place, or as far as it can.
func (f *campaignForm) move(from, to int) {
	to = min(max(to, 0), len(f.Modules)-1)
	m, stored := f.Modules[from], f.stored[from]
	f.Modules = slices.Insert(slices.Delete(f.Modules, from, from+1), to, m)
	f.stored = slices.Insert(slices.Delete(f.stored, from, from+1), to, stored)
	f.Open = to + 1
	f.Said = fmt.Sprintf("“%s” is question %d of %d.", short(60, cmp.Or(m.Label, "New question")), f.Open, len(f.Modules))
}

// order puts the questions at the places that were typed. Of two that want one place, the one that was moved there comes first if it was
// moved up, and last otherwise.
func (f *campaignForm) order(v *visit) {
	n, open := len(f.Modules), f.Open
	keys, from := make([]int, n), make([]int, n)
	for i := range n {
		text := v.field("position." + strconv.Itoa(i))
		to, err := strconv.Atoi(text)
		if to = min(max(to, 1), n); err != nil {
			to = i + 1
		}
		keys[i], from[i] = 2*to+cmp.Compare(to, i+1), i
		if err != nil && text != "" {
			v.wrong[fmt.Sprintf("modules.%d.position", i)] = fmt.Sprintf("“%s” is no place in the list.", short(20, text))
		}
	}
	slices.SortStableFunc(from, func(a, b int) int { return keys[a] - keys[b] })
	modules, stored := slices.Clone(f.Modules), slices.Clone(f.stored)
	f.places = make([]int, n)
	for place, i := range from {
		f.Modules[place], f.stored[place], f.places[i] = modules[i], stored[i], place
		if open == i+1 {
			f.Open = place + 1
		}
	}
	if !slices.IsSorted(from) {
		f.Said = "The questions have a new order."
	}
}
