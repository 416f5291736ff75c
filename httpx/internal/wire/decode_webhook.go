package wire

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/formsvc/toolkit/formsvc"
)

type webhookBody struct {
	URL        text                     `json:"url"`
	Events     texts[formsvc.EventType] `json:"events"`
	CampaignID formsvc.ID               `json:"campaignUuid"`
	Secret     *text                    `json:"secret"`
	Headers    headersBody              `json:"headers"`
	Disabled   bool                     `json:"disabled"`
	Mail       struct {
		Daily       bool    `json:"daily"`
		ReplyTo     bool    `json:"replyTo"`
		ConfirmedAt ignored `json:"confirmedAt"`
	} `json:"mail"`
}

// A webhookReplacement may also have what the server sets, as in its reply.
type webhookReplacement struct {
	webhookBody `json:",inline"`

	UUID      ignored `json:"uuid"`
	Expires   ignored `json:"previousSecretExpiresAt"`
	Warnings  ignored `json:"warnings"`
	CreatedAt ignored `json:"createdAt"`
	UpdatedAt ignored `json:"updatedAt"`
}

// headersBody is an object of strings, in which null keeps the value that the webhook has; null for the object means absent.
// It is sorted, since fields of an object have no order.
type headersBody []formsvc.HeaderInput

func (l *headersBody) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if null(dec) {
		return nil
	}
	err := members(dec, "must be an object", func(name string) (err error) {
		h := formsvc.HeaderInput{Name: name}
		if h.Keep = null(dec); !h.Keep {
			h.Value, err = readText[string](dec)
		}
		*l = append(*l, h)
		return err
	})
	slices.SortStableFunc(*l, func(a, b formsvc.HeaderInput) int {
		return cmp.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name))
	})
	return err
}

// WebhookInput decodes the body of a POST, or of a PUT when replace is true.
func (d *Body) WebhookInput(replace bool) (formsvc.WebhookInput, error) {
	var body webhookReplacement
	var err error
	if replace {
		err = d.decode(&body)
	} else {
		err = d.decode(&body.webhookBody)
	}
	return formsvc.WebhookInput{
		URL: string(body.URL), Events: body.Events, CampaignID: body.CampaignID, Secret: d.secret(body.Secret), Headers: body.Headers,
		Disabled: body.Disabled, Mail: formsvc.MailInput{Daily: body.Mail.Daily, ReplyTo: body.Mail.ReplyTo},
	}, err
}

// secret returns a secret; nil means absent. It notes an empty one: that would mean absent too, and the client would expect
// signatures with a secret that isn't in use.
func (d *Body) secret(s *text) string {
	if s == nil {
		return ""
	}
	if *s == "" {
		d.Noted.Add("/secret", "out_of_range", "must have between 1 and 256 bytes")
	}
	return string(*s)
}

// Nothing decodes an empty object or an absent body.
func (d *Body) Nothing() error {
	if d.none() {
		return nil
	}
	return d.decode(new(struct{}))
}

// Rotation decodes the body of a rotation, which may be absent.
func (d *Body) Rotation() (formsvc.Rotation, error) {
	r := formsvc.Rotation{Grace: formsvc.DefaultGrace}
	if d.none() {
		return r, nil
	}
	var body struct {
		Secret *text  `json:"secret"`
		Grace  *int32 `json:"gracePeriodSeconds"`
	}
	err := d.decode(&body)
	r.Secret = d.secret(body.Secret)
	if body.Grace != nil {
		r.Grace = time.Duration(*body.Grace) * time.Second
	}
	return r, err
}

// Since decodes the body of a redelivery.
func (d *Body) Since() (time.Time, error) {
	var body struct {
		Since member[time.Time] `json:"since"`
	}
	switch err := d.decode(&body); {
	case err != nil:
		return time.Time{}, err
	case body.Since.null:
		return time.Time{}, unfit("/since", "invalid_type", "must be a string")
	case !body.Since.there:
		return time.Time{}, &formsvc.ValidationError{Fields: []formsvc.FieldError{{Pointer: "/since", Code: "required", Detail: "is required"}}}
	}
	return body.Since.value, nil
}
