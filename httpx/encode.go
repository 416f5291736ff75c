package httpx

import (
	"maps"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/formsvc/toolkit/formsvc"
)

// appendString appends s as a JSON string. It replaces invalid UTF-8, which no store returns, by U+FFFD.
func appendString(b []byte, s string) []byte {
	b, _ = jsontext.AppendQuote(b, s)
	return b
}

func appendStrings(b []byte, list []string) []byte {
	b = append(b, '[')
	for i, s := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, s)
	}
	return append(b, ']')
}

// appendCampaign appends the campaign as clients get it. All fields are always there, so that clients can change a
// campaign that they read and send it back.
func (h *Handler) appendCampaign(b []byte, c *formsvc.Campaign) []byte {
	b = append(b, `{"uuid":"`...)
	b = append(b, c.ID...)
	b = append(b, `","title":`...)
	b = appendString(b, c.Title)
	b = append(b, `,"description":`...)
	b = appendString(b, c.Description)
	b = append(b, `,"status":`...)
	b = appendString(b, string(c.Status))
	b = append(b, `,"opensAt":`...)
	b = appendTime(b, c.OpensAt)
	b = append(b, `,"closesAt":`...)
	b = appendTime(b, c.ClosesAt)
	b = append(b, `,"requireEmail":`...)
	b = strconv.AppendBool(b, !c.EmailOptional)
	b = append(b, `,"modules":[`...)
	for i := range c.Modules {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendModule(b, &c.Modules[i])
	}
	b = append(b, `],"metadata":`...)
	b = appendMetadata(b, c.Metadata)
	b = h.appendForm(append(b, `,"form":`...), &c.Form, c.FormToken)
	b = append(b, `,"responseCount":`...)
	b = strconv.AppendInt(b, c.ResponseCount, 10)
	b = append(b, `,"createdAt":`...)
	b = appendTime(b, c.CreatedAt)
	b = append(b, `,"updatedAt":`...)
	b = appendTime(b, c.UpdatedAt)
	return append(b, '}')
}

func appendModule(b []byte, m *formsvc.Module) []byte {
	b = append(b, `{"name":`...)
	b = appendString(b, m.Name)
	b = append(b, `,"label":`...)
	b = appendString(b, m.Label)
	b = append(b, `,"help":`...)
	b = appendString(b, m.Help)
	b = append(b, `,"placeholder":`...)
	b = appendString(b, m.Placeholder)
	b = append(b, `,"type":`...)
	b = appendString(b, string(m.Type))
	b = append(b, `,"required":`...)
	b = strconv.AppendBool(b, m.Required)
	b = append(b, `,"options":`...)
	b = appendStrings(b, m.Options)
	b = append(b, `,"maxLength":`...)
	b = strconv.AppendInt(b, int64(m.MaxLength), 10)
	b = append(b, `,"multiple":`...)
	b = strconv.AppendBool(b, m.Multiple)
	b = append(b, `,"showIf":`...)
	if m.ShowIf == nil {
		return append(b, "null}"...)
	}
	b = append(b, `{"module":`...)
	b = appendString(b, m.ShowIf.Module)
	b = append(b, `,"equals":`...)
	b = appendStrings(b, m.ShowIf.Equals)
	return append(b, '}', '}')
}

// appendForm appends a form; its address is null if it has none yet, or if the address of the service isn't known.
func (h *Handler) appendForm(b []byte, f *formsvc.Form, token string) []byte {
	b = append(b, `{"enabled":`...)
	b = strconv.AppendBool(b, f.Enabled)
	b = append(b, `,"description":`...)
	b = appendString(b, f.Description)
	b = append(b, `,"successMessage":`...)
	b = appendString(b, f.SuccessMessage)
	b = append(b, `,"redirectUrl":`...)
	b = appendString(b, f.RedirectURL)
	b = append(b, `,"allowedOrigins":`...)
	b = appendStrings(b, f.AllowedOrigins)
	b = append(b, `,"token":`...)
	if token == "" {
		return append(b, `null,"url":null}`...)
	}
	b = append(appendString(b, token), `,"url":`...)
	if h.baseURL == "" {
		return append(b, "null}"...)
	}
	return append(appendString(b, h.baseURL+"/f/"+token), '}')
}

// appendMetadata appends the metadata sorted by name, so that the same campaign always has the same bytes.
func appendMetadata(b []byte, metadata map[string]string) []byte {
	if len(metadata) == 0 {
		return append(b, '{', '}')
	}
	b = append(b, '{')
	for i, name := range slices.Sorted(maps.Keys(metadata)) {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, name)
		b = append(b, ':')
		b = appendString(b, metadata[name])
	}
	return append(b, '}')
}
