package console

import (
	"net/http"
	"regexp"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// zoneCookie keeps the time zone of the browser, which a script tells.
const zoneCookie = "formsvc_zone"

// zoneOf returns the time zone of the browser, or UTC if it didn't tell.
func zoneOf(r *http.Request) *time.Location {
	if cookie, err := r.Cookie(zoneCookie); err == nil {
		if zone, ok := knownZone(cookie.Value); ok {
			return zone
		}
	}
	return time.UTC
}

// knownZone returns the time zone with that name, which isn't the server's own.
func knownZone(name string) (*time.Location, bool) {
	zone, err := time.LoadLocation(name)
	return zone, err == nil && name != time.Local.String()
}

// setZone keeps the time zone that the script tells.
func (v *visit) setZone() error {
	zone, ok := knownZone(v.field("zone"))
	if !ok {
		return formsvc.ErrInvalid
	}
	v.setCookie(zoneCookie, zone.String(), v.base+"/", 400*24*time.Hour)
	v.w.WriteHeader(http.StatusNoContent)
	return nil
}

// dayOf returns the beginning of a day in a time zone: an hour after midnight if the clocks go forward then.
func dayOf(t time.Time, zone *time.Location) time.Time {
	year, month, day := t.In(zone).Date()
	start := time.Date(year, month, day, 0, 0, 0, 0, zone)
	if start.Day() != day {
		return start.Add(time.Hour)
	}
	return start
}

// typedLayout is how forms have a time.
const typedLayout = "2006-01-02T15:04"

// dayIn parses a date, or a date and a time, in a time zone, where clocks show it. One that they show twice is the first.
func dayIn(text string, zone *time.Location) (time.Time, bool) {
	for _, layout := range []string{time.DateOnly, typedLayout, "2006-01-02T15:04:05", time.RFC3339} {
		t, err := time.ParseInLocation(layout, text, zone)
		if layout == time.DateOnly {
			t = dayOf(t.Add(time.Hour), zone) // t may be in the day before
		}
		_, offset := t.Zone()
		_, before := t.Add(-3 * time.Hour).Zone()
		if first := t.Add(time.Duration(offset-before) * time.Second); first.Format(layout) == text && layout != time.DateOnly {
			t = first
		}
		if err == nil && t.Year() >= 1970 && (layout == time.RFC3339 || t.Format(layout) == text) {
			return t, true
		}
	}
	return time.Time{}, false
}

// badDay says how to enter a date.
func badDay(zone *time.Location) string {
	return "Enter a date such as 2026-11-21, or with a time such as 2026-11-21T08:30, in the time zone " + zone.String() + "."
}

// dayText returns a date, with the time unless that is midnight, for people.
func (v *visit) dayText(t time.Time) string {
	if t = t.In(v.zone); t.Equal(dayOf(t, v.zone)) {
		return t.Format("2 Jan 2006")
	}
	return t.Format(formsvc.ShownTime)
}

// typedIn returns a time in the format of a form.
func typedIn(t time.Time, zone *time.Location) string {
	if t.IsZero() {
		return ""
	}
	return t.In(zone).Format(typedLayout)
}

// clock returns the time of day.
func (v *visit) clock(t time.Time) string {
	return t.In(v.zone).Format("15:04 ") + formsvc.ZoneName(t.In(v.zone))
}

// isoTime formats a time for scripts.
func isoTime(t time.Time) string { return t.UTC().Format(isoLayout) }

const isoLayout = "2006-01-02T15:04:05.000Z"

// shownTimes finds the times that templates have written, which are in UTC.
var shownTimes = regexp.MustCompile(`(<time datetime="([^"]+)" title=")[^"]*">[^<]*<`)

// localTimes writes the times of a page in the visitor's time zone.
func (v *visit) localTimes(page []byte) []byte {
	if v.zone == time.UTC {
		return page
	}
	return shownTimes.ReplaceAllFunc(page, func(found []byte) []byte {
		parts := shownTimes.FindSubmatch(found)
		at, err := time.Parse(isoLayout, string(parts[2]))
		if err != nil {
			return found
		}
		at = at.In(v.zone)
		return []byte(string(parts[1]) + at.Format(time.DateTime) + " " + formsvc.ZoneName(at) + `">` + at.Format(formsvc.ShownTime) + "<")
	})
}
