package httpx

import "github.com/formsvc/toolkit/formsvc"

type campaignBody struct {
	Title        text               `json:"title"`
	Description  optional           `json:"description"`
	Status       word               `json:"status"`
	OpensAt      timestamp          `json:"opensAt"`
	ClosesAt     timestamp          `json:"closesAt"`
	RequireEmail *bool              `json:"requireEmail"`
	Modules      *array[moduleBody] `json:"modules"`
	Metadata     pairs              `json:"metadata"`
}

// A campaignReplacement may also have what the server sets, as in its reply.
type campaignReplacement struct {
	campaignBody `json:",inline"`

	UUID          ignored `json:"uuid"`
	ResponseCount ignored `json:"responseCount"`
	CreatedAt     ignored `json:"createdAt"`
	UpdatedAt     ignored `json:"updatedAt"`
}

type moduleBody struct {
	Name      text         `json:"name"`
	Label     optional     `json:"label"`
	Type      word         `json:"type"`
	Required  bool         `json:"required"`
	Options   *array[text] `json:"options"`
	MaxLength int32        `json:"maxLength"`
	Multiple  bool         `json:"multiple"`
}

// campaignInput decodes the body of a POST, or of a PUT when replace is true.
func (d *decoder) campaignInput(replace bool) (formsvc.CampaignInput, error) {
	var body campaignReplacement
	var err error
	if replace {
		err = d.decode(&body)
	} else {
		err = d.decode(&body.campaignBody)
	}
	in := formsvc.CampaignInput{
		Title: string(body.Title), Description: string(body.Description), Status: formsvc.CampaignStatus(body.Status),
		OpensAt: body.OpensAt.Time, ClosesAt: body.ClosesAt.Time, EmailOptional: body.RequireEmail != nil && !*body.RequireEmail,
		Metadata: body.Metadata,
	}
	if body.Modules != nil {
		for _, m := range *body.Modules {
			in.Modules = append(in.Modules, m.module())
		}
	}
	return in, err
}

func (m *moduleBody) module() formsvc.Module {
	out := formsvc.Module{
		Name: string(m.Name), Label: string(m.Label), Type: formsvc.ModuleType(m.Type),
		Required: m.Required, MaxLength: int(m.MaxLength), Multiple: m.Multiple,
	}
	if m.Options != nil {
		for _, o := range *m.Options {
			out.Options = append(out.Options, string(o))
		}
	}
	return out
}
