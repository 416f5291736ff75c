package console

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// readLimits reads how many responses a campaign takes, and its opening times in its time zone. Text that can't be read is an error of its field.
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
		text, was := v.field(name), *at
		if text == typedIn(was, zone) {
			continue // the form has no seconds
		}
		var ok bool
		if *at, ok = dayIn(text, zone); ok && text == typedIn(was, before) {
			*at = at.Add(was.Sub(was.Truncate(time.Minute)))
		}
		if ok || text == "" {
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

// Zone returns the name of the time zone of an opening time, with what clocks show then.
func (f campaignForm) Zone(page *page, at time.Time) string {
	zone := page.visit.zoneFor(&f.CampaignInput)
	if at.IsZero() || zone == time.UTC {
		return zone.String()
	}
	return zone.String() + ", " + formsvc.ZoneName(at.In(zone))
}

// readPlaces reads the places of the choices that the page was shown with. renamed has the new values of those that were renamed.
func (v *visit) readPlaces(m, was *formsvc.Module, i int, renamed map[string]string) map[string]int {
	places := map[string]int{}
	for n, value := range was.Options {
		text := v.field(fmt.Sprintf("places.%d.%d", i, n))
		if value = cmp.Or(renamed[value], value); text == "" || !slices.Contains(m.Options, value) {
			continue
		}
		most, err := strconv.Atoi(text)
		if err != nil {
			most = -1 // is refused
		}
		places[value] = most
	}
	return places
}

// placesLeft says how many places are left of each choice that has a limit.
func (v *visit) placesLeft() (list []string, err error) {
	left, err := v.svc.Responses.Places(v.ctx(), &v.campaign)
	for _, m := range v.campaign.Modules {
		for _, value := range m.Options {
			if most, limited := m.Places[value]; limited {
				n := left[formsvc.Limited{Module: m.Name, Value: value}]
				list = append(list, fmt.Sprintf("%s, %s: %d of %d", short(60, cmp.Or(m.Label, m.Name)), short(60, m.Shown(value)), n, most))
			}
		}
	}
	return list, err
}
