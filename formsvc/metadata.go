package formsvc

import (
	"cmp"
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
// receive: {"name":"value",…}, sorted. It is "" without any. Visitors neither set nor see it. Make it with [NewMetadata].
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
func (m Metadata) JSON() string { return string(cmp.Or(m, "{}")) }

// Map returns the metadata by name. The caller owns the result, which is never nil.
func (m Metadata) Map() map[string]string {
	values := make(map[string]string)
	if m != "" {
		_ = json.Unmarshal([]byte(m), &values) // it is what NewMetadata wrote
	}
	return values
}

// AllValues calls see as [Answers.Each] does, and with the metadata, whose names get the prefix "metadata.".
func (r *Response) AllValues(see func(name string, values []string) error) error {
	err := r.Answers.Each(see)
	for name, value := range r.Metadata.Map() {
		err = cmp.Or(err, see("metadata."+name, []string{value}))
	}
	return err
}

// mergeMetadata applies the metadata of a patch to r (RFC 7396) and returns JSON Pointers to what changed, sorted.
func mergeMetadata(v *ValidationError, r *Response, patch map[string]*string) (changes []string) {
	values := r.Metadata.Map()
	for _, name := range slices.Sorted(maps.Keys(patch)) {
		value := patch[name]
		if old, had := values[name]; value == nil && !had || value != nil && had && old == *value {
			continue
		}
		if delete(values, name); value != nil {
			values[name] = *value
		}
		changes = append(changes, "/metadata/"+pointerEscape(name))
	}
	v.checkMetadata(values, maxMetadata)
	r.Metadata = NewMetadata(values)
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
