package formsvc

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxPlaces is the upper limit of [Form].MaxResponses and of [Module].Places.
const maxPlaces = 1_000_000

// A Place is one of a limited number that responses to a campaign take. Spam takes none, and a place is free again at once
// when its response is removed or changed.
type Place struct {
	Key  string // "" for the responses of the campaign that aren't spam; otherwise a hash of what is limited
	Max  int    // how many there are; negative if the response takes it in any case
	Full error  // the store's error if all are taken
}

// A FullError says which field of a response needs a place that isn't left. It is [ErrChoiceFull] or [ErrAlreadyAnswered].
type FullError struct {
	Pointer string // a JSON Pointer, as in a [FieldError]
	Err     error
}

// Error returns the field with the cause.
func (e *FullError) Error() string { return e.Pointer + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *FullError) Unwrap() error { return e.Err }

// Places are how many places of a campaign are left.
type Places struct {
	Most, Left int64                       // of all responses; Most is 0 without a limit
	Choices    map[string]map[string]int64 // how many are left of those with a limit, by module and value
}

// None reports whether the campaign takes no more responses.
func (p *Places) None() bool { return p.Most > 0 && p.Left == 0 }

// Limited reports whether responses take places.
func (in *CampaignInput) Limited() bool {
	return in.Form.MaxResponses > 0 || in.Form.OncePerEmail || slices.ContainsFunc(in.Modules, func(m Module) bool { return len(m.Places) > 0 })
}

// keyed returns the limits whose places stores count by key, so that they have to be counted again when these change.
func (in *CampaignInput) keyed() (keys []string) {
	if in.Form.OncePerEmail {
		keys = append(keys, "")
	}
	for i := range in.Modules {
		for value := range in.Modules[i].Places {
			keys = append(keys, placeKey(in.Modules[i].Name, value))
		}
	}
	slices.Sort(keys)
	return keys
}

// placeKey returns the key of a place. A hash has one length, and doesn't show addresses.
func placeKey(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return base64.RawURLEncoding.EncodeToString(sum[:18])
}

// takes returns the places of a response: nil if the campaign has no limits.
func (c *Campaign) takes(r *Response) []Place {
	if !c.Limited() {
		return nil
	}
	list := []Place{}
	if r.Status == StatusSpam {
		return list
	}
	if most := c.Form.MaxResponses; most > 0 {
		list = append(list, Place{"", most, ErrCampaignFull})
	}
	if c.Form.OncePerEmail && r.User.Email != "" {
		list = append(list, Place{placeKey("", string(c.ID), FoldEmail(r.User.Email)), 1, &FullError{"/user/email", ErrAlreadyAnswered}})
	}
	for i := range c.Modules {
		m := &c.Modules[i]
		if len(m.Places) == 0 {
			continue
		}
		values, _ := r.Answers.Get(m.Name)
		seen := make(map[string]bool, len(values))
		for n, value := range values {
			if most, limited := m.Places[value]; limited && !seen[value] {
				at := "/responses/" + pointerEscape(m.Name) + "/value/" + strconv.Itoa(n)
				list = append(list, Place{placeKey(m.Name, value), most, &FullError{at, ErrChoiceFull}})
			}
			seen[value] = true
		}
	}
	return list
}

// moves returns the places of a response that changes. Those that it has already aren't asked for.
func (c *Campaign) moves(before, after *Response) []Place {
	list := c.takes(after)
	has := make(map[string]bool)
	for _, p := range c.takes(before) {
		has[p.Key] = true
	}
	return anyCase(list, has)
}

// anyCase makes places ones that are taken in any case: those in has, or all if that is nil.
func anyCase(list []Place, has map[string]bool) []Place {
	for i := range list {
		if has == nil || has[list[i].Key] {
			list[i].Max = -1
		}
	}
	return list
}

// recount returns the function for [Change].Recount if the limits of a campaign have changed.
func (c *Campaign) recount(before *CampaignInput) func(*Response) []Place {
	keys := c.keyed()
	if len(keys) == 0 || slices.Equal(keys, before.keyed()) {
		return nil
	}
	return func(r *Response) []Place { return c.takes(r) }
}

// Places returns how many places of a campaign are left now. It reads nothing for a campaign without limits.
func (s Responses) Places(ctx context.Context, c *Campaign) (p Places, err error) {
	defer wrap(&err, "places")
	var keys []string
	if c.Form.MaxResponses > 0 {
		keys = append(keys, "")
	}
	for i := range c.Modules {
		for value := range c.Modules[i].Places {
			keys = append(keys, placeKey(c.Modules[i].Name, value))
		}
	}
	if len(keys) == 0 {
		return p, nil
	}
	taken, err := s.s.store.Taken(ctx, c.Key(), keys)
	if err != nil {
		return p, err
	}
	p.Most, p.Choices = int64(c.Form.MaxResponses), make(map[string]map[string]int64)
	p.Left = max(p.Most-taken[""], 0)
	for i := range c.Modules {
		m := &c.Modules[i]
		left := make(map[string]int64, len(m.Places))
		for value, most := range m.Places {
			left[value] = max(int64(most)-taken[placeKey(m.Name, value)], 0)
		}
		p.Choices[m.Name] = left
	}
	return p, nil
}

// checkPlaces notes what is wrong with the limits of a campaign, and drops empty ones.
func (e *ValidationError) checkPlaces(in *CampaignInput) {
	if in.Form.MaxResponses < 0 || in.Form.MaxResponses > maxPlaces {
		e.add("/form/maxResponses", "out_of_range", "must be between 0 and %d", maxPlaces)
	}
	if in.Form.OncePerEmail && in.EmailOptional {
		e.add("/form/oncePerEmail", "invalid_value", "must be false unless the campaign requires an e-mail address")
	}
	for i := range in.Modules {
		m, pointer := &in.Modules[i], "/modules/"+strconv.Itoa(i)+"/places"
		if len(m.Places) > 0 && m.Type != ChoiceModule {
			e.add(pointer, "not_applicable", "applies to choice only")
		}
		if m.Type != ChoiceModule || len(m.Places) == 0 {
			m.Places = nil
			continue
		}
		m.Places = maps.Clone(m.Places)
		for _, value := range slices.Sorted(maps.Keys(m.Places)) {
			at := pointer + "/" + pointerEscape(value)
			if !slices.Contains(m.Options, value) {
				e.add(at, "unknown_option", "must be one of the module's options")
			} else if n := m.Places[value]; n < 0 || n > maxPlaces {
				e.add(at, "out_of_range", "must be between 0 and %d", maxPlaces)
			}
		}
	}
	if _, err := in.Zone(); err != nil {
		e.add("/timeZone", "unknown_time_zone", "must be empty or the name of a time zone such as Europe/Berlin")
	}
}

// Zone returns the time zone of the campaign. It fails if there is none of that name.
func (in *CampaignInput) Zone() (*time.Location, error) {
	if in.TimeZone == "Local" { // the server's
		return nil, errors.New("the name of a time zone is required")
	}
	return time.LoadLocation(in.TimeZone)
}
