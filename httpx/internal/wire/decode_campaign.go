package wire

import (
	"cmp"
	"encoding/base64"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/formsvc/toolkit/formsvc"
)

type campaignBody struct {
	Title        text               `json:"title"`
	Description  optional           `json:"description"`
	Status       word               `json:"status"`
	OpensAt      timestamp          `json:"opensAt"`
	ClosesAt     timestamp          `json:"closesAt"`
	RequireEmail *bool              `json:"requireEmail"`
	RequireName  bool               `json:"requireName"`
	Modules      *array[moduleBody] `json:"modules"`
	Metadata     pairs              `json:"metadata"`
	Workflow     optional           `json:"workflow"`
	TimeZone     optional           `json:"timeZone"`
}

type campaignCreation struct {
	campaignBody `json:",inline"`

	Form formBody `json:"form"`
}

// A campaignReplacement may also have what the server sets, as in its reply.
type campaignReplacement struct {
	campaignBody `json:",inline"`

	Form struct {
		formBody `json:",inline"`

		Token ignored `json:"token"`
		URL   ignored `json:"url"`
	} `json:"form"`

	UUID          ignored `json:"uuid"`
	ResponseCount ignored `json:"responseCount"`
	CreatedAt     ignored `json:"createdAt"`
	UpdatedAt     ignored `json:"updatedAt"`
}

type formBody struct {
	Enabled        bool         `json:"enabled"`
	Description    optional     `json:"description"`
	SuccessMessage optional     `json:"successMessage"`
	RedirectURL    optional     `json:"redirectUrl"`
	AllowedOrigins *array[text] `json:"allowedOrigins"`
	Language       optional     `json:"language"`
	HideName       bool         `json:"hideName"`
	MaxResponses   int32        `json:"maxResponses"`
	OncePerEmail   bool         `json:"oncePerEmail"`

	Confirmation plain[formsvc.Confirmation] `json:"confirmation"`
	Prefill      *array[text]                `json:"prefill"`
	Theme        plain[formsvc.FormTheme]    `json:"theme"`
	Texts        plain[formsvc.FormTexts]    `json:"texts"`
}

// A plain is a struct whose strings are optional, and whose bytes are a picture.
type plain[T any] struct{ of T }

func (p *plain[T]) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	return json.UnmarshalDecode(dec, &p.of, json.WithUnmarshalers(json.JoinUnmarshalers(
		json.UnmarshalFromFunc(func(dec *jsontext.Decoder, s *string) error { return (*optional)(s).UnmarshalJSONFrom(dec) }),
		json.UnmarshalFromFunc(func(dec *jsontext.Decoder, content *[]byte) error {
			var s optional
			err := s.UnmarshalJSONFrom(dec)
			*content = picture(s)
			return err
		}),
	)))
}

type moduleBody struct {
	Name        text               `json:"name"`
	Label       optional           `json:"label"`
	Help        optional           `json:"help"`
	Placeholder optional           `json:"placeholder"`
	Type        word               `json:"type"`
	Required    bool               `json:"required"`
	Options     *array[optionBody] `json:"options"`
	MaxLength   int32              `json:"maxLength"`
	Multiple    bool               `json:"multiple"`
	Min         bound              `json:"min"`
	Max         bound              `json:"max"`
	MinLabel    optional           `json:"minLabel"`
	MaxLabel    optional           `json:"maxLabel"`
	Integer     bool               `json:"integer"`
	Accept      *array[text]       `json:"accept"`
	Format      optional           `json:"format"`
	Default     *array[text]       `json:"default"`
	Hidden      bool               `json:"hidden"`
	Places      map[string]int     `json:"places"`
	Pattern     optional           `json:"pattern"`
	PatternHelp optional           `json:"patternHelp"`
	Other       bool               `json:"other"`
	Page        bool               `json:"page"`
	ShowIf      *struct {
		Module text        `json:"module"`
		Equals array[text] `json:"equals"`
	} `json:"showIf"`
}

// An optionBody is a choice: a string, or an object with a value and a label.
type optionBody struct {
	Value *text `json:"value"`
	Label *text `json:"label"`
}

func (o *optionBody) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	switch dec.PeekKind() {
	case jsontext.KindBeginObject:
		type object optionBody // without this method
		err := json.UnmarshalDecode(dec, (*object)(o))
		if err == nil && o.Value == nil {
			err = unfit(dec.StackPointer()+"/value", "required", "is required")
		}
		return err
	case jsontext.KindString, jsontext.KindInvalid:
		o.Value = new(text)
		return o.Value.UnmarshalJSONFrom(dec)
	}
	return wrong(dec, "must be a string, or an object with value and label")
}

// CampaignInput decodes the body of a POST, or of a PUT when replace is true.
func (d *Body) CampaignInput(replace bool) (formsvc.CampaignInput, error) {
	var body campaignReplacement
	var err error
	if replace {
		err = d.decode(&body)
	} else {
		var creation campaignCreation
		err = d.decode(&creation)
		body.campaignBody, body.Form.formBody = creation.campaignBody, creation.Form
	}
	in := formsvc.CampaignInput{
		Title: string(body.Title), Description: string(body.Description), Status: formsvc.CampaignStatus(body.Status),
		OpensAt: body.OpensAt.Time, ClosesAt: body.ClosesAt.Time, EmailOptional: body.RequireEmail != nil && !*body.RequireEmail,
		RequireName: body.RequireName, Metadata: body.Metadata, Workflow: string(body.Workflow), TimeZone: string(body.TimeZone), Form: formsvc.Form{
			Enabled: body.Form.Enabled, Description: string(body.Form.Description), SuccessMessage: string(body.Form.SuccessMessage),
			RedirectURL: string(body.Form.RedirectURL), AllowedOrigins: textsOf(body.Form.AllowedOrigins),
			Language: string(body.Form.Language), HideName: body.Form.HideName, Prefill: textsOf(body.Form.Prefill),
			Texts: body.Form.Texts.of, Theme: body.Form.Theme.of, Confirmation: body.Form.Confirmation.of,
			MaxResponses: int(body.Form.MaxResponses), OncePerEmail: body.Form.OncePerEmail,
		},
	}
	if body.Modules != nil {
		for _, m := range *body.Modules {
			in.Modules = append(in.Modules, m.module())
		}
	}
	return in, err
}

// picture decodes base64. Other texts are no pictures either, so the service refuses them with all other faults.
func picture(text optional) []byte {
	content, err := base64.StdEncoding.DecodeString(string(text))
	if err != nil {
		return []byte(text)
	}
	return content
}

func (m *moduleBody) module() formsvc.Module {
	out := formsvc.Module{
		Name: string(m.Name), Label: string(m.Label), Help: string(m.Help), Placeholder: string(m.Placeholder),
		Type: formsvc.ModuleType(cmp.Or(m.Type, "text")), Required: m.Required, MaxLength: int(m.MaxLength), Multiple: m.Multiple,
		Min: formsvc.Bound(m.Min), Max: formsvc.Bound(m.Max), Integer: m.Integer, Accept: textsOf(m.Accept),
		MinLabel: string(m.MinLabel), MaxLabel: string(m.MaxLabel), Format: string(m.Format), Default: textsOf(m.Default),
		Hidden:  m.Hidden,
		Places:  m.Places,
		Pattern: string(m.Pattern), PatternHelp: string(m.PatternHelp), Other: m.Other, Page: m.Page,
	}
	if m.Options != nil {
		out.Labels = map[string]string{}
		for _, o := range *m.Options {
			if o.Value == nil {
				continue // the body is refused
			}
			out.Options = append(out.Options, string(*o.Value))
			if o.Label != nil {
				out.Labels[string(*o.Value)] = string(*o.Label)
			}
		}
	}
	if m.ShowIf != nil {
		out.ShowIf = &formsvc.Condition{Module: string(m.ShowIf.Module), Equals: textsOf(&m.ShowIf.Equals)}
	}
	return out
}

func textsOf(texts *array[text]) (list []string) {
	if texts != nil {
		for _, s := range *texts {
			list = append(list, string(s))
		}
	}
	return list
}
