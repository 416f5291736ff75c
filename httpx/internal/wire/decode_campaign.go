package wire

import (
	"cmp"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/formsvc/toolkit/formsvc"
)

// A campaignBody may also have what the server sets, as in its reply, if S is ignored and not unknown.
type campaignBody[S any] struct {
	Title        text                   `json:"title"`
	Description  string                 `json:"description"`
	Status       formsvc.CampaignStatus `json:"status"`
	OpensAt      time.Time              `json:"opensAt"`
	ClosesAt     time.Time              `json:"closesAt"`
	RequireEmail *bool                  `json:"requireEmail"`
	RequireName  bool                   `json:"requireName"`
	Modules      []formsvc.Module       `json:"modules"`
	Metadata     map[string]string      `json:"metadata"`
	Workflow     string                 `json:"workflow"`
	TimeZone     string                 `json:"timeZone"`
	Form         struct {
		formsvc.Form `json:",inline"`

		MaxResponses int32 `json:"maxResponses"`
		Token        S     `json:"token"`
		URL          S     `json:"url"`
	} `json:"form"`

	UUID          S `json:"uuid"`
	ResponseCount S `json:"responseCount"`
	CreatedAt     S `json:"createdAt"`
	UpdatedAt     S `json:"updatedAt"`
}

// CampaignInput decodes the body of a POST, or of a PUT when replace is true.
func (d *Body) CampaignInput(replace bool) (formsvc.CampaignInput, error) {
	if replace {
		return campaignInput[ignored](d)
	}
	return campaignInput[unknown](d)
}

func campaignInput[S any](d *Body) (formsvc.CampaignInput, error) {
	var body campaignBody[S]
	err := d.decode(&body)
	in := formsvc.CampaignInput{
		Title: string(body.Title), Description: body.Description, Status: body.Status, OpensAt: body.OpensAt, ClosesAt: body.ClosesAt,
		EmailOptional: body.RequireEmail != nil && !*body.RequireEmail, RequireName: body.RequireName, Modules: body.Modules,
		Metadata: body.Metadata, Workflow: body.Workflow, TimeZone: body.TimeZone, Form: body.Form.Form,
	}
	in.Form.MaxResponses = int(body.Form.MaxResponses)
	return in, err
}

// A plainModule is a module without its methods.
type plainModule formsvc.Module

type moduleBody struct {
	plainModule `json:",inline"`

	Name      text     `json:"name"`
	Options   []option `json:"options"`
	Labels    unknown  `json:"labels"`
	MaxLength int32    `json:"maxLength"`
	ShowIf    *struct {
		Module text          `json:"module"`
		Equals texts[string] `json:"equals"`
	} `json:"showIf"`
}

func readModule(dec *jsontext.Decoder) (formsvc.Module, error) {
	var body moduleBody
	if err := json.UnmarshalDecode(dec, &body); err != nil {
		return formsvc.Module{}, err
	}
	m := formsvc.Module(body.plainModule)
	m.Name, m.Type, m.MaxLength = string(body.Name), cmp.Or(m.Type, formsvc.TextModule), int(body.MaxLength)
	if body.Options != nil {
		m.Labels = map[string]string{}
	}
	for _, o := range body.Options {
		m.Options = append(m.Options, string(*o.Value))
		if o.Label != nil {
			m.Labels[string(*o.Value)] = string(*o.Label)
		}
	}
	if body.ShowIf != nil {
		m.ShowIf = &formsvc.Condition{Module: string(body.ShowIf.Module), Equals: body.ShowIf.Equals}
	}
	return m, nil
}

// An option is a choice: a string, or an object with a value and a label.
type option struct {
	Value *text `json:"value"`
	Label *text `json:"label"`
}

func readOption(dec *jsontext.Decoder) (o option, err error) {
	switch dec.PeekKind() {
	case jsontext.KindBeginObject:
		err = json.UnmarshalDecode(dec, &o)
		if err == nil && o.Value == nil {
			err = unfit(dec.StackPointer()+"/value", "required", "is required")
		}
	case jsontext.KindString, jsontext.KindInvalid:
		o.Value = new(text)
		err = o.Value.UnmarshalJSONFrom(dec)
	default:
		err = wrong(dec, "must be a string, or an object with value and label")
	}
	return o, err
}
