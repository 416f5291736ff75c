package console

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// readLimits reads how many responses a campaign takes, and its opening times in its time zone. What can't be read is an error of its field.
func (f *campaignForm) readLimits(v *visit) {
	before := v.zoneFor(&f.CampaignInput)
	if v.r.PostForm.Has("timeZone") {
		f.TimeZone, f.Most, f.Form.OncePerEmail = v.field("timeZone"), v.field("maxResponses"), v.field("oncePerEmail") != ""
		var err error
		if f.Form.MaxResponses, err = strconv.Atoi(cmp.Or(f.Most, "0")); err != nil {
			v.wrong["form.maxResponses"] = "Enter a whole number such as 100, or nothing for any number."
		}
	}
	zone := v.zoneFor(&f.CampaignInput)
	for name, at := range map[string]*time.Time{"opensAt": &f.OpensAt, "closesAt": &f.ClosesAt} {
		text := v.field(name)
		if zone.String() == before.String() && text == typedIn(*at, zone) {
			continue // the form has no seconds
		}
		var ok bool
		if *at, ok = dayIn(text, zone); ok || text == "" {
			continue
		}
		v.wrong[name] = badDay(zone)
		if day, err := time.ParseInLocation(typedLayout, text, zone); err == nil && day.Format(typedLayout) != text {
			v.wrong[name] = "The clocks of " + zone.String() + " go forward then, so there is no such time. Enter one that is an hour earlier or later."
		}
	}
}

// zoneFor returns the time zone for the opening times of a campaign: its own, or the visitor's.
func (v *visit) zoneFor(in *formsvc.CampaignInput) *time.Location {
	if zone, err := in.Zone(); err == nil && in.TimeZone != "" {
		return zone
	}
	return v.zone
}

// Zone returns the name of the time zone of the opening times.
func (f campaignForm) Zone(page *page) string { return page.visit.zoneFor(&f.CampaignInput).String() }

// readPlaces returns the places of a choice that has a line for each, such as "Morning: 20". was has the choices that the page was shown
// with, and renamed the new values of those that were renamed. A line that can't be read becomes a value that is refused.
func readPlaces(m, was *formsvc.Module, renamed map[string]string, text string) map[string]int {
	places := map[string]int{}
	valueOf := func(m *formsvc.Module, label string) (value string, ok bool) {
		i := slices.IndexFunc(m.Options, func(value string) bool { return strings.TrimSpace(m.Shown(value)) == label })
		if i < 0 {
			return "", false
		}
		return m.Options[i], true
	}
	for _, line := range lines(text) {
		at := max(strings.LastIndexByte(line, ':'), 0)
		label := strings.TrimSpace(line[:at])
		n, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(line[at:], ":")))
		value, ok := valueOf(m, label)
		if !ok && err == nil {
			if old, had := valueOf(was, label); had {
				value, ok = cmp.Or(renamed[old], old), true
				if !slices.Contains(m.Options, value) {
					continue // it was removed
				}
			}
		}
		if !ok || err != nil {
			value, n = line, -1
		}
		places[value] = n
	}
	return places
}

// PlaceLines returns the places of a choice for the page, as readPlaces reads them.
func (f campaignForm) PlaceLines(m formsvc.Module) string {
	var list []string
	for _, value := range m.Options {
		if n, limited := m.Places[value]; limited {
			list = append(list, m.Shown(value)+": "+strconv.Itoa(n))
		}
	}
	for _, line := range slices.Sorted(maps.Keys(m.Places)) {
		if !slices.Contains(m.Options, line) {
			list = append(list, line)
		}
	}
	return strings.Join(list, "\n")
}

// A placesLeft says how many places a choice has left.
type placesLeft struct {
	Question, Choice string
	Left             int64
	Most             int
}

// placesLeft returns how many places the choices of the campaign have left.
func (v *visit) placesLeft() (list []placesLeft, err error) {
	p, err := v.svc.Responses.Places(v.ctx(), &v.campaign)
	for i := range v.campaign.Modules {
		m := &v.campaign.Modules[i]
		for _, value := range m.Options {
			if left, limited := p.Choices[m.Name][value]; limited {
				list = append(list, placesLeft{short(60, cmp.Or(m.Label, m.Name)), short(60, m.Shown(value)), left, m.Places[value]})
			}
		}
	}
	return list, err
}

// limitsIn returns the limits of a campaign in words.
func limitsIn(in *formsvc.CampaignInput) string {
	text := "any number"
	if in.Form.MaxResponses > 0 {
		text = fmt.Sprint("at most ", in.Form.MaxResponses)
	}
	return text + map[bool]string{true: ", one for each address"}[in.Form.OncePerEmail]
}
