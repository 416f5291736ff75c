package formsvc

import (
	"maps"
	"slices"

	"github.com/go-json-experiment/json"
)

// Limits of metadata; of names and values, in characters.
const (
	maxCampaignMetadata = 100
	maxMetadata         = 50 // of a response
	maxMetaKey          = 200
	maxMetaValue        = 2_000
)

// Metadata holds names and values that programs keep with a response, as the JSON object that stores keep and clients
// receive: names are sorted. It is "" without any. Visitors neither set nor see it.
type Metadata string

// NewMetadata returns the given metadata. It doesn't check it; services do.
func NewMetadata(values map[string]string) Metadata {
	if len(values) == 0 {
		return ""
	}
	text, _ := json.Marshal(values, json.Deterministic(true)) // services refuse text that isn't UTF-8
	return Metadata(text)
}

// JSON returns the metadata as a JSON object.
func (m Metadata) JSON() string {
	if m == "" {
		return "{}"
	}
	return string(m)
}

// Map returns the metadata by name. The caller owns the result, which is never nil.
func (m Metadata) Map() map[string]string {
	values := make(map[string]string)
	_ = json.Unmarshal([]byte(m.JSON()), &values) // it is what NewMetadata wrote
	return values
}

// has reports whether all these names have these values.
func (m Metadata) has(wanted map[string]string) bool {
	if len(wanted) == 0 {
		return true
	}
	values := m.Map()
	for name, value := range wanted {
		if got, ok := values[name]; !ok || got != value {
			return false
		}
	}
	return true
}

// mergeMetadata applies the metadata of a patch to r (RFC 7396) and returns JSON Pointers to what changed, sorted.
func mergeMetadata(v *ValidationError, r *Response, patch map[string]*string) (changes []string) {
	values := r.Metadata.Map()
	for _, name := range slices.Sorted(maps.Keys(patch)) {
		old, had := values[name]
		switch value := patch[name]; {
		case value == nil && had:
			delete(values, name)
		case value != nil && (!had || old != *value):
			values[name] = *value
		default:
			continue
		}
		changes = append(changes, "/metadata/"+pointerEscape(name))
	}
	if len(changes) > 0 {
		v.checkMetadata(values, maxMetadata)
		r.Metadata = NewMetadata(values)
	}
	return changes
}

// checkMetadata notes what is wrong with the metadata of a campaign or response that may have that many names.
func (e *ValidationError) checkMetadata(metadata map[string]string, most int) {
	if len(metadata) > most {
		e.add("/metadata", "too_many", "must have at most %d entries", most)
		return
	}
	for _, k := range slices.Sorted(maps.Keys(metadata)) {
		if e.checkName("/metadata", "a name", k, maxMetaKey) {
			e.checkLine("/metadata/"+pointerEscape(k), metadata[k], maxMetaValue)
		}
	}
}
