package console

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/formsvc/toolkit/formsvc"
)

// linesAsStored is asStored for a list with a value in each line.
func linesAsStored(typed string, stored []string) []string {
	list := lines(typed)
	for i, line := range list {
		at := slices.IndexFunc(stored, func(s string) bool { return strings.TrimSpace(s) == line })
		if at >= 0 && !slices.Contains(stored, line) {
			list[i] = stored[at]
		}
	}
	return list
}

// inOrder returns what was ticked in its stored order, and what is new at the end.
func inOrder(ticked, stored []string) []string {
	list := slices.DeleteFunc(slices.Clone(stored), func(s string) bool { return !slices.Contains(ticked, s) })
	for _, s := range ticked {
		if !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list
}

// unlisted reports whether a campaign has a choice that can't be a line of its own.
func unlisted(c *formsvc.Campaign) bool {
	bad := func(s string) bool { return strings.TrimSpace(s) == "" || strings.ContainsAny(s, "\r\n") }
	return slices.ContainsFunc(c.Modules, func(m formsvc.Module) bool {
		return slices.ContainsFunc(m.Options, func(value string) bool { return bad(m.Shown(value)) }) || m.ShowIf != nil && slices.ContainsFunc(m.ShowIf.Equals, bad)
	})
}

// named returns the question with that name, or nil.
func named(list []formsvc.Module, name string) *formsvc.Module {
	if i := slices.IndexFunc(list, func(m formsvc.Module) bool { return m.Name == name }); i >= 0 {
		return &list[i]
	}
	return nil
}

// labelIn returns the label of a question, or its name.
func labelIn(list []formsvc.Module, name string) string {
	if m := named(list, name); m != nil {
		return cmp.Or(m.Label, name)
	}
	return name
}

// valuesOf returns the values that people may have typed as they read them.
func valuesOf(m *formsvc.Module, typed []string) []string {
	list := slices.Clone(typed)
	for i, text := range list {
		if said := map[string]string{"yes": "true", "no": "false"}[strings.ToLower(text)]; (m.Type == formsvc.BooleanModule || m.Type == formsvc.ConsentModule) && said != "" {
			list[i] = said
		}
		if at := slices.IndexFunc(m.Options, func(value string) bool { return m.Shown(value) == text }); at >= 0 && !slices.Contains(m.Options, text) {
			list[i] = m.Options[at]
		}
	}
	return list
}

// shownAll returns values as people read them.
func shownAll(m *formsvc.Module, values []string) []string {
	list := make([]string, len(values))
	for i, value := range values {
		list[i] = m.Shown(value)
	}
	return list
}

// choose gives a module the choices with these labels. was has those that the page was shown with. A renamed choice keeps its value if keeps says
// so, or if it had a label already. choose returns the other values that were renamed.
func choose(m, was *formsvc.Module, shown []string, keeps func(value string) bool) (renamed map[string]string) {
	renamed = map[string]string{}
	m.Options, m.Labels = nil, map[string]string{}
	old := shownAll(was, was.Options)
	of, kept := follow(old, shown), map[string]bool{}
	for _, at := range of {
		if at >= 0 {
			kept[was.Options[at]] = true
		}
	}
	for i, at := range of {
		value, label := shown[i], shown[i]
		if at >= 0 {
			value = was.Options[at]
			if strings.TrimSpace(old[at]) == label {
				label = old[at] // with spaces that the page doesn't have
			} else if was.Labels[value] == "" && !keeps(value) {
				renamed[value], value = label, label
			}
		}
		for n := 2; at < 0 && kept[value]; n++ {
			value = label + "_" + strconv.Itoa(n)
		}
		kept[value] = true
		if m.Options = append(m.Options, value); label != value || was.Labels[value] == value {
			m.Labels[value] = label
		}
	}
	return renamed
}

// follow returns the place among the old labels that each label had, -1 for a new one. Between two labels that are still there, as many new
// ones as old ones that are gone are renames.
func follow(old, labels []string) []int {
	at, left := make([]int, len(labels)), slices.Clone(old)
	for i, label := range labels {
		at[i] = slices.IndexFunc(left, func(s string) bool { return strings.TrimSpace(s) == label })
		if at[i] >= 0 {
			left[at[i]] = "" // no label is blank
		}
	}
	from := 0 // after the last label that is still there
	for i := 0; i < len(labels); i++ {
		if at[i] >= 0 {
			from = at[i] + 1
			continue
		}
		next, to := i, len(old)
		for next < len(labels) && at[next] < 0 {
			next++
		}
		if next < len(labels) {
			to = at[next]
		}
		if to-from == next-i && !slices.Contains(left[from:to], "") {
			for n := range to - from {
				at[i+n] = from + n
			}
		}
		i = next - 1
	}
	return at
}
