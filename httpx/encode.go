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
func appendCampaign(b []byte, c *formsvc.Campaign) []byte {
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
	return append(b, '}')
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
