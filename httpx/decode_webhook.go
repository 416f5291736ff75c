package httpx

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// webhookInput decodes the body of a POST, or of a PUT when replace is true.
func (d *decoder) webhookInput(replace bool) (in formsvc.WebhookInput, err error) {
	if d.open() {
		for d.member() {
			d.webhookMember(&in, replace)
		}
	}
	return in, d.close()
}

func (d *decoder) webhookMember(in *formsvc.WebhookInput, replace bool) {
	switch string(d.name) {
	case "url":
		in.URL, _ = d.string()
	case "events":
		for _, s := range d.stringList() {
			in.Events = append(in.Events, formsvc.EventType(s))
		}
	case "campaignUuid":
		in.CampaignID = d.optionalID()
	case "secret":
		in.Secret = d.secret()
	case "headers":
		in.Headers = d.headers()
	case "disabled":
		in.Disabled = d.optionalBool()
	case "uuid", "previousSecretExpiresAt", "warnings", "createdAt", "updatedAt":
		if replace {
			d.skip()
			return
		}
		d.unknown()
	default:
		d.unknown()
	}
}

// secret reads a secret; null means absent. It refuses an empty secret: it would mean absent too, and the client would
// expect signatures with a secret that isn't in use.
func (d *decoder) secret() string {
	if d.null() {
		return ""
	}
	s, ok := d.string()
	if ok && s == "" {
		d.note("out_of_range", "must have between 1 and 256 bytes")
	}
	return s
}

// headers reads an object of strings, in which null keeps the value that the webhook has. It sorts them, since fields
// of an object have no order.
func (d *decoder) headers() []formsvc.HeaderInput {
	if d.null() || !d.object() {
		return nil
	}
	var list []formsvc.HeaderInput
	for n := 0; d.member(); n++ {
		if n == maxMembers {
			d.overflow()
			break
		}
		h := formsvc.HeaderInput{Name: d.strings.string(d.name)}
		if h.Keep = d.null(); !h.Keep {
			h.Value, _ = d.string()
		}
		list = append(list, h)
	}
	slices.SortStableFunc(list, func(a, b formsvc.HeaderInput) int {
		return cmp.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name))
	})
	return list
}

// nothing decodes an empty object or an absent body.
func (d *decoder) nothing() error {
	if d.none() {
		return nil
	}
	if d.open() {
		for d.member() {
			d.unknown()
		}
	}
	return d.close()
}

// rotation decodes the body of a rotation, which may be absent.
func (d *decoder) rotation() (formsvc.Rotation, error) {
	r := formsvc.Rotation{Grace: formsvc.DefaultGrace}
	if d.none() {
		return r, nil
	}
	if d.open() {
		for d.member() {
			switch string(d.name) {
			case "secret":
				r.Secret = d.secret()
			case "gracePeriodSeconds":
				if !d.null() {
					r.Grace = time.Duration(d.optionalInt()) * time.Second
				}
			default:
				d.unknown()
			}
		}
	}
	return r, d.close()
}

// since decodes the body of a redelivery.
func (d *decoder) since() (t time.Time, err error) {
	if !d.open() {
		return t, d.close()
	}
	there := false
	for d.member() {
		if string(d.name) != "since" {
			d.unknown()
			continue
		}
		there = true
		t = d.time()
	}
	d.require(there, "/since")
	return t, d.close()
}
