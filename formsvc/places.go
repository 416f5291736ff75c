package formsvc

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
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

// A Recount makes stores count the places of a campaign again.
type Recount struct {
	Campaign CampaignKey
	Places   func(*Response) []Place // returns those of a response
}

// A Limited is what a campaign has a number of places for: a choice, or without a name all responses.
type Limited struct{ Module, Value string }

// limits returns how many places a campaign has.
func (in *CampaignInput) limits() map[Limited]int {
	most := make(map[Limited]int)
	if in.Form.MaxResponses > 0 {
		most[Limited{}] = in.Form.MaxResponses
	}
	for i := range in.Modules {
		for value, n := range in.Modules[i].Places {
			most[Limited{in.Modules[i].Name, value}] = n
		}
	}
	return most
}

// HasPlaces reports whether the campaign has a limited number of places, for all responses or for a choice.
func (in *CampaignInput) HasPlaces() bool { return len(in.limits()) > 0 }

// key returns the key of a place. A hash has one length, and doesn't show addresses.
func (l Limited) key() string {
	if l == (Limited{}) {
		return ""
	}
	sum := sha256.Sum256([]byte(l.Module + "\x00" + l.Value))
	return base64.RawURLEncoding.EncodeToString(sum[:18])
}

// takes returns the places of a response: nil if the campaign has no limits.
func (c *Campaign) takes(r *Response) []Place {
	once := c.Form.OncePerEmail
	if !once && !c.HasPlaces() {
		return nil
	}
	list := []Place{}
	if r.Status == StatusSpam {
		return list
	}
	if most := c.Form.MaxResponses; most > 0 {
		list = append(list, Place{"", most, ErrCampaignFull})
	}
	if once && r.User.Email != "" {
		of := Limited{"", string(c.ID) + FoldEmail(r.User.Email)} // no module has this name
		list = append(list, Place{of.key(), 1, fullAt(ErrAlreadyAnswered, "/user/email", "already_answered", "has answered already")})
	}
	for i := range c.Modules {
		m := &c.Modules[i]
		if len(m.Places) == 0 {
			continue
		}
		values, _ := r.Answers.Get(m.Name)
		for n, value := range values {
			if most, limited := m.Places[value]; limited && slices.Index(values, value) == n {
				at := "/responses/" + pointerEscape(m.Name) + "/value/" + strconv.Itoa(n)
				list = append(list, Place{Limited{m.Name, value}.key(), most, fullAt(ErrChoiceFull, at, "choice_full", "has no places left")})
			}
		}
	}
	return list
}

// fullAt returns the error for a field that needs a place which isn't left.
func fullAt(full error, pointer, code, detail string) error {
	return fmt.Errorf("%w: %w", full, invalid(pointer, code, detail))
}

// moves returns the places of a response that changes. Those that it has already aren't asked for.
func (c *Campaign) moves(before, after *Response) []Place {
	list, has := c.takes(after), c.takes(before)
	for i := range list {
		if slices.ContainsFunc(has, func(p Place) bool { return p.Key == list[i].Key }) {
			list[i].Max = -1
		}
	}
	return list
}

// recount returns what counts the places of a campaign again, if what stores count by key has changed.
func (c *Campaign) recount(before *CampaignInput) *Recount {
	now, then := c.limits(), before.limits()
	delete(now, Limited{})
	delete(then, Limited{})
	same := maps.EqualFunc(now, then, func(int, int) bool { return true }) && c.Form.OncePerEmail == before.Form.OncePerEmail
	if same || len(now) == 0 && !c.Form.OncePerEmail {
		return nil
	}
	return &Recount{c.Key(), c.takes}
}

// Places returns how many places of a campaign are left now, of those that have a limit. It reads nothing without any.
func (s Responses) Places(ctx context.Context, c *Campaign) (left map[Limited]int64, err error) {
	defer wrap(&err, "places")
	most := c.limits()
	left = make(map[Limited]int64, len(most))
	if len(most) == 0 {
		return left, nil
	}
	var keys []string
	for of := range most {
		keys = append(keys, of.key())
	}
	taken, err := s.s.store.Taken(ctx, c.Key(), keys)
	for of, n := range most {
		left[of] = max(int64(n)-taken[of.key()], 0)
	}
	return left, err
}

// checkPlaces notes what is wrong with the limits of a campaign.
func (e *ValidationError) checkPlaces(in *CampaignInput) {
	if in.Form.MaxResponses < 0 || in.Form.MaxResponses > maxPlaces {
		e.add("/form/maxResponses", "out_of_range", "must be between 0 and %d", maxPlaces)
	}
	if in.Form.OncePerEmail && in.EmailOptional {
		e.add("/form/oncePerEmail", "invalid_value", "must be false unless the campaign requires an e-mail address")
	}
	for i := range in.Modules {
		m, pointer := &in.Modules[i], fmt.Sprintf("/modules/%d/places", i)
		if m.Places = maps.Clone(m.Places); len(m.Places) == 0 {
			m.Places = nil
		} else if m.Type != ChoiceModule {
			e.add(pointer, "not_applicable", "applies to choice only")
			continue
		}
		for _, value := range slices.Sorted(maps.Keys(m.Places)) {
			at := pointer + "/" + pointerEscape(value)
			if !slices.Contains(m.Options, value) {
				e.add(at, "unknown_option", "must be one of the module's options")
			} else if n := m.Places[value]; n < 1 || n > maxPlaces {
				e.add(at, "out_of_range", "must be between 1 and %d", maxPlaces)
			}
		}
	}
}

// Zone returns the time zone of the campaign. It fails if there is none of that name.
func (in *CampaignInput) Zone() (*time.Location, error) {
	if in.TimeZone == "Local" { // the server's
		return nil, errors.New("the name of a time zone is required")
	}
	return time.LoadLocation(in.TimeZone)
}

// ZoneName returns the abbreviation of a time's zone, such as CET, or if that has no letters, its offset such as UTC-03.
func ZoneName(t time.Time) string {
	return strings.NewReplacer("+", "UTC+", "-", "UTC-").Replace(t.Format("MST"))
}
